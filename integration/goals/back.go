package main

import (
	"fmt"
	"io"
	"strings"
)

// backIn are the cells of a line that tells how long it took from a kind of fault until guests ran again; nil: it does not.
func backIn(text string) []string {
	_, rest, told := strings.Cut(text, "BACK ")
	cells := strings.Split(rest, " | ")
	if !told || len(cells) != 5 {
		return nil
	}
	return cells
}

// back prints how long guests were down, by the kind of fault that has ended them.
func back(w io.Writer, lines [][]string) {
	if len(lines) == 0 {
		return
	}
	const line = "%-34s %8s %10s %10s %10s\n"
	_, _ = fmt.Fprintf(w, "\n"+line, "FROM FAILURE TO RUNNING AGAIN", "TIMES", "HALF", "99 %", "WORST")
	for _, cells := range lines {
		_, _ = fmt.Fprintf(w, line, cells[0], cells[1], cells[2], cells[3], cells[4])
	}
}
