// Package byhand keeps what people have done with guests of the simulator beside Berth: when, and from where they have moved them.
package byhand

import (
	"maps"
	"slices"
	"time"

	"berth/integration/faults/machine"
)

// Deeds are what was done in a site. The zero value is none.
type Deeds struct {
	at   map[string]time.Time // by VM: when it was started or moved last
	from map[string]string    // and from which machine, until that falls
}

// Note takes note that somebody has started a guest, or, where from is not empty, has moved it from that machine.
func (d *Deeds) Note(vm, from string, at time.Time) {
	if d.at == nil {
		d.at, d.from = map[string]time.Time{}, map[string]string{}
	}
	if d.at[vm] = at; from != "" {
		d.from[vm] = from
	}
}

// At is when somebody has started or moved a guest last; zero: nobody has.
func (d *Deeds) At(vm string) time.Time { return d.at[vm] }

// Falls ends the guests that somebody has moved off a machine which falls before the leader has had a listing of it without them.
// Nobody can know then that they left it: all that is ever heard is that the machine has booted, or is off. Listed is when it had one last.
func (d *Deeds) Falls(from *machine.Machine, machines []*machine.Machine, listed func() time.Time) {
	for _, vm := range slices.Sorted(maps.Keys(d.at)) {
		if d.from[vm] != from.ID {
			continue
		}
		delete(d.from, vm)
		if !listed().After(d.at[vm]) {
			end(machines, vm)
		}
	}
}

// unseenFor is how long it may take a leader to write down that somebody has moved a guest: until its next look, and the one after.
const unseenFor = 15 * time.Second

// EndUnseen ends the guests that somebody has moved just before the leader was gone who could have seen that. Nothing is promised of
// them: the machine that they left may be gone as well before the next leader hears it.
func (d *Deeds) EndUnseen(machines []*machine.Machine, now time.Time) {
	for _, vm := range slices.Sorted(maps.Keys(d.at)) {
		if now.Sub(d.at[vm]) < unseenFor {
			end(machines, vm)
		}
	}
}

func end(machines []*machine.Machine, vm string) {
	for _, h := range machines {
		h.Crash(vm)
	}
}
