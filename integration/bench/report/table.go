package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Row is one line of the table. A row without a goal explains the one above it.
type Row struct {
	Goal     string // its name in the list of goals
	What     string
	Measured string
	Against  string
	Wanted   string
	Verdict  Verdict
}

// Verdict says whether a goal was reached. Nothing depends on it but the reader.
type Verdict string

// What was found. NoVerdict is for a figure without a goal.
const (
	NoVerdict Verdict = ""
	met       Verdict = "met"
	NotMet    Verdict = "NOT MET"
)

// Judge compares a figure that must not exceed a limit. What is unknown is not met.
func Judge(figure, limit float64) Verdict {
	if figure <= limit {
		return met
	}
	return NotMet
}

// AtLeast compares a figure that must not fall below a limit. What is unknown is not met.
func AtLeast(figure, limit float64) Verdict {
	if figure >= limit {
		return met
	}
	return NotMet
}

// Both is met if both are.
func Both(a, b Verdict) Verdict {
	if a == met {
		return b
	}
	return a
}

var header = Row{"GOAL", "MEASURED THING", "FIGURE", "COMPARED TO", "WANTED", "RESULT"}

// widths of the columns in characters. Longer cells are wrapped.
var widths = [...]int{8, 38, 42, 46, 22, 9}

// PrintTable writes all rows under one header.
func PrintTable(w io.Writer, rows []Row) error {
	for i, r := range append([]Row{header}, rows...) {
		cells := [...]string{r.Goal, r.What, r.Measured, r.Against, r.Wanted, string(r.Verdict)}
		if i == 0 || r.Goal != "" {
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		if err := printRow(w, cells[:]); err != nil {
			return err
		}
	}
	return nil
}

func printRow(w io.Writer, cells []string) error {
	wrapped := make([][]string, len(cells))
	height := 0
	for i, cell := range cells {
		wrapped[i] = wrap(cell, widths[i])
		height = max(height, len(wrapped[i]))
	}
	for line := range height {
		var b strings.Builder
		for i := range cells {
			text := ""
			if line < len(wrapped[i]) {
				text = wrapped[i][line]
			}
			b.WriteString(text)
			b.WriteString(strings.Repeat(" ", max(widths[i]-utf8.RuneCountInString(text), 0)+2))
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(b.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// wrap breaks a text at spaces. A word that is longer than a line stays whole.
func wrap(text string, width int) []string {
	var lines []string
	for paragraph := range strings.SplitSeq(text, "\n") {
		line := ""
		for _, word := range strings.Fields(paragraph) {
			switch {
			case line == "":
				line = word
			case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
				line += " " + word
			default:
				lines = append(lines, line)
				line = word
			}
		}
		lines = append(lines, line)
	}
	return lines
}
