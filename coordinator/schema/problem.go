package schema

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/model"
	"berth/shared/units"
)

// Problem is one rule that a document, a state or a change breaks, and what to do about it.
type Problem struct {
	File    string // of a document; empty otherwise
	Line    int    // from 1; 0 where no line is to blame
	Subject string // kind/name; empty where it is about the document
	Field   string // of the subject; empty where it is about all of it
	Message string // which rule, with the figures
	Next    string // what to do
}

// String is one line: FILE:LINE: SUBJECT: MESSAGE: NEXT.
func (p Problem) String() string {
	var parts []string
	switch {
	case p.File != "" && p.Line > 0:
		parts = append(parts, fmt.Sprintf("%s:%d", p.File, p.Line))
	case p.File != "":
		parts = append(parts, p.File)
	}
	for _, part := range []string{p.Subject, p.Message, p.Next} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// RefusedError is a change that breaks rules. It wraps model.ErrInvalid.
type RefusedError struct {
	Problems []Problem // one at least
}

func (e *RefusedError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, problem := range e.Problems {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes errors.Is(err, model.ErrInvalid) true.
func (e *RefusedError) Unwrap() error { return model.ErrInvalid }

// Problems is the problems as an error; nil if there are none.
func Problems(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return &RefusedError{Problems: problems}
}

// ProblemOf tells of a value that is not valid in the words of its error.
func ProblemOf(subject, field string, err error) Problem {
	var invalid *model.InvalidError
	if errors.As(err, &invalid) {
		return Problem{
			Subject: subject, Field: field, Message: invalid.Field + " " + invalid.Value + " is not valid", Next: "want " + invalid.Want,
		}
	}
	return Problem{Subject: subject, Field: field, Message: err.Error()}
}

// Sorted puts problems in the order of the document, and drops what was found twice.
func Sorted(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	seen := make(map[Problem]bool, len(problems))
	return slices.DeleteFunc(problems, func(p Problem) bool {
		p.Field = "" // one rule may be found by way of two fields
		twice := seen[p]
		seen[p] = true
		return twice
	})
}

// Several lists things for people, the first few by name.
func Several(things []string) string {
	const most = 5
	switch n := len(things); {
	case n == 0:
		return "nothing"
	case n == 1:
		return things[0]
	case n <= most:
		return strings.Join(things[:n-1], ", ") + " and " + things[n-1]
	default:
		return units.Some(things, most, ", ")
	}
}

// Ref is how people are told of a thing: kind/name.
func Ref(kind model.Kind, name string) string { return string(kind) + "/" + name }
