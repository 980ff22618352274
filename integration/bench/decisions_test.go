package main

import (
	"testing"

	"berth/coordinator/placement"
	"berth/coordinator/placement/policies"
	"berth/coordinator/view"
	"berth/integration/bench/report"
)

// What the goals time has to be what they name: every key counts on every node, and the full nodes are refused.
func TestTheTimedDecisionReadsAllKeys(t *testing.T) {
	const n = 80
	for name, c := range map[string]struct {
		columns *view.Columns
		request placement.Request
		terms   int // of the winner
	}{
		"P1":            {grouped(newCrowd(n)), newcomer(group), keysANode + 1},
		"P7 in groups":  {many(newCrowd(n), false), newcomer(group, shy), keysANode + 2},
		"P7 spread out": {many(newCrowd(n), true), newcomer(group, shy), keysANode + 2*residentsANode},
	} {
		d, err := newDecider(c.columns, c.request)
		if err != nil {
			t.Fatal(err)
		}
		if choice := d.decide(); choice.Node < 0 || choice.Candidates != n-n/8 || choice.Round == 0 || choice.Customer == 0 {
			t.Errorf("%s: chose %+v", name, choice)
		}
		decision := placement.Explain(placement.PlaceOn(c.columns, decidedAt, c.request, policies.Default(), d.seed))
		if got := len(decision.Nodes[0].Terms); got != c.terms {
			t.Errorf("%s: the winner's score has %d terms, want %d", name, got, c.terms)
		}
	}
}

func TestEveryGoalIsMeasuredWhole(t *testing.T) {
	rows, err := measureExplanation(t.Context(), &bench{quick: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Measured == "" || r.Wanted == "" || r.Verdict == report.NoVerdict {
			t.Errorf("%+v is no answer", r)
		}
	}
}
