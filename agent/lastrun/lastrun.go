// Package lastrun keeps what guests run with whose devices were changed while they ran, for the time after they have ended.
package lastrun

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"berth/agent/hypervisor"
	"berth/agent/telemetry"
	berthv1 "berth/shared/gen/berth/v1"
)

// Runs keep what guests of this node run with whose devices were changed while they ran. When such a guest ends, the hypervisor has
// forgotten it, and the coordinator may not have been told: its leader had just died, or the host was busy. What was changed is kept on
// disk, for an agent that ends right after. The zero value is ready.
type Runs struct {
	mu      sync.Mutex
	guests  map[string]Run  // by UUID
	dirty   map[string]bool // that are to be written
	writing bool
}

// Run is what one guest runs with.
type Run struct {
	Epoch   uint64    `json:"epoch"`
	Devices []byte    `json:"devices"` // protobuf of berth.v1.Devices
	At      time.Time `json:"at"`      // when that was seen

	changed bool      // since it was started, or nobody knows: it is told when the guest ends
	ended   time.Time // when it was seen to end; zero: it was not
}

// New are the runs that an earlier life of the agent has written down, each as Line has read it.
func New(kept map[string]Run) Runs { return Runs{guests: kept} }

// Line is what was written of a run. It may have been changed before that.
func Line(text []byte) (Run, error) {
	run := Run{changed: true}
	return run, json.Unmarshal(text, &run)
}

// Saw takes an event. It is true if the journal is to be written, by write.
func (l *Runs) Saw(event hypervisor.Event, now time.Time) (write bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, known := l.guests[event.UUID]
	if l.guests == nil {
		l.guests = map[string]Run{}
	}
	switch event.Kind {
	case hypervisor.EventStarted, hypervisor.EventResumed:
		if event.Detail == hypervisor.DetailMigrated { // nobody here knows what was changed of it elsewhere
			before.changed = true
		} else if !known {
			return false
		}
		before.ended = time.Time{}
		l.guests[event.UUID] = before
	case hypervisor.EventStopped:
		switch {
		case !known, event.Detail == hypervisor.DetailSaved: // that one runs on
		case event.Detail == hypervisor.DetailMigrated: // its devices are the other node's
			delete(l.guests, event.UUID)
			write = before.changed
		default:
			before.ended = now
			l.guests[event.UUID] = before
		}
	case hypervisor.EventRan:
		if event.Ran.Devices == nil { // what it runs with cannot be told, and what it ran with before is not true any more
			delete(l.guests, event.UUID)
			write = known && before.changed
			break
		}
		devices, err := proto.MarshalOptions{Deterministic: true}.Marshal(telemetry.Devices(event.Ran.Devices, nil, true))
		if err != nil {
			return false // text that is not UTF-8: it could not be told either
		}
		same := known && before.Epoch == event.Ran.Epoch
		if same && event.Ran.Found { // it runs, whatever was kept of its last end
			before.ended = time.Time{}
			l.guests[event.UUID] = before
		}
		if same && slices.Equal(before.Devices, devices) || event.Ran.Ended && before.Epoch > event.Ran.Epoch {
			return false
		}
		if event.Ran.Ended { // nobody may have been told while it ran, and nobody tells it once more
			l.guests[event.UUID] = Run{Epoch: event.Ran.Epoch, Devices: devices, At: now, changed: true, ended: now}
			write = true
			break
		}
		arrived := known && before.Epoch == 0
		is := Run{Epoch: event.Ran.Epoch, Devices: devices, At: now, changed: same || event.Ran.Found || arrived}
		if same {
			is.ended = before.ended // libvirt tells an end by another way, and perhaps sooner
		}
		l.guests[event.UUID] = is
		write = same
	}
	return write && l.soil(event.UUID)
}

// soil notes that a guest is to be written. It is true if nobody writes yet.
func (l *Runs) soil(vm string) (write bool) {
	if l.dirty == nil {
		l.dirty = map[string]bool{}
	}
	l.dirty[vm] = true
	write, l.writing = !l.writing, true
	return write
}

// Again notes that a guest could not be written.
func (l *Runs) Again(vm string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dirty[vm] = true
}

// Read takes what was just read of a guest, if it was heard to run with something else: the file that tells of a change may have been
// missed, and what is told of the guest once it has ended must not be older than what was told before. Before is what was known when the
// reading began: what was heard meanwhile is newer.
func (l *Runs) Read(vm string, before Run, devices []byte, now time.Time) (write bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	is, known := l.guests[vm]
	if !known || is.Epoch != before.Epoch || !slices.Equal(is.Devices, before.Devices) || slices.Equal(is.Devices, devices) {
		return false
	}
	is.Devices, is.At, is.changed = devices, now, true
	l.guests[vm] = is
	return l.soil(vm)
}

// Of is what is known of a guest.
func (l *Runs) Of(vm string) Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.guests[vm]
}

// Next is a line that is to be written, or taken away if its guest has left. The writer that finds none has ended.
func (l *Runs) Next() (vm string, line *Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for vm = range l.dirty {
		delete(l.dirty, vm)
		if run, there := l.guests[vm]; there {
			line = &run
		}
		return vm, line
	}
	l.writing = false
	return "", nil
}

// Told are the runs that a coordinator may not know of yet, of guests that may have ended, by UUID: they are told for that long after
// the end, and for as long as they are kept in all.
func (l *Runs) Told(now time.Time, keep, tell time.Duration) []telemetry.LastRun {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []telemetry.LastRun
	for _, vm := range slices.Sorted(maps.Keys(l.guests)) {
		run := l.guests[vm]
		devices := &berthv1.Devices{}
		if run.Epoch == 0 || !run.changed || now.Sub(run.At) > keep || !run.ended.IsZero() && now.Sub(run.ended) > tell ||
			proto.Unmarshal(run.Devices, devices) != nil {
			continue
		}
		all = append(all, telemetry.LastRun{UUID: vm, Epoch: run.Epoch, Devices: devices})
	}
	return all
}

// Forget drops those of guests that ended so long ago that nobody asks any more.
func (l *Runs) Forget(now time.Time, keep time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.guests, func(_ string, run Run) bool { return !run.ended.IsZero() && now.Sub(run.ended) > keep })
}
