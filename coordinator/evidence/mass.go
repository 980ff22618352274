package evidence

import (
	"fmt"
	"time"

	"berth/coordinator/model"
)

// FencedCounts is for how long a node that its device or its watchdog has proven off counts as one of those that are silent. A fault
// that spreads would take the nodes one after the other if it did not count at all; if it counted for ever, a few machines that are
// never mended would end all proof.
const FencedCounts = 15 * time.Minute

// masses are how many nodes are silent at once, in all and in one failure domain.
type masses struct {
	all  string // so many that it is more likely the fault of what lies between; empty: it is not so
	dark string // the one failure domain of which no node answers; empty: there is none, or there are several
	rack string // why nothing is done about that one by itself; empty: it is small
}

// countSilent counts the silent nodes by failure domain: a rack that has lost its power is one failure and not many, so whatever else
// fails meanwhile is judged as if the rack were one node. A domain of half the nodes or more is none. Nodes in maintenance do not
// count, nor do those that a person has seen to be off.
func countSilent(nodes []Silence) masses {
	type domain struct{ silent, all int }
	domains := map[string]domain{}
	silent, all := 0, 0
	for i := range nodes {
		one := &nodes[i]
		if !one.counts() {
			continue
		}
		of := domains[one.Domain]
		all++
		of.all++
		if l := one.Liveness; l == model.Unreachable || l == model.Suspect {
			silent++
			of.silent++
		}
		domains[one.Domain] = of
	}
	var found masses
	darkest, many := domain{}, 0
	for name, of := range domains {
		if name != "" && of.all > 1 && of.silent == of.all && 2*of.all < all {
			found.dark, darkest = name, of
			many++
		}
	}
	if many != 1 {
		return masses{all: model.MassSilence(silent, all)}
	}
	found.all = model.MassSilence(silent-darkest.all+1, all-darkest.all+1)
	if model.MassSilence(darkest.all, all) != "" {
		found.rack = fmt.Sprintf("all %d nodes of %s are silent at once", darkest.all, found.dark)
	}
	return found
}

// counts tells whether a node is one of those that are counted.
func (s *Silence) counts() bool {
	if s.Node.Maintenance {
		return false
	}
	return !s.Node.Fenced() || s.Node.Fencing.Method != model.FenceManual && s.OffFor < FencedCounts
}

// rackOff says how a person's word is given for a whole failure domain.
func (s *Silence) rackOff() string {
	if s.Node.Rack() != s.Domain {
		return SeenOff(s.Node.Name) + ", and so for each of its nodes"
	}
	return fmt.Sprintf("if its machines are off, say so with 'berth node fence --label %s --confirmed-off'", s.Domain)
}
