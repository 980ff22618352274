package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"berth/integration/faults/script"
)

const someWorld = "### Another\n| W9 | a | b | `c` | d |\n### The world\n\n| # | what | promise | S | shown by |\n|---|---|---|---|---|\n" +
	"| W1 | a rack | `berth x` | `rack`, `site-power` | C `TestARack` |\n| W2 | a clock | y | - | - |\n## Goals\n| W3 | a | b | - | - |\n"

func TestTheTableOfTheWorld(t *testing.T) {
	rows, err := readWorld(strings.NewReader(someWorld))
	if err != nil || len(rows) != 2 {
		t.Fatalf("%v, %v", rows, err)
	}
	for _, tc := range []struct {
		drawn map[string]int
		want  []string
	}{
		{nil, []string{"W1 rack not run, site-power not run C TestARack a rack", "W2 NO PROOF NO PROOF a clock"}},
		{drawnIn("x_test.go:1: faults drawn: rack=12 site-power=0"), []string{"W1 rack 12, site-power 0 C TestARack a rack"}},
	} {
		var out strings.Builder
		world(&out, rows, tc.drawn)
		text := strings.Join(strings.Fields(out.String()), " ")
		for _, want := range tc.want {
			if !strings.Contains(text, want) {
				t.Errorf("with %v the table lacks %q: %s", tc.drawn, want, text)
			}
		}
	}
	if drawnIn("GOAL G2: 12 seeds | wanted 0 | met") != nil {
		t.Error("a line that counts no faults does")
	}
	if _, err := readWorld(strings.NewReader("### The world\n| W1 | a | b |\n")); err == nil {
		t.Error("a row that lacks cells is read")
	}
}

// The page has all rows, and what it names is there: faults that the simulator draws, and tests.
func TestTheWorldNamesWhatIsThere(t *testing.T) {
	page, err := os.ReadFile("../faults/FAULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := readWorld(strings.NewReader(string(page)))
	if err != nil || len(rows) != 39 {
		t.Fatalf("%d rows, want 39: %v", len(rows), err)
	}
	missing := map[string]bool{}
	for _, fault := range script.Faults() {
		missing[fault] = true
	}
	for i, one := range rows {
		if want := fmt.Sprintf("W%d", i+1); one.name != want {
			t.Errorf("row %d is %s", i+1, one.name)
		}
		for _, fault := range one.faults {
			if !slices.Contains(script.Faults(), fault) {
				t.Errorf("%s names the fault %q, which the simulator does not count", one.name, fault)
			}
			delete(missing, fault)
		}
		for _, name := range tick.FindAllStringSubmatch(one.shownBy, -1) {
			if !strings.HasPrefix(name[1], "Test") {
				continue
			}
			if err := exec.CommandContext(t.Context(), "grep", "-rqE", "--include=*_test.go", "func "+name[1]+`\w*\(`, "../..").Run(); err != nil {
				t.Errorf("%s names the test %s, which is not there", one.name, name[1])
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("no row names the faults %q", slices.Sorted(maps.Keys(missing)))
	}
}
