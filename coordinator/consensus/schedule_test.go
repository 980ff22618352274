package consensus

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/hashicorp/raft"

	"berth/coordinator/state"
)

// fault is something that happens to the members, and what ends it.
type fault struct {
	name string
	do   func(d *director)
}

// director carries out a schedule.
type director struct {
	*world
	healing sync.WaitGroup
	removed []*host
	down    map[*host]time.Time // until when
}

func (d *director) span(least, most time.Duration) time.Duration {
	return least + time.Duration(d.plan.Int64N(int64(most-least)))
}

func (d *director) any() *host { return d.hosts[d.plan.IntN(len(d.hosts))] }

// leader is who leads last, as far as anybody can tell.
func (d *director) leader() *host {
	var found *host
	term := uint64(0)
	for _, h := range d.hosts {
		if in := h.running(); in != nil && in.IsLeader() && in.Term() > term {
			found, term = h, in.Term()
		}
	}
	return found
}

func (d *director) leaderOrAny() *host {
	if h := d.leader(); h != nil {
		return h
	}
	return d.any()
}

// cutOff stops messages in these directions for a while.
func (d *director) cutOff(pairs [][2]raft.ServerAddress, lasts time.Duration) {
	d.wire.mu.Lock()
	for _, pair := range pairs {
		d.wire.cut[pair] = true
	}
	d.wire.mu.Unlock()
	d.seen.add(func(t *tally) { t.partitions++ })
	d.healing.Go(func() {
		time.Sleep(lasts)
		d.wire.mu.Lock()
		defer d.wire.mu.Unlock()
		for _, pair := range pairs {
			delete(d.wire.cut, pair)
		}
	})
}

func (d *director) between(a, b []*host, bothWays bool) (pairs [][2]raft.ServerAddress) {
	for _, x := range a {
		for _, y := range b {
			pairs = append(pairs, [2]raft.ServerAddress{raft.ServerAddress(x.id), raft.ServerAddress(y.id)})
			if bothWays {
				pairs = append(pairs, [2]raft.ServerAddress{raft.ServerAddress(y.id), raft.ServerAddress(x.id)})
			}
		}
	}
	return pairs
}

func (d *director) others(of *host) []*host {
	return slices.DeleteFunc(slices.Clone(d.hosts), func(h *host) bool { return h == of })
}

func (d *director) crash(h *host, lasts time.Duration) {
	h.crash()
	d.down[h] = time.Now().Add(lasts)
}

func (d *director) hang(h *host, lasts time.Duration) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if h.disk.hung != nil {
		return
	}
	released := make(chan struct{})
	h.disk.hung = released
	d.seen.add(func(t *tally) { t.hangs++ })
	d.healing.Go(func() {
		time.Sleep(lasts)
		h.disk.mu.Lock()
		defer h.disk.mu.Unlock()
		h.disk.hung = nil
		close(released)
	})
}

var faults = []fault{
	{"partition", func(d *director) {
		at := 1 + d.plan.IntN(len(d.hosts)-1)
		mixed := slices.Clone(d.hosts)
		d.plan.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		d.cutOff(d.between(mixed[:at], mixed[at:], true), d.span(300*time.Millisecond, 5*time.Second))
	}},
	{"leader alone", func(d *director) {
		h := d.leaderOrAny()
		d.cutOff(d.between([]*host{h}, d.others(h), true), d.span(300*time.Millisecond, 5*time.Second))
	}},
	{"one-way cut", func(d *director) {
		h := d.leaderOrAny()
		pairs := d.between([]*host{h}, d.others(h), false)
		if d.plan.IntN(2) == 0 {
			pairs = d.between(d.others(h), []*host{h}, false)
		}
		d.cutOff(pairs[:1+d.plan.IntN(len(pairs))], d.span(300*time.Millisecond, 5*time.Second))
	}},
	{"crash", func(d *director) { d.crash(d.any(), d.span(50*time.Millisecond, 3*time.Second)) }},
	{"crash of the leader", func(d *director) { d.crash(d.leaderOrAny(), d.span(50*time.Millisecond, 3*time.Second)) }},
	{"crash at a write", func(d *director) {
		h := d.leaderOrAny()
		h.disk.mu.Lock()
		defer h.disk.mu.Unlock()
		h.disk.fuse = 1 + d.plan.IntN(8)
		d.down[h] = time.Now().Add(d.span(50*time.Millisecond, 3*time.Second))
	}},
	{"crash of all", func(d *director) {
		for _, h := range d.hosts {
			d.crash(h, d.span(50*time.Millisecond, time.Second))
		}
	}},
	{"pause", func(d *director) {
		h, lasts := d.any(), d.span(200*time.Millisecond, 9*time.Second)
		d.hang(h, lasts)
		d.cutOff(d.between([]*host{h}, d.others(h), true), lasts)
	}},
	{"hung disk", func(d *director) { d.hang(d.any(), d.span(500*time.Millisecond, 15*time.Second)) }},
	{"broken disk", func(d *director) {
		h, lasts := d.any(), d.span(50*time.Millisecond, time.Second)
		h.disk.mu.Lock()
		h.disk.failing = errBroken
		h.disk.mu.Unlock()
		d.healing.Go(func() {
			time.Sleep(lasts)
			h.disk.mu.Lock()
			defer h.disk.mu.Unlock()
			h.disk.failing = nil
		})
	}},
	{"transfer", func(d *director) {
		h := d.leader()
		if h == nil {
			return
		}
		in := h.running()
		if in == nil {
			return
		}
		d.healing.Go(func() {
			if err := in.Transfer(in.alive); err == nil {
				d.seen.add(func(t *tally) { t.transfers++ })
			}
		})
	}},
	{"snapshot", func(d *director) {
		in := d.any().running()
		if in == nil {
			return
		}
		d.healing.Go(func() {
			if err := in.raft.Load().Snapshot().Error(); err == nil {
				d.seen.add(func(t *tally) { t.snapshots++ })
			}
		})
	}},
	{"removal", func(d *director) {
		leader, gone := d.leader(), d.any()
		if leader == nil || len(d.hosts) <= 3 && d.plan.IntN(3) > 0 || len(d.removed) > 1 {
			return
		}
		in := leader.running()
		if in == nil || len(in.Configuration()) < 3 {
			return
		}
		ctx, cancel := context.WithTimeout(in.alive, 3*time.Second)
		defer cancel()
		if err := in.Remove(ctx, gone.id); err != nil {
			d.log("%s is not removed: %v", gone.id, err)
			return
		}
		d.seen.add(func(t *tally) { t.changes++ })
		d.removed = append(d.removed, gone)
		if d.plan.IntN(2) == 0 {
			d.crash(gone, d.span(50*time.Millisecond, 3*time.Second))
		}
	}},
	{"addition", func(d *director) {
		leader := d.leader()
		if leader == nil || len(d.hosts) >= 7 {
			return
		}
		var h *host
		if len(d.removed) > 0 && d.plan.IntN(3) > 0 {
			h, d.removed = d.removed[0], d.removed[1:]
		} else {
			h = d.addHost(fmt.Sprintf("m%d", len(d.hosts)+1))
			h.run()
		}
		in := leader.running()
		if in == nil {
			return
		}
		ctx, cancel := context.WithTimeout(in.alive, 3*time.Second)
		defer cancel()
		if err := in.AddNonvoter(ctx, h.id, h.id); err != nil {
			d.log("%s is not added: %v", h.id, err)
			return
		}
		d.seen.add(func(t *tally) { t.changes++ })
	}},
}

// revive starts members whose time has come.
func (d *director) revive(all bool) {
	for _, h := range d.hosts {
		if all || h.running() == nil && !time.Now().Before(d.down[h]) {
			h.run()
		}
	}
}

// newWorld draws a schedule: its size, its pace and which faults it mixes.
func newWorld(seed uint64, planted tooth, dir string) (*director, []fault) {
	w := &world{seed: seed, dir: dir, plan: rand.New(rand.NewPCG(seed, 0)), tooth: planted, wire: newWire(seed), start: time.Now()}
	w.seen = observed{
		leaders: make(map[uint64]raft.ServerID), entries: make(map[uint64]uint64), hashes: make(map[uint64]string),
		answered: make(map[string]uint64), stats: tally{schedules: 1},
	}
	w.wire.leads = w.leads
	d := &director{world: w, down: make(map[*host]time.Time)}
	w.clients, w.keys, w.during = 2+w.plan.IntN(3), 1+w.plan.IntN(3), d.span(4*time.Second, 10*time.Second)
	w.wire.faults = wireFaults{
		least: time.Duration(w.plan.IntN(5)) * time.Millisecond, spread: time.Duration(w.plan.IntN(30)) * time.Millisecond,
		silence: d.span(500*time.Millisecond, 5*time.Second),
	}
	for _, share := range []*float64{&w.wire.faults.late, &w.wire.faults.lost, &w.wire.faults.doubled} {
		if w.plan.IntN(2) == 0 {
			*share = w.plan.Float64() / 20
		}
	}
	w.wire.faults.held = float64(w.plan.IntN(3)) / 2
	interval, threshold, kept := d.span(50*time.Millisecond, 2*time.Second), uint64(4+w.plan.IntN(60)), uint64(w.plan.IntN(30))
	batch := 1 << w.plan.IntN(7)
	w.tune = func(c *raft.Config) {
		c.SnapshotInterval, c.SnapshotThreshold, c.TrailingLogs, c.MaxAppendEntries = interval, threshold, kept, batch
	}
	size := 3
	if w.plan.IntN(3) == 0 {
		size = 5
	}
	for i := range size {
		w.addHost(fmt.Sprintf("m%d", i+1))
	}
	var mix []fault
	for _, f := range faults {
		if w.plan.IntN(2) == 0 {
			mix = append(mix, f)
		}
	}
	if len(mix) == 0 {
		mix = faults
	}
	return d, mix
}

// bootstrap makes all of the first members voters.
func (d *director) bootstrap() error {
	var servers []raft.Server
	for _, h := range d.hosts {
		servers = append(servers, raft.Server{ID: raft.ServerID(h.id), Address: raft.ServerAddress(h.id)})
	}
	for _, h := range d.hosts {
		handle := h.disk.open(nil)
		cfg := h.config(handle, nil)
		logs := &checked{backend: handle}
		if err := raft.BootstrapCluster(cfg.raft(nil), logs, logs, handle, nil, raft.Configuration{Servers: servers}); err != nil {
			return err
		}
	}
	return nil
}

// carryOut is one schedule, from the first election to the last comparison.
func carryOut(seed uint64, planted tooth, dir string, begun func(*observed)) *observed {
	d, mix := newWorld(seed, planted, dir)
	begun(&d.seen)
	if err := d.bootstrap(); err != nil {
		d.violated("%v", err)
		return &d.seen
	}
	d.revive(true)
	var clients sync.WaitGroup
	for i := range d.clients {
		clients.Go(func() { d.client(i) })
	}
	for time.Since(d.start) < d.during {
		time.Sleep(d.span(50*time.Millisecond, 1500*time.Millisecond))
		d.revive(false)
		if f := mix[d.plan.IntN(len(mix))]; time.Since(d.start) < d.during {
			d.log("-- %s", f.name)
			f.do(d)
		}
	}
	clients.Wait()
	d.healing.Wait()
	d.wire.mu.Lock()
	d.wire.faults.lost, d.wire.faults.doubled, d.wire.faults.late = 0, 0, 0
	d.wire.mu.Unlock()
	d.log("-- the faults are over")
	d.revive(true)
	d.compare()
	var left []*incarnation
	for _, h := range d.hosts {
		left = append(left, h.runs...)
		if in := h.running(); in != nil {
			h.end(in)
		}
	}
	for _, in := range left {
		<-in.reaped
	}
	d.seen.stats.virtual = time.Since(d.start)
	time.Sleep(2 * time.Minute) // what is still on its way arrives nowhere
	return &d.seen
}

// recovery is how long the members may take, once nothing is wrong any more, until they answer and agree.
const recovery = time.Minute

// compare reads everything once more, and looks whether all members have it.
func (d *director) compare() {
	deadline := time.Now().Add(recovery)
	chance := rand.New(rand.NewPCG(d.seed, 3))
	for vm := range d.keys {
		for {
			if in := d.pick(chance); in != nil {
				if _, read := d.read(context.Background(), 99, vm, in); read {
					break
				}
			}
			if time.Now().After(deadline) {
				d.violated("nothing can be read %s after the faults ended", recovery)
				return
			}
			time.Sleep(50 * time.Millisecond)
			d.revive(true)
		}
	}
	var final *state.Snapshot
	for ; ; time.Sleep(50 * time.Millisecond) {
		same, reason := d.apart()
		if same != nil {
			final = same
			break
		}
		if time.Now().After(deadline) {
			d.violated("the members do not agree %s after the faults ended: %s", recovery, reason)
			return
		}
		d.revive(true)
	}
	for key, index := range d.seen.answered {
		if _, applied := d.seen.entries[index]; !applied || !final.Answered(key, "write") {
			d.violated("write %s was acknowledged at index %d and is not there", key, index)
		}
	}
}

// apart is the state that all members of the leader's configuration have, or why they do not have the same.
func (d *director) apart() (same *state.Snapshot, reason string) {
	leader := d.leader()
	if leader == nil {
		return nil, "nobody leads"
	}
	in := leader.running()
	if in == nil {
		return nil, "the leader has just ended"
	}
	want := in.store.Snapshot()
	for _, server := range in.Configuration() {
		at := slices.IndexFunc(d.hosts, func(h *host) bool { return h.id == server.ID })
		other := d.hosts[at].running()
		if other == nil {
			return nil, server.ID + " does not run"
		}
		if got := other.store.Snapshot(); got.Index() != want.Index() || got.Hash() != want.Hash() {
			return nil, fmt.Sprintf("%s is at %d (%.8s), %s at %d (%.8s)", leader.id, want.Index(), want.Hash(), server.ID, got.Index(), got.Hash())
		}
	}
	return want, ""
}

const notLinearizable = "a history of a VM is not linearizable"

// play is synctest.Test, but lets goroutines stay that nobody can end: Raft (v1.8.0) forgets those of a leadership transfer
// when the leader steps down at that moment.
func play(t *testing.T, bubble func()) {
	played := false
	defer func() {
		if reason := recover(); reason != nil && (!played || !strings.Contains(fmt.Sprint(reason), "blocked goroutines remain")) {
			panic(reason)
		}
	}()
	synctest.Test(t, func(*testing.T) {
		bubble()
		played = true
	})
}

// standstill is how long a schedule may take on the clock; most take milliseconds. One that stops virtual time would take all memory.
const standstill = time.Minute

// schedule runs one in its bubble, and checks the histories outside of it.
func schedule(t *testing.T, seed uint64, planted tooth, dir string) *observed {
	var seen *observed
	var begun atomic.Pointer[observed]
	watch := time.AfterFunc(standstill, func() {
		text := "nothing was seen of it"
		if of := begun.Load(); of != nil {
			of.mu.Lock()
			text = strings.Join(of.trace[max(0, len(of.trace)-20):], "\n")
			of.mu.Unlock()
		}
		panic(fmt.Sprintf("seed %d is not over after %s on the clock: its goroutines never all wait. Last:\n%s", seed, standstill, text))
	})
	play(t, func() { seen = carryOut(seed, planted, dir, begun.Store) })
	watch.Stop()
	switch porcupine.CheckOperationsTimeout(registers, seen.history, time.Minute) {
	case porcupine.Illegal:
		seen.wrong = append(seen.wrong, notLinearizable)
	case porcupine.Unknown:
		seen.wrong = append(seen.wrong, "it could not be told in a minute whether the histories are linearizable")
	}
	return seen
}

// keep writes what happened, since the seed alone does not repeat it: goroutines run as they like.
func (s *observed) keep(t *testing.T, seed uint64) string {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("berth-schedule-%d.txt", seed))
	var history strings.Builder
	for _, o := range s.history {
		fmt.Fprintf(&history, "%d-%d client %d: %+v -> %+v\n", o.Call, o.Return, o.ClientId, o.Input, o.Output)
	}
	text := strings.Join(s.wrong, "\n") + "\n\n" + strings.Join(s.trace, "\n") + "\n\n" + history.String()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Error(err)
	}
	return path
}

func number(t testing.TB, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestSchedules plays seeded schedules of faults on members that are real but for their network and disks. SCHEDULES says
// how many, FIRST is the seed of the first one. SCHEDULE is one seed that is played, SCHEDULES times.
func TestSchedules(t *testing.T) {
	otherwise := 5000
	switch {
	case testing.Short():
		otherwise = 20
	case raceDetected:
		otherwise = 50
	}
	count, first, only := number(t, "SCHEDULES", otherwise), number(t, "FIRST", 1), number(t, "SCHEDULE", 0)
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	dir, began := t.TempDir(), time.Now()
	var mu sync.Mutex
	var all tally
	bad, bent := 0, 0
	next := uint64(first)
	t.Run("play", func(t *testing.T) {
		for worker := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				for {
					mu.Lock()
					seed, over := next, int(next) >= first+count || bad > 4
					next++
					mu.Unlock()
					if over {
						return
					}
					if only != 0 {
						seed = uint64(only)
					}
					seen := schedule(t, seed, sound, dir)
					mu.Lock()
					all.sum(seen.stats)
					if len(seen.wrong) > 0 {
						bad++
						if slices.Contains(seen.wrong, notLinearizable) {
							bent++
						}
						t.Errorf("seed %d: %s\nwhat happened is in %s", seed, strings.Join(seen.wrong, "\n"), seen.keep(t, seed))
					}
					mu.Unlock()
				}
			})
		}
	})
	t.Logf("%+v in %s", all, time.Since(began).Round(time.Second))
	verdict := func(wrong int) string {
		if wrong == 0 && all.schedules == count && all.acknowledged > 0 {
			return "met"
		}
		return "not met"
	}
	t.Logf("GOAL G1: %d schedules from seed %d, %d writes acknowledged, %d crashes, %d partitions, %d member changes, "+
		"%d snapshots restored, %d with a lost write, another state or two leaders | wanted 0 of %d | %s",
		all.schedules, first, all.acknowledged, all.crashes, all.partitions, all.changes, all.restored, bad, count, verdict(bad))
	t.Logf("GOAL G3: %d operations of clients in %d schedules, %d not linearizable | wanted 0 | %s",
		all.acknowledged+all.refused+all.unknown+all.reads, all.schedules, bent, verdict(bent))
}

func (t *tally) sum(o tally) {
	t.schedules += o.schedules
	t.acknowledged += o.acknowledged
	t.refused += o.refused
	t.unknown += o.unknown
	t.reads += o.reads
	t.crashes += o.crashes
	t.partitions += o.partitions
	t.transfers += o.transfers
	t.changes += o.changes
	t.snapshots += o.snapshots
	t.restored += o.restored
	t.hangs += o.hangs
	t.elections += o.elections
	t.virtual += o.virtual
}
