package main

import (
	"slices"
	"strings"
	"testing"
)

func TestLinesOfGoals(t *testing.T) {
	for text, want := range map[string]told{
		"GOAL G2: 20000 seeds, 0 double runs | wanted 0 of 20000 | met":         {"G2", "20000 seeds, 0 double runs", "0 of 20000", "met"},
		"    sim_test.go:12: GOAL G11: 3 of 500 silent | wanted none | not met": {"G11", "3 of 500 silent", "none", "not met"},
		"GOAL G2: cut short": {}, "no goal": {}, "GOAL G3: x | wanted y | nearly": {}, "GOAL G3 x | y | met": {},
	} {
		if got, is := parse(text); got != want || is != (want != told{}) {
			t.Errorf("%q: %+v, %t", text, got, is)
		}
	}
}

// What one suite does not meet is not met, and what nobody measured is said to be so.
func TestTheTableHidesNothing(t *testing.T) {
	var out strings.Builder
	some := []suite{
		{goals: []string{"G7"}, command: []string{
			"sh", "-c", "echo 'faults drawn: rack=3'; echo '    x_test.go:1: BACK killer | 7 | 1m5s | 3m52s | 5m42s'; " +
				"echo 'GOAL G7: a | wanted b | met'; echo 'GOAL G7: c | wanted b | not met'",
		}},
		{goals: []string{"G5"}, command: []string{"sh", "-c", "echo \"$SIZE\" | grep large && exit 3"}, release: []string{"SIZE=large"}},
		{goals: []string{"G1"}, command: []string{"true"}},
		{goals: []string{"G18"}, command: []string{"echo", "GOAL G18: d | wanted e | met"}},
		{goals: []string{"G18"}, command: []string{"false"}},
	}
	failed, drawn := measure(t.Context(), &out, some, true, false)
	if drawn["rack"] != 3 || len(failed) != 2 || !strings.HasPrefix(failed[0], "G5") {
		t.Errorf("failed are %q, drawn %v", failed, drawn)
	}
	for _, want := range []string{
		"NOT MET", "a (b)", "c (b)", "its suite told nothing: G1: true", "FAILED: G5: sh", "FAILED: G18: false", "its suite was not run",
		"no recovery of that size",
		"killer                                    7       1m5s      3m52s      5m42s",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}

// Every goal has a suite, or a reason why it has none; never both.
func TestEveryGoalIsAccountedFor(t *testing.T) {
	for i := range goals {
		one := &goals[i]
		measured := slices.ContainsFunc(suites, func(s suite) bool { return slices.Contains(s.goals, one.name) })
		if measured == (one.why != "") {
			t.Errorf("%s: a suite %t, reason %q", one.name, measured, one.why)
		}
	}
	if len(goals) != 20 {
		t.Errorf("%d goals, want 20", len(goals))
	}
}
