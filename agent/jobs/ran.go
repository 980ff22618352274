package jobs

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

// lastRuns keep what guests of this node run with whose devices were changed while they ran. When such a guest ends, the hypervisor has
// forgotten it, and the coordinator may not have been told: its leader had just died, or the host was busy. What was changed is kept on
// disk, for an agent that ends right after. The zero value is ready.
type lastRuns struct {
	mu      sync.Mutex
	guests  map[string]lastRun // by UUID
	dirty   map[string]bool    // that are to be written
	writing bool
}

type lastRun struct {
	Epoch   uint64    `json:"epoch"`
	Devices []byte    `json:"devices"` // protobuf of berth.v1.Devices
	At      time.Time `json:"at"`      // when that was seen

	changed bool      // since it was started, or nobody knows: it is told when the guest ends
	ended   time.Time // when it was seen to end; zero: it was not
}

// saw takes an event. It is true if the journal is to be written, by write.
func (l *lastRuns) saw(event hypervisor.Event, now time.Time) (write bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, known := l.guests[event.UUID]
	if l.guests == nil {
		l.guests = map[string]lastRun{}
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
		devices, err := proto.MarshalOptions{Deterministic: true}.Marshal(telemetry.Devices(event.Ran.Devices, true))
		if err != nil {
			return false // text that is not UTF-8: it could not be told either
		}
		same := known && before.Epoch == event.Ran.Epoch
		if same && slices.Equal(before.Devices, devices) {
			return false
		}
		arrived := known && before.Epoch == 0
		is := lastRun{Epoch: event.Ran.Epoch, Devices: devices, At: now, changed: same || event.Ran.Found || arrived}
		if same {
			is.ended = before.ended // libvirt tells an end by another way, and perhaps sooner
		}
		l.guests[event.UUID] = is
		write = same
	}
	if write {
		if l.dirty == nil {
			l.dirty = map[string]bool{}
		}
		l.dirty[event.UUID] = true
		write, l.writing = !l.writing, true
	}
	return write
}

// next is a line that is to be written, or taken away if its guest has left. The writer that finds none has ended.
func (l *lastRuns) next() (vm string, line *lastRun) {
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

// told are the runs that a coordinator may not know of yet, of guests that may have ended, by UUID.
func (l *lastRuns) told(now time.Time) []telemetry.LastRun {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []telemetry.LastRun
	for _, vm := range slices.Sorted(maps.Keys(l.guests)) {
		run := l.guests[vm]
		devices := &berthv1.Devices{}
		if run.Epoch == 0 || !run.changed || now.Sub(run.At) > keepAnswers || !run.ended.IsZero() && now.Sub(run.ended) > endingsTold ||
			proto.Unmarshal(run.Devices, devices) != nil {
			continue
		}
		all = append(all, telemetry.LastRun{UUID: vm, Epoch: run.Epoch, Devices: devices})
	}
	return all
}

// forget drops those of guests that ended so long ago that nobody asks any more.
func (l *lastRuns) forget(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.guests, func(_ string, run lastRun) bool { return !run.ended.IsZero() && now.Sub(run.ended) > keepAnswers })
}

// LastRuns are what guests of this node run with whose devices were changed, by UUID. Some have ended.
func (j *Jobs) LastRuns() []telemetry.LastRun { return j.runs.told(j.now()) }

// writeRuns writes what has changed to the journal.
func (j *Jobs) writeRuns() {
	for {
		vm, line := j.runs.next()
		if vm == "" {
			return
		}
		if err := j.journal.ran(vm, line); err != nil {
			j.Logger.Error("what a guest runs with could not be journalled", "vm", vm, "error", err)
		}
	}
}

// ran records what a guest runs with; nil: it has left.
func (j *journal) ran(vm string, line *lastRun) error {
	return j.storage.Update(func(tx Tx) error {
		if line == nil {
			return tx.Bucket(bucketRan).Delete([]byte(vm))
		}
		text, err := json.Marshal(line)
		if err != nil {
			return err
		}
		return tx.Bucket(bucketRan).Put([]byte(vm), text)
	})
}

// runs are those that an earlier life of the agent has recorded.
func (j *journal) runs() (runs map[string]lastRun, err error) {
	runs = map[string]lastRun{}
	err = j.storage.View(func(tx Tx) error {
		return tx.Bucket(bucketRan).ForEach(func(vm, text []byte) error {
			run := lastRun{changed: true}
			if err := json.Unmarshal(text, &run); err != nil {
				return err
			}
			runs[string(vm)] = run
			return nil
		})
	})
	return runs, err
}
