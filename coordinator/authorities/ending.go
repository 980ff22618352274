package authorities

import (
	"fmt"
	"slices"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/shared/pki"
)

// What people call the authorities.
const (
	Cluster = "cluster"
	Libvirt = "libvirt"
	QEMU    = "qemu"
)

// Names are all of them.
var Names = []string{Cluster, Libvirt, QEMU}

// Called is what people call the authority of a purpose.
func Called(purpose pki.Purpose) string {
	if purpose == pki.Control {
		return Libvirt
	}
	return QEMU
}

// remindBefore are how long before the end of an authority there is an event, the longest first. Nothing that it has signed is good for
// longer than itself, and to replace it takes as long as the last operator is on holiday.
var remindBefore = []time.Duration{pki.AuthorityNotice, 60 * 24 * time.Hour, 14 * 24 * time.Hour}

// End is when an authority that signs ends.
type End struct {
	Name string // cluster, libvirt or qemu
	ID   string
	At   time.Time
}

// Ends are those of the authorities that sign, the first to end first.
func Ends(issuing *pki.Authority, hypervisors pki.Hypervisors) []End {
	ends := []End{{Name: Cluster, ID: issuing.ID(), At: issuing.Ends()}}
	for _, purpose := range pki.Purposes {
		if one := hypervisors[purpose]; one != nil {
			ends = append(ends, End{Name: Called(purpose), ID: one.ID(), At: one.Ends()})
		}
	}
	slices.SortStableFunc(ends, func(a, b End) int { return a.At.Compare(b.At) })
	return ends
}

// Soon tells that somebody should do something about it.
func (e *End) Soon(at time.Time) bool { return e.At.Sub(at) <= pki.AuthorityNotice }

// String says when it ends, and what to do.
func (e *End) String() string {
	next := "'berth ca rotate " + e.Name + "' replaces it"
	if e.Name == Cluster {
		next = "'berth ca rotate' replaces it"
	}
	return fmt.Sprintf("the authority %s (%s) ends at %s, and all that it has signed: %s", e.Name, Short(e.ID),
		e.At.UTC().Format(time.RFC3339), next)
}

// Remind is the change that says in the history that an authority ends, once at each of the times before that. False: there is nothing to
// say, or it was said.
func Remind(x *state.Snapshot, issuing *pki.Authority, hypervisors pki.Hypervisors, at time.Time) (state.Command, bool) {
	if x.FeatureLevel() < state.IdentityLevel {
		return state.Command{}, false
	}
	b := open(x, Cluster)
	var told []string // of those that sign today; others are forgotten
	var events []model.Event
	for _, end := range Ends(issuing, hypervisors) {
		var due string
		for _, before := range remindBefore {
			if mark := fmt.Sprintf("%s %d", end.ID, int(before.Hours()/24)); end.At.Sub(at) <= before {
				due = mark
				told = append(told, mark)
			}
		}
		if due != "" && !slices.Contains(b.list.Told, due) {
			one := Authority{ID: end.ID}
			events = append(events, b.event(at, "authority.ending", &one, end.String()))
		}
	}
	if len(events) == 0 {
		return state.Command{}, false
	}
	b.list = b.list.OrOwn(Own(issuing))
	b.list.Told = told
	command, err := b.put("remind of an authority's end")
	command.Events = events
	return command, err == nil
}
