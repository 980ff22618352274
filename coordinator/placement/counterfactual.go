package placement

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"berth/coordinator/cluster"
	"berth/coordinator/placement/rule"
	"berth/shared/units"
)

// winCounterfactual names the keys without any one of which another node would have won. It is found by running the later
// stages again without the key, not by arithmetic on the scores.
func (r *run) winCounterfactual() string {
	if len(r.candidates) == 1 {
		return ""
	}
	winner := r.candidates[0].node
	var sentences []string
	for i := range r.input.SystemKeys {
		without := r.input
		without.SystemKeys = slices.Delete(slices.Clone(r.input.SystemKeys), i, i+1)
		other := r.engine.choose(&without, r.view.Nodes, r.admitted, r.seed)
		if other[0].shut || other[0].node == winner || equal(other, winner) {
			continue
		}
		sentences = append(sentences, fmt.Sprintf("without %s, %s would win", r.input.SystemKeys[i].Name, r.name(other[0].node)))
	}
	return strings.Join(sentences, "; ")
}

// equal tells whether this node would have been as good as the first one, the draw apart.
func equal(candidates []candidate, node int) bool {
	at := slices.IndexFunc(candidates, func(c candidate) bool { return c.node == node })
	return compareGroup(&candidates[0], &candidates[at]) == 0 && candidates[0].score == candidates[at].score
}

// refusalCounterfactual names, for each kind of change that would do alone, the smallest one that lets the request fit
// somewhere: what each constraint can be relaxed to, and a smaller VM.
func (r *run) refusalCounterfactual() string {
	if len(r.candidates) > 0 {
		best := r.candidates[0].node
		score := r.engine.gated.Weigh(&r.input, r.view.Nodes[best], nil)
		return fmt.Sprintf("with a final threshold below %s, %s would take it", figure(score), r.name(best))
	}
	smallest := make([]rule.Relaxation, len(r.engine.constraints))
	var size units.Bytes
	var roomiest int
	for _, node := range r.refused() {
		verdicts := r.verdictsOf(node)
		if fit := r.largestFit(verdicts); fit > size {
			size, roomiest = fit, node
		}
		c, alone := onlyRefusal(verdicts)
		if !alone || r.engine.constraints[c].Relax == nil {
			continue
		}
		change, possible := r.engine.constraints[c].Relax(&r.input, r.view.Nodes[node], verdicts[c])
		if possible && (smallest[c].Text == "" || change.Cost < smallest[c].Cost) {
			smallest[c] = change
		}
	}
	var sentences []string
	for _, change := range smallest {
		if change.Text != "" {
			sentences = append(sentences, change.Text)
		}
	}
	if size >= cluster.MinVMMemory {
		sentences = append(sentences, fmt.Sprintf("a VM of %s would fit on %s", wholeUnits(size), r.name(roomiest)))
	}
	return strings.Join(sentences, "; ")
}

// onlyRefusal finds the constraint that refuses, if exactly one does.
func onlyRefusal(verdicts []rule.Verdict) (int, bool) {
	found, refusals := 0, 0
	for c := range verdicts {
		if !verdicts[c].Passed {
			found, refusals = c, refusals+1
		}
	}
	return found, refusals == 1
}

// largestFit is the largest VM, that the node would take if nothing but memory is in the way; else 0.
func (r *run) largestFit(verdicts []rule.Verdict) units.Bytes {
	fit := math.Inf(1)
	for _, verdict := range verdicts {
		if verdict.Unit != rule.Bytes {
			if !verdict.Passed {
				return 0
			}
			continue
		}
		besides := verdict.Needed - float64(r.input.Memory) // the overhead
		fit = math.Min(fit, verdict.Available-besides-1)    // has to be exceeded
	}
	if fit < 0 || math.IsInf(fit, 1) {
		return 0
	}
	return units.Bytes(fit)
}

// wholeUnits rounds a size down, so that what it says is true to the letter: to GiB once that loses little, else to MiB.
func wholeUnits(size units.Bytes) string {
	const coarse = 16 * units.GiB
	if size >= coarse {
		return fmt.Sprintf("%d GiB", size/units.GiB)
	}
	return fmt.Sprintf("%d MiB", size/units.MiB)
}
