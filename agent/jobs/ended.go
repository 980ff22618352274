package jobs

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"berth/agent/hypervisor"
	"berth/agent/telemetry"
)

// listEvery is the pause between tries to list the guests, and to journal what they run with.
const listEvery = time.Second

// told is what this life of the agent knows about a guest from events and looks.
type told string

const (
	toldRuns   told = "runs"
	toldStands told = "stands" // paused by a migration or by somebody
	toldEnded  told = "ended"  // ended here after it ran here: it was not handed over
	toldLeft   told = "left"   // by a migration, or it ended while it stood still: it did not run on here
)

// endings tell a guest that was handed over from one that ran on here and ended. Both leave nothing. When the target's reply
// is lost, libvirt lets the guest run on at the source, and from then on the target's copy is older. Only events show that.
// Where events were missed, because the agent or libvirtd was away, endings says nothing. The zero value is ready.
type endings struct {
	mu     sync.Mutex
	guests map[string]ending // by UUID
	gaps   int               // how often events may have been missed
}

type ending struct {
	told  told
	at    time.Time // when that was told
	since time.Time // when it was first seen gone without an event; zero: it was not

	// A guest leaves for another node only after it has been stopped. So one that ran from ranSince on cannot have left since. Whole
	// tells that ranSince is when it came here, by a start or by a migration.
	ranSince time.Time
	whole    bool
	detail   string // the hypervisor's word for why it ended

	// Of one that its hypervisor stops because it has panicked, until it is ended for that: it has not left, and stops nowhere else.
	panicked bool
	ran      *ending // as which it ran before it stood still
}

// saw takes an event. Lists tells that a listing of the guests has to follow.
func (e *endings) saw(event hypervisor.Event, now time.Time) (lists bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch event.Kind {
	case hypervisor.EventDisconnected, hypervisor.EventReconnected:
		clear(e.guests)
		e.gaps++
		return event.Kind == hypervisor.EventReconnected
	case hypervisor.EventStarted:
		if event.Detail == hypervisor.DetailMigrated {
			e.tell(event.UUID, ending{told: toldStands, at: now, whole: true})
		} else {
			e.tell(event.UUID, ending{told: toldRuns, at: now, ranSince: now, whole: true})
		}
	case hypervisor.EventResumed:
		if was := e.guests[event.UUID]; was.told != toldRuns { // a start is told twice: as one, and as a guest that was resumed
			e.tell(event.UUID, ending{told: toldRuns, at: now, ranSince: now, whole: was.told == toldStands && was.whole})
		}
	case hypervisor.EventSuspended:
		was := e.guests[event.UUID]
		arrives := was.told == toldStands && was.whole // it has not run here yet
		stands := ending{told: toldStands, at: now, whole: arrives, panicked: was.panicked}
		if was.told == toldRuns {
			stands.ran = &was
		}
		e.tell(event.UUID, stands)
	case hypervisor.EventCrashed:
		if was, known := e.guests[event.UUID]; known {
			was.panicked = true
			e.guests[event.UUID] = was
		}
	case hypervisor.EventStopped:
		was := e.guests[event.UUID]
		if was.panicked && was.ran != nil && event.Detail == hypervisor.DetailCrashed {
			was = *was.ran
		}
		switch {
		case event.Detail == hypervisor.DetailSaved:
			delete(e.guests, event.UUID) // its memory is kept: it has not ended, and whoever starts it lets it run on
		case event.Detail == hypervisor.DetailMigrated, was.told == toldStands:
			e.tell(event.UUID, ending{told: toldLeft, at: now})
		case was.told == toldRuns:
			e.tell(event.UUID, ending{told: toldEnded, at: now, ranSince: was.ranSince, whole: was.whole, detail: event.Detail})
		default:
			delete(e.guests, event.UUID)
		}
	}
	return false
}

func (e *endings) tell(vm string, what ending) {
	if e.guests == nil {
		e.guests = map[string]ending{}
	}
	e.guests[vm] = what
}

// missed is how often events may have been missed until now.
func (e *endings) missed() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.gaps
}

// listed records what a listing shows about guests without a newer event. Gaps is what missed returned before the listing: a
// listing from before a gap says nothing.
func (e *endings) listed(domains []hypervisor.Domain, gaps int, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if gaps != e.gaps {
		return
	}
	for i := range domains {
		if _, known := e.guests[domains[i].UUID]; known {
			continue
		}
		switch domains[i].State {
		case hypervisor.Running:
			e.tell(domains[i].UUID, ending{told: toldRuns, at: now, ranSince: now})
		case hypervisor.Paused, hypervisor.PausedMigration:
			e.tell(domains[i].UUID, ending{told: toldStands, at: now})
		}
	}
}

// unseen tells that nothing is known of how a guest went that is gone: events were missed.
func (e *endings) unseen(vm string, seen sight) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, known := e.guests[vm]
	return seen.gone() && !known
}

// how tells whether a guest that is gone ended here. It reports false while events may still come, because they arrive a
// moment after a look shows the end.
func (e *endings) how(vm string, seen sight, now time.Time) (ended, sure bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	guest, known := e.guests[vm]
	switch {
	case !seen.gone() || !known:
		return false, true
	case guest.told == toldEnded, guest.told == toldLeft:
		return guest.told == toldEnded, true
	case guest.since.IsZero():
		guest.since = now
		e.guests[vm] = guest
		return false, false
	case now.Sub(guest.since) < surelyAbsent:
		return false, false
	default:
		return guest.told == toldRuns, true
	}
}

// forget drops entries that are so old that nobody asks for them.
func (e *endings) forget(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.guests, func(_ string, guest ending) bool {
		return (guest.told == toldEnded || guest.told == toldLeft) && now.Sub(guest.at) > keepAnswers
	})
}

// endingsTold is for how long it is reported how a guest ended.
const endingsTold = 24 * time.Hour

// lately is how guests ended here, by UUID: those of which it was seen, and not long ago.
func (e *endings) lately(now time.Time) []telemetry.Ending {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []telemetry.Ending
	for vm, guest := range e.guests {
		if ago := now.Sub(guest.at); guest.told == toldEnded && ago <= endingsTold {
			all = append(all, telemetry.Ending{
				UUID: vm, Ago: ago, Watched: now.Sub(guest.ranSince), Whole: guest.whole, Detail: guest.detail,
			})
		}
	}
	slices.SortFunc(all, func(a, b telemetry.Ending) int { return cmp.Compare(a.UUID, b.UUID) })
	return all
}

// Endings are how guests ended here, by UUID, as far as this life of the agent has seen it.
func (j *Jobs) Endings() []telemetry.Ending { return j.endings.lately(j.now()) }

// Saw takes an event of the hypervisor. The subscriber must pass on all events, in their order.
func (j *Jobs) Saw(event hypervisor.Event) {
	if j.endings.saw(event, j.now()) && j.ctx.Err() == nil {
		j.background(j.list)
	}
	if j.runs.Saw(event, j.now()) && j.ctx.Err() == nil {
		j.background(j.writeRuns)
	}
}

// list lists the guests, and tries until it succeeds.
func (j *Jobs) list() {
	for {
		gaps := j.endings.missed()
		domains, err := j.Hypervisor.Domains(j.ctx)
		if err == nil {
			j.endings.listed(domains, gaps, j.now())
			return
		}
		if j.sleep(listEvery) != nil {
			return
		}
	}
}
