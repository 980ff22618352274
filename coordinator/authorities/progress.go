package authorities

import (
	"slices"
	"time"

	"berth/coordinator/identities"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/shared/pki"
)

// Progress is how far the replacement of an authority is. The zero value: none is under way.
type Progress struct {
	New     string // ID of the authority that is to follow, or follows
	State   State  // of that one
	Waits   []string
	Passed  []string // who is not waited for, because somebody has said so
	Tokens  bool     // made while the authority before was pinned, and still good
	Waiting string   // for what, in words; empty: for nothing any more
}

// ProgressOf tells how far the replacement is.
func ProgressOf(x *state.Snapshot, at time.Time) Progress {
	list := Of(x)
	newest := list.newest()
	if newest == nil {
		return Progress{}
	}
	p := Progress{New: newest.ID, State: newest.State}
	for _, identity := range waiting(x, &list, at) {
		if slices.Contains(list.Passed, identity.ID) {
			p.Passed = append(p.Passed, identities.Subject(&identity))
			continue
		}
		p.Waits = append(p.Waits, identities.Subject(&identity))
	}
	p.Tokens = newest.State == Issuing && pinned(x, &list, at)
	switch {
	case len(p.Waits) > 0 && newest.State == Announced:
		p.Waiting = "until all have said that they trust it"
	case len(p.Waits) > 0:
		p.Waiting = "until all have a certificate by it"
	case p.Tokens:
		p.Waiting = "until the tokens have ended that were made before, an hour at most"
	}
	return p
}

// WouldWait are those whom a replacement that began now would wait for.
func WouldWait(x *state.Snapshot, at time.Time) []string {
	var names []string
	for _, identity := range concerned(x, at) {
		names = append(names, identities.Subject(&identity))
	}
	slices.Sort(names)
	return names
}

// Dependants counts, by authority, the identities that have a certificate in use by it. Unknown is under the empty ID.
func Dependants(x *state.Snapshot, at time.Time) map[string]int {
	counts := map[string]int{}
	for _, identity := range concerned(x, at) {
		var by []string
		for _, key := range identity.Keys {
			if !slices.Contains(by, key.Authority) {
				by = append(by, key.Authority)
			}
		}
		if len(by) == 0 {
			by = []string{""}
		}
		for _, id := range by {
			counts[id]++
		}
	}
	return counts
}

// Adopt is the change that makes the list what a member's files say, for a state that is older than these: it was restored where the list
// of that day was not at hand. An authority that signs here and is in no list makes that known. False: the list knows it.
func Adopt(x *state.Snapshot, issuing *pki.Authority, trusted []string, at time.Time) (state.Command, bool) {
	list := Of(x)
	if len(list.All) == 0 || list.Named(issuing.ID()) != nil {
		return state.Command{}, false
	}
	for i := range list.All {
		one := &list.All[i]
		switch {
		case one.State == Retired:
		case slices.Contains(trusted, one.ID):
			list.become(one, Outgoing, at)
		default:
			list.become(one, Retired, at)
		}
	}
	own := Own(issuing)
	own.Since = at
	list.All, list.Passed = append(list.All, own), nil
	command, err := list.put(x, "adopt authority")
	command.Events = []model.Event{event(at, "authority.adopted", &own,
		"signs here, and the restored state does not know it: what the files of the coordinators say counts")}
	return command, err == nil
}
