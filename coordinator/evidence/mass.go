package evidence

import (
	"fmt"
	"time"

	"berth/coordinator/model"
)

// counted is a node that counts when it is asked how many are silent.
type counted struct {
	domain string // the rack or pod that it fails with; empty: none is declared
	silent bool
	long   bool // for so long that it is no slip of the network
}

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
// fails meanwhile is judged as if the rack were one node. A domain of half the nodes or more is none, and one
// of which a node was heard a moment ago is not dark.
func countSilent(nodes []counted) masses {
	type domain struct{ long, all int }
	domains := map[string]domain{}
	silent, all := 0, 0
	for i := range nodes {
		one := &nodes[i]
		of := domains[one.domain]
		all++
		of.all++
		if one.silent {
			silent++
		}
		if one.long {
			of.long++
		}
		domains[one.domain] = of
	}
	var found masses
	darkest, many := domain{}, 0
	for name, of := range domains {
		if name != "" && of.all > 1 && of.long == of.all && 2*of.all < all {
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
