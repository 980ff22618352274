package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Observer watches from outside of the product and of libvirt which guest runs where: ten times a second it lists the
// QEMU processes of all hosts, and it hears from each of them when its guest starts and stops executing. A process that
// only receives a migration does not run its guest, so two processes of one UUID are no fault, but two running ones are.
type Observer struct {
	begun  time.Time
	cancel context.CancelFunc
	done   sync.WaitGroup
	stop   sync.Once

	mu       sync.Mutex
	runs     []*Run
	errs     []error
	planted  map[string]bool // names of guests
	followed sync.Map        // sockets of monitors: a QEMU that becomes a daemon is two processes for a moment, with one of them
}

// Run is an uninterrupted time in which a guest executed on a host.
type Run struct {
	Guest string // UUID
	Name  string
	Host  string
	PID   int
	// Incoming: its process was started to receive the guest, by a migration or from a file.
	Incoming bool
	From     time.Time
	To       time.Time // zero while it lasts
}

// Overlap is a time in which one guest ran twice.
type Overlap struct {
	First, Second Run
	Length        time.Duration
}

func (o Overlap) String() string {
	return fmt.Sprintf("guest %s (%s) ran on %s and on %s for %v", o.First.Name, o.First.Guest, o.First.Host, o.Second.Host, o.Length)
}

// observerPeriod is the time between two looks at the process table.
const observerPeriod = 100 * time.Millisecond

// Observe starts to watch all hosts of the lab, until Stop.
func (l *Lab) Observe() *Observer {
	ctx, cancel := context.WithCancel(context.Background())
	o := &Observer{begun: time.Now(), cancel: cancel}
	o.done.Go(func() {
		known := map[string]bool{} // host, process, and guest: within minutes another guest's process may get the same ID
		for tick := time.NewTicker(observerPeriod); ; {
			for _, host := range l.Hosts {
				for _, process := range host.QEMUs() {
					key := fmt.Sprint(host.Name, process.namespace, process.PID, process.UUID)
					if !known[key] {
						known[key] = true
						o.done.Go(func() { o.watch(ctx, host, process) })
					}
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return o
}

// watch follows one QEMU process until it ends.
func (o *Observer) watch(ctx context.Context, host *Host, process QEMU) {
	seen := time.Now()
	var m *monitor
	socket := host.Path(monitorDir + "/" + process.UUID + ".sock")
	err := await(ctx, "the monitor of "+process.Name, 5*time.Second, func() (bool, error) {
		if !process.alive() {
			return true, nil
		}
		var err error
		if m, err = dialMonitor(socket); err == nil {
			o.followed.Store(socket, true)
		}
		return err == nil, err
	})
	if m == nil {
		if _, followed := o.followed.Load(socket); err != nil && ctx.Err() == nil && process.alive() && !followed {
			// What cannot be asked counts as running: a fault must not hide in a broken monitor.
			o.begin(host, process, seen)
			o.mu.Lock()
			o.errs = append(o.errs, fmt.Errorf("observe %s on %s: %w", process.Name, host.Name, err))
			o.mu.Unlock()
		}
		return
	}
	defer m.conn.Close()
	defer o.followed.Delete(socket)
	stop := context.AfterFunc(ctx, func() { m.conn.Close() })
	defer stop()
	if err := m.send("query-status"); err != nil {
		return
	}
	if !process.Incoming {
		// It may have run from its first moment on.
		seen = process.started(seen)
	}
	var run *Run
	for {
		message, err := m.read()
		switch {
		case err != nil:
			o.end(run, time.Now())
			return
		case message.Return != nil && message.Return.Running && run == nil:
			if process.Incoming {
				seen = time.Now() // it may have waited for its guest until a moment ago
			}
			run = o.begin(host, process, seen)
		case message.Event == "RESUME" && run == nil:
			run = o.begin(host, process, message.time())
		case message.Event == "STOP":
			o.end(run, message.time())
			run = nil
		}
	}
}

func (o *Observer) begin(host *Host, process QEMU, at time.Time) *Run {
	o.mu.Lock()
	defer o.mu.Unlock()
	run := &Run{Guest: process.UUID, Name: process.Name, Host: host.Name, PID: process.PID, Incoming: process.Incoming, From: at}
	o.runs = append(o.runs, run)
	return run
}

func (o *Observer) end(run *Run, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if run != nil {
		run.To = at
	}
}

// Runs are all times in which guests ran so far, oldest first.
func (o *Observer) Runs() []Run {
	o.mu.Lock()
	defer o.mu.Unlock()
	var runs []Run
	for _, run := range o.runs {
		runs = append(runs, *run)
	}
	slices.SortStableFunc(runs, func(a, b Run) int { return a.From.Compare(b.From) })
	return runs
}

// Running is how many processes run a guest (UUID or name) now.
func (o *Observer) Running(guest string) int {
	count := 0
	for _, run := range o.Runs() {
		if (run.Guest == guest || run.Name == guest) && run.To.IsZero() {
			count++
		}
	}
	return count
}

// Plant says that the test itself runs guests of these names twice: what Planted tells of them is no fault.
func (o *Observer) Plant(guests ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.planted == nil {
		o.planted = map[string]bool{}
	}
	for _, guest := range guests {
		o.planted[guest] = true
	}
}

// Overlaps are all times so far in which one guest ran twice that was not planted. There should be none, ever.
func (o *Observer) Overlaps() []Overlap { return o.overlaps(false) }

// Planted are all times so far in which a guest ran twice because the test made it.
func (o *Observer) Planted() []Overlap { return o.overlaps(true) }

func (o *Observer) overlaps(planted bool) []Overlap {
	runs := o.Runs()
	o.mu.Lock()
	defer o.mu.Unlock()
	runs = slices.DeleteFunc(runs, func(run Run) bool { return o.planted[run.Name] != planted })
	return overlaps(runs, time.Now())
}

// Errors are the guests that could not be watched. They count as running.
func (o *Observer) Errors() []error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.errs)
}

// Stop ends the watch; what was seen stays.
func (o *Observer) Stop() {
	o.stop.Do(func() {
		o.cancel()
		o.done.Wait()
		watched.add(o)
	})
}

// Faults ends the watch and is what should never be: guests that ran twice, and guests that could not be watched.
func (o *Observer) Faults() []error {
	o.Stop()
	faults := o.Errors()
	for _, overlap := range o.Overlaps() {
		faults = append(faults, errors.New(overlap.String()))
	}
	return faults
}

// watched is what the observers of this process have seen until they were stopped.
var watched tally

type tally struct {
	mu             sync.Mutex
	time           time.Duration
	runs, overlaps int
}

func (t *tally) add(o *Observer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.time += time.Since(o.begun)
	t.runs += len(o.Runs())
	t.overlaps += len(o.Overlaps())
}

// Watched is one line on what the observers of this process have seen, for the goal that no guest ever runs twice.
func Watched(suite string) string {
	watched.mu.Lock()
	defer watched.mu.Unlock()
	verdict := "met"
	if watched.overlaps > 0 || watched.runs == 0 {
		verdict = "not met"
	}
	return fmt.Sprintf("GOAL G7: %s: %.2f h watched, %d runs of guests, %d overlaps | wanted 0 overlaps | %s",
		suite, watched.time.Hours(), watched.runs, watched.overlaps, verdict)
}

// overlaps compares every two runs of a guest in different processes.
func overlaps(runs []Run, now time.Time) []Overlap {
	var found []Overlap
	for i, a := range runs {
		for _, b := range runs[i+1:] {
			if a.Guest != b.Guest || a.PID == b.PID {
				continue
			}
			from, to := b.From, a.To // b began last
			if to.IsZero() {
				to = now
			}
			if !b.To.IsZero() && b.To.Before(to) {
				to = b.To
			}
			if to.After(from) {
				found = append(found, Overlap{a, b, to.Sub(from)})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b Overlap) int { return cmp.Compare(b.Length, a.Length) })
	return found
}
