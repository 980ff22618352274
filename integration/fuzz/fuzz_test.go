package main

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var declared = regexp.MustCompile(`^\.\./\.\./(.+)/[^/]+_test\.go:func (Fuzz\w+)\(`)

// Every fuzz test of the tree is in the list, and all get two million inputs.
func TestEveryFuzzTestIsInTheList(t *testing.T) {
	out, err := exec.CommandContext(
		t.Context(), "grep", "-r", "--include=*_test.go", "^func Fuzz", "../../agent", "../../coordinator", "../../shared",
	).Output()
	if err != nil {
		t.Fatal(err)
	}
	var there, listed []string
	for line := range strings.Lines(string(out)) {
		found := declared.FindStringSubmatch(line)
		if found == nil {
			t.Fatalf("what is %q?", line)
		}
		there = append(there, "./"+found[1]+" "+found[2])
	}
	inputs := 0
	for _, one := range targets {
		listed = append(listed, one.pkg+" "+one.name)
		inputs += one.inputs
	}
	slices.Sort(there)
	slices.Sort(listed)
	if !slices.Equal(there, listed) {
		t.Errorf("there are\n%s\nand listed are\n%s", strings.Join(there, "\n"), strings.Join(listed, "\n"))
	}
	if inputs < 2_000_000 {
		t.Errorf("they get %d inputs", inputs)
	}
}
