package placement

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"berth/coordinator/placement/policies"
)

// otherWinnersByTrial makes the whole decision again without each key and group.
func otherWinnersByTrial(k keeper) []int {
	var others []int
	if k.choice.Node < 0 || k.bypassed() || len(k.scorers) > 1 {
		return nil
	}
	for _, one := range k.variants() {
		if node := k.trial().on(&one).Node; node >= 0 && node != k.choice.Node && !slices.Contains(others, node) && len(others) < keptOthers {
			others = append(others, node)
		}
	}
	return others
}

// Who would have won without a key is found without deciding again where that is possible, and is who wins when it is decided again.
func TestOtherWinnersAreThoseOfWholeDecisions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, choice := prepared(t)
		k := keeper{e, choice}
		if got, want := k.otherWinners(), otherWinnersByTrial(k); !slices.Equal(got, want) {
			t.Fatalf("%v win, decided again %v", got, want)
		}
	})
}

// The same on a cluster of which only some nodes are looked at: the gate lets in all, some, or so few that all have to be.
func TestOtherWinnersOfALargeCluster(t *testing.T) {
	columns := fleet(400, 2)
	found, byTrial := 0, 0
	for seed := range uint64(60) {
		policy := policies.Default()
		policy.Gate.Initial = float64(20 * (seed % 10))
		policy.Gate.Final, policy.Gate.Steps = policy.Gate.Initial-15, 3
		request := *askedOf(seed%4 == 3)
		request.SystemKeys = slices.Clone(request.SystemKeys)
		request.SystemKeys[seed%5].Weight = 60
		if seed%2 == 1 {
			request.SystemKeys[4].Weight = -60
		}
		if seed%5 == 2 {
			request.Current = columns.IDs[7*seed%300]
		}
		e := newEngine(t, policy)
		k := keeper{e, e.Choose(columns, noon, &request, seed)}
		got, want := k.otherWinners(), otherWinnersByTrial(k)
		if !slices.Equal(got, want) {
			t.Errorf("seed %d: %v win, decided again %v", seed, got, want)
		}
		first := k.first(keptOfMore, nil)
		for v := range request.SystemKeys {
			if _, is := k.winsWithout(v, first); is {
				found++
			} else {
				byTrial++
			}
		}
		if len(got) == 0 {
			continue
		}
		if most := 200; !slices.Equal(k.foremost(most), nodesOf(e.order(), most)) {
			t.Errorf("seed %d: %v are foremost, in order %v", seed, k.foremost(most), nodesOf(e.order(), most))
		}
	}
	if found < 50 || byTrial < 20 {
		t.Errorf("%d were found without another decision, %d not: that tests too little", found, byTrial)
	}
}

func nodesOf(ordered []candidate, most int) []int {
	var nodes []int
	for i := range ordered[:min(most, len(ordered))] {
		nodes = append(nodes, ordered[i].node)
	}
	return nodes
}
