package main

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
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
	if inputs < wanted {
		t.Errorf("they get %d inputs", inputs)
	}
}

// What counts is what the fuzzer says it has tried.
func TestInputsAreCountedAsTheFuzzerTellsThem(t *testing.T) {
	out := "fuzz: elapsed: 3s, execs: 12 (4/sec), new interesting: 1 (total: 9)\nfuzz: elapsed: 4s, execs: 500 (122/sec)\nPASS\n"
	if tried := triedIn([]byte(out)); tried != 500 {
		t.Errorf("%d of 500", tried)
	}
	if tried := triedIn([]byte("PASS\n")); tried != 0 {
		t.Errorf("%d of none", tried)
	}
	for tried, want := range map[int]string{
		2_000_000: "GOAL G10: 2000000 inputs, 18 parsers, no panic, 1m0s | wanted 2000000 inputs, no panic | met",
		1_999_999: "GOAL G10: 1999999 inputs, 18 parsers, no panic, 1m0s | wanted 2000000 inputs, no panic | not met",
	} {
		if line, met := told(tried, 18, time.Minute); line != want || met != (tried >= wanted) {
			t.Errorf("%q, met %t, want %q", line, met, want)
		}
	}
}
