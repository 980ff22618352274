package term

import (
	"fmt"
	"io"
	"strings"

	berthv1 "berth/shared/gen/berth/v1"
)

// FieldChanges writes what is different about one thing.
func FieldChanges(p *Page, fields []*berthv1.FieldChange) {
	for _, field := range fields {
		sign, value := "~", field.GetFrom()+" -> "+field.GetTo()
		switch {
		case field.GetFrom() == "":
			sign, value = "+", field.GetTo()
		case field.GetTo() == "":
			sign, value = "-", field.GetFrom()
		}
		if field.GetNote() != "" {
			value += " (" + field.GetNote() + ")"
		}
		p.Line("    %s %s: %s", sign, field.GetField(), value)
	}
}

// WriteProblems shows all that is wrong with a document or a change, each with its place as compilers give it. It stands in
// for the message, which has the same in one text.
func WriteProblems(w io.Writer, problems []*berthv1.Problem) {
	switch p := (&Page{Out: w}); len(problems) {
	case 0:
	case 1:
		p.Line("berth: %s", problemLine(problems[0]))
	default:
		p.Line("berth: %d problems", len(problems))
		for _, problem := range problems {
			p.Line("%s", problemLine(problem))
		}
	}
}

func problemLine(problem *berthv1.Problem) string {
	place := problem.GetFile()
	if problem.GetLine() > 0 {
		place = fmt.Sprintf("%s:%d", place, problem.GetLine())
	}
	var parts []string
	for _, part := range []string{place, problem.GetSubject(), problem.GetMessage(), problem.GetNextStep()} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// ConflictLines writes contradictions, each with what to do about it.
func ConflictLines(p *Page, indent string, conflicts []*berthv1.Conflict) {
	for _, conflict := range conflicts {
		p.Line("%s%s: %s", indent, conflict.GetSeverity(), conflict.GetText())
		if conflict.GetNextStep() != "" {
			p.Line("%s  next step: %s", indent, conflict.GetNextStep())
		}
	}
}

// Cautions are sentences about what was done all the same. In JSON they stand in the answer.
func (a *App) Cautions(w io.Writer, texts []string) {
	if !a.Quiet && !a.Format.Structured() {
		for _, text := range texts {
			(&Page{Out: w}).Line("warning: %s", text)
		}
	}
}

// Warnings are about what was done all the same. In JSON they stand in the answer.
func (a *App) Warnings(w io.Writer, warnings []*berthv1.Conflict) {
	if !a.Quiet && !a.Format.Structured() {
		ConflictLines(&Page{Out: w}, "", warnings)
	}
}
