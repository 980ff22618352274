package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// worldPage has the table of what happens around Berth, below this heading.
const (
	worldPage    = "integration/faults/FAULTS.md"
	worldHeading = "### The world"
)

// row is a line of that table.
type row struct {
	name, what string
	faults     []string // of the simulator, by the names that count them
	shownBy    string   // tests on the lab and elsewhere; empty: none
}

var (
	tick  = regexp.MustCompile("`([^`]+)`")
	count = regexp.MustCompile(`([a-z-]+)=(\d+)`)
)

// readWorld reads the rows of the table.
func readWorld(page io.Reader) ([]row, error) {
	var rows []row
	inside := false
	scanner := bufio.NewScanner(page)
	for scanner.Scan() {
		line := scanner.Text()
		if strings.HasPrefix(line, "##") {
			inside = line == worldHeading
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if !inside || !strings.HasPrefix(line, "| W") {
			continue
		}
		if len(cells) != 5 {
			return nil, fmt.Errorf("%q has %d cells, not 5", line, len(cells))
		}
		one := row{name: cells[0], what: cells[1], shownBy: strings.TrimPrefix(cells[4], "-")}
		for _, fault := range tick.FindAllStringSubmatch(cells[3], -1) {
			one.faults = append(one.faults, fault[1])
		}
		rows = append(rows, one)
	}
	return rows, scanner.Err()
}

// drawnIn is how often each fault was drawn, if a line tells that.
func drawnIn(text string) map[string]int {
	_, list, told := strings.Cut(text, "faults drawn:")
	if !told {
		return nil
	}
	drawn := map[string]int{}
	for _, one := range count.FindAllStringSubmatch(list, -1) {
		drawn[one[1]], _ = strconv.Atoi(one[2])
	}
	return drawn
}

// world prints the rows with what proves them, and how often the simulator has drawn them. Drawn is nil if it was not run.
func world(w io.Writer, rows []row, drawn map[string]int) {
	const line = "%-4s %-34s %-60s %s\n"
	_, _ = fmt.Fprintf(w, "\n"+line, "ROW", "DRAWN BY THE SIMULATOR", "SHOWN BY", "WHAT")
	for _, one := range rows {
		var faults []string
		for _, fault := range one.faults {
			often := "not run"
			if drawn != nil {
				often = strconv.Itoa(drawn[fault])
			}
			faults = append(faults, fault+" "+often)
		}
		simulated, shown := strings.Join(faults, ", "), strings.ReplaceAll(one.shownBy, "`", "")
		if len(faults) == 0 {
			simulated = "NO PROOF"
		}
		if shown == "" {
			shown = "NO PROOF"
		}
		_, _ = fmt.Fprintf(w, line, one.name, simulated, shown, one.what)
	}
}

// theWorld are the rows as the page in this tree has them.
func theWorld() ([]row, error) {
	page, err := os.Open(worldPage)
	if err != nil {
		return nil, err
	}
	defer func() { _ = page.Close() }()
	return readWorld(page)
}
