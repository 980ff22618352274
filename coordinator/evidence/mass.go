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

// Fleet are all nodes as they count when it is asked how many are silent at once, so that a look at those which are not as they should be
// need not look at all others. The zero value has none.
type Fleet struct {
	of      map[string]counted // by node ID
	domains map[string]tally
	all     tally
}

// tally is how many nodes there are of something.
type tally struct{ silent, long, all int }

func (t tally) plus(one counted, times int) tally {
	t.all += times
	if one.silent {
		t.silent += times
	}
	if one.long {
		t.long += times
	}
	return t
}

func (f *Fleet) add(node string, one counted) {
	if f.of == nil {
		f.of, f.domains = map[string]counted{}, map[string]tally{}
	}
	f.of[node] = one
	f.domains[one.domain], f.all = f.domains[one.domain].plus(one, 1), f.all.plus(one, 1)
}

// Forget takes out a node that is no member any more.
func (f *Fleet) Forget(node string) {
	one, is := f.of[node]
	if !is {
		return
	}
	delete(f.of, node)
	f.domains[one.domain], f.all = f.domains[one.domain].plus(one, -1), f.all.plus(one, -1)
	if f.domains[one.domain].all == 0 {
		delete(f.domains, one.domain)
	}
}

// masses counts the silent nodes by failure domain: a rack that has lost its power is one failure and not many, so whatever else
// fails meanwhile is judged as if the rack were one node. A domain of half the nodes or more is none, and one
// of which a node was heard a moment ago is not dark.
func (f *Fleet) masses() masses {
	var found masses
	darkest, many := tally{}, 0
	if f.all.long > 1 {
		for name, of := range f.domains {
			if name != "" && of.all > 1 && of.long == of.all && 2*of.all < f.all.all {
				found.dark, darkest = name, of
				many++
			}
		}
	}
	if many != 1 {
		return masses{all: model.MassSilence(f.all.silent, f.all.all)}
	}
	found.all = model.MassSilence(f.all.silent-darkest.all+1, f.all.all-darkest.all+1)
	if model.MassSilence(darkest.all, f.all.all) != "" {
		found.rack = fmt.Sprintf("all %d nodes of %s are silent at once", darkest.all, found.dark)
	}
	return found
}
