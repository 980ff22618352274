package main

import (
	"strings"
	"testing"
)

func TestOnlyKnownGoalsAreChosen(t *testing.T) {
	for only, want := range map[string]string{"": strings.Join(goals(), ","), "R4": "R4", "R4,R1": "R1,R4", "A3": "A1,A2,A3,A4"} {
		chosen, err := choose(only)
		if err != nil {
			t.Errorf("%q: %v", only, err)
		}
		var got []string
		for _, s := range chosen {
			got = append(got, s.goals...)
		}
		if strings.Join(got, ",") != want {
			t.Errorf("%q chooses %v, want %s", only, got, want)
		}
	}
	if _, err := choose("R1,R9"); err == nil || !strings.Contains(err.Error(), `"R9"`) {
		t.Errorf("a goal that does not exist: %v", err)
	}
}
