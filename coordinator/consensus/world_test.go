package consensus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"berth/coordinator/model"
	"berth/coordinator/state"
)

// world is one schedule: members over a wire and disks that fail as the seed says, clients that write and read, and what
// everybody saw. It lives in a bubble of virtual time.
type world struct {
	seed    uint64
	dir     string // of the files that no member has: only its free space is looked at
	plan    *rand.Rand
	tooth   tooth
	wire    *wire
	start   time.Time
	hosts   []*host
	clients int
	keys    int
	during  time.Duration
	tune    func(*raft.Config)

	seen   observed
	ticket atomic.Int64 // orders what clients do: virtual time is too coarse
}

// tooth is a planted fault of the product that the checks have to find.
type tooth string

const (
	sound            tooth = ""
	lyingDisk        tooth = "a disk acknowledges what it loses in a crash"
	forgottenVote    tooth = "a vote is lost in a crash"
	unprovenRead     tooth = "a leader reads without asking the others"
	noBarrier        tooth = "a new leader reads without a barrier"
	blindAcknowledge tooth = "an unknown outcome is acknowledged"
	skippedEntry     tooth = "a member leaves out an entry"
	ownApply         tooth = "a member applies an entry its own way"
	lostKey          tooth = "a repeated command is applied again"
)

// observed is what the members and clients saw.
type observed struct {
	mu       sync.Mutex
	wrong    []string
	trace    []string
	leaders  map[uint64]raft.ServerID // by term
	entries  map[uint64]uint64        // sum of the command at an index
	hashes   map[uint64]string        // of the state after it
	history  []porcupine.Operation
	answered map[string]uint64 // acknowledged commands by key: at which index
	stats    tally
}

// tally is what the schedules amount to.
type tally struct {
	schedules, acknowledged, refused, unknown, reads   int
	crashes, partitions, transfers, changes, snapshots int
	restored, hangs, elections                         int
	virtual                                            time.Duration
}

func (s *observed) add(what func(*tally)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what(&s.stats)
}

// host is a member with its disk, over its incarnations.
type host struct {
	world *world
	id    string
	disk  *disk
	skew  time.Duration // of its clock, for the times that its clients stamp

	mu   sync.Mutex
	now  *incarnation
	runs []*incarnation // all that were
}

// incarnation is one run of a member's process.
type incarnation struct {
	*Consensus
	host   *host
	store  *state.Store
	handle *handle
	port   *port
	alive  context.Context
	kill   context.CancelFunc

	reaping sync.Once
	reaped  chan struct{}
}

func (w *world) log(format string, args ...any) {
	w.seen.mu.Lock()
	defer w.seen.mu.Unlock()
	w.seen.trace = append(w.seen.trace, fmt.Sprintf("%9.3f ", time.Since(w.start).Seconds())+fmt.Sprintf(format, args...))
}

func (w *world) violated(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.log("VIOLATION %s", text)
	w.seen.mu.Lock()
	defer w.seen.mu.Unlock()
	if len(w.seen.wrong) < 20 {
		w.seen.wrong = append(w.seen.wrong, text)
	}
}

func (w *world) addHost(id string) *host {
	h := &host{world: w, id: id, disk: newDisk(w.seed ^ uint64(len(w.hosts)+1)<<32)}
	h.disk.least = time.Duration(w.plan.IntN(3)) * time.Millisecond
	h.disk.spread = time.Duration(w.plan.IntN(20)) * time.Millisecond
	h.disk.lies, h.disk.forgets = w.tooth == lyingDisk, w.tooth == forgottenVote
	h.skew = time.Duration(w.plan.IntN(3)-1) * time.Duration(w.plan.IntN(60)) * time.Minute
	w.seen.mu.Lock()
	defer w.seen.mu.Unlock()
	w.hosts = append(w.hosts, h)
	return h
}

// config of the member on a handle of its disk.
func (h *host) config(handle *handle, in *incarnation) Config {
	return Config{
		DataDir: h.world.dir, MemberID: h.id, ClusterID: "c1", Advertise: h.id, MinFree: 1, Stability: 200 * time.Millisecond,
		Logger: hclog.New(&hclog.LoggerOptions{Name: h.id, Output: logLines{h.world, in}, Level: hclog.Warn, DisableTime: true}),
		Fatal:  func(err error) { h.fatal(in, err) },
		seams: seams{
			logs:  func() (backend, error) { return slow{&checked{backend: handle}, handle}, nil },
			files: func() (raft.SnapshotStore, error) { return handle, nil },
			link: func(members admission) (link, error) {
				in.port = h.world.wire.open(h.id, members)
				return in.port, nil
			},
			fsm:  func(below raft.FSM) raft.FSM { return &witnessed{FSM: below, in: in} },
			tune: h.world.tune,
		},
	}
}

// fatal is the end of the process.
func (h *host) fatal(in *incarnation, err error) {
	if in.alive.Err() != nil {
		return
	}
	h.world.log("%s ends: %v", h.id, err)
	h.end(in)
	if strings.Contains(err.Error(), "the disk hangs") || errors.Is(err, errBroken) {
		return
	}
	h.world.violated("%s ends itself: %v", h.id, err)
	runtime.Goexit() // before the state's panic ends the test
}

// logLines is where a member logs to.
type logLines struct {
	w  *world
	in *incarnation
}

func (l logLines) Write(b []byte) (int, error) {
	if l.in == nil || l.in.alive.Err() == nil {
		l.w.log("%s", strings.TrimSpace(string(b)))
	}
	return len(b), nil
}

// run starts the member's process, if it does not run. Only the director calls it.
func (h *host) run() {
	if h.running() != nil {
		return
	}
	store := state.NewStore()
	in := &incarnation{host: h, store: store, reaped: make(chan struct{})}
	in.handle = h.disk.open(func() { h.end(in) })
	in.alive, in.kill = context.WithCancel(context.Background())
	in.open(h.config(in.handle, in))
	if in.alive.Err() != nil {
		h.world.log("%s ended while it started", h.id)
		in.reap()
		return
	}
	if in.Consensus == nil {
		in.kill()
		return
	}
	h.mu.Lock()
	h.now = in
	h.runs = append(h.runs, in)
	h.mu.Unlock()
	if in.alive.Err() != nil { // in between
		h.end(in)
		return
	}
	h.world.log("%s runs, its state is at %d", h.id, store.Snapshot().Index())
	go func() {
		for turn := range in.Leadership() {
			if turn.Leading && in.alive.Err() == nil { // a dead one counts its own vote, which is on no disk, and is heard by nobody
				h.world.leads(turn.Term, raft.ServerID(h.id))
				h.world.seen.add(func(t *tally) { t.elections++ })
			}
		}
	}()
}

// open is in a goroutine of its own, which a fatal error ends.
func (in *incarnation) open(cfg Config) {
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		c, err := Open(cfg, in.store)
		if err != nil && in.alive.Err() == nil {
			in.host.world.violated("%s does not start again: %v", in.host.id, err)
		}
		in.Consensus = c
	}()
	<-opened
}

// lingering is how long a dead incarnation's goroutines go on, seen by nobody, until those that wait for Raft have been
// answered: Raft leaves some waiting for ever when it is stopped at once.
const lingering = 4 * time.Second

// reap ends the goroutines that a dead incarnation has left.
func (in *incarnation) reap() {
	in.reaping.Do(func() {
		go func() {
			defer close(in.reaped)
			time.Sleep(lingering)
			if in.Consensus != nil {
				in.ending.Do(func() { in.end() })
			}
		}()
	})
}

// leads notes who leads a term.
func (w *world) leads(term uint64, id raft.ServerID) {
	w.seen.mu.Lock()
	other, known := w.seen.leaders[term]
	w.seen.leaders[term] = id
	w.seen.mu.Unlock()
	if known && other != id {
		w.violated("term %d has two leaders, %s and %s", term, other, id)
	}
}

// end is kill -9: from this moment on nothing gets out of the incarnation, neither to the others nor to its disk.
func (h *host) end(in *incarnation) {
	in.kill()
	if in.port != nil {
		in.port.Close() // first: what is not on the disk must not be acknowledged
	}
	in.handle.crash()
	h.mu.Lock()
	known := h.now == in
	if known {
		h.now = nil
	}
	h.mu.Unlock()
	if known { // otherwise it is still being opened, by run
		h.world.seen.add(func(t *tally) { t.crashes++ })
		in.reap()
	}
}

func (h *host) crash() {
	if in := h.running(); in != nil {
		h.world.log("%s crashes", h.id)
		h.end(in)
		if h.disk.forgets {
			h.disk.mu.Lock()
			delete(h.disk.values, "LastVoteTerm")
			delete(h.disk.values, "LastVoteCand")
			h.disk.mu.Unlock()
		}
	}
}

func (h *host) running() *incarnation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// witnessed is the state machine of one incarnation, and compares what it does with the others'.
type witnessed struct {
	raft.FSM
	in   *incarnation
	last uint64 // 0: nothing, or restored
	at   int
}

var crcTable = crc64.MakeTable(crc64.ECMA)

func (f *witnessed) Apply(entry *raft.Log) any {
	in, w := f.in, f.in.host.world
	f.at++
	applied := *entry
	switch w.tooth {
	case skippedEntry:
		if in.host == w.hosts[1] && f.at%17 == 0 {
			return state.Result{Index: entry.Index}
		}
	case ownApply:
		if in.host == w.hosts[1] && f.at%17 == 0 {
			applied.Data = bytes.Replace(applied.Data, []byte(`"condition":"`), []byte(`"condition":"~`), 1)
		}
	case lostKey:
		applied.Data = bytes.Replace(applied.Data, []byte(`{"key":"`), fmt.Appendf(nil, `{"key":"%d`, entry.Index), 1)
	}
	answer := f.FSM.Apply(&applied)
	if in.alive.Err() != nil {
		return answer
	}
	w.applied(in, entry, f.last, in.store.Snapshot())
	f.last = entry.Index
	return answer
}

func (f *witnessed) Restore(from io.ReadCloser) error {
	err := f.FSM.Restore(from)
	f.last = 0
	if err == nil && f.in.alive.Err() == nil {
		f.in.host.world.seen.add(func(t *tally) { t.restored++ })
	}
	return err
}

// applied compares one step of a member with what the others did at this index, and that none was left out.
func (w *world) applied(in *incarnation, entry *raft.Log, last uint64, after *state.Snapshot) {
	sum := crc64.Checksum(entry.Data, crcTable)
	w.seen.mu.Lock()
	before, known := w.seen.entries[entry.Index]
	hash, hashed := w.seen.hashes[entry.Index]
	if !known {
		w.seen.entries[entry.Index] = sum
	}
	if !hashed {
		w.seen.hashes[entry.Index] = after.Hash()
	}
	left := uint64(0)
	for index := last + 1; last != 0 && index < entry.Index; index++ {
		if _, command := w.seen.entries[index]; command {
			left = index
		}
	}
	w.seen.mu.Unlock()
	switch {
	case known && before != sum:
		w.violated("%s applies another entry %d than others did", in.host.id, entry.Index)
	case hashed && hash != after.Hash():
		w.violated("%s has another state than the others after entry %d", in.host.id, entry.Index)
	case left != 0:
		w.violated("%s left out entry %d", in.host.id, left)
	}
}

// What clients do to one VM: read it, or replace its value if it is the one they know. Values are unique.
type clientCall struct {
	vm         int
	write      bool
	base, next string
}

type clientAnswer struct {
	value   string // read
	stored  bool
	unknown bool
}

// registers is what one VM has to look like to its clients.
var registers = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := make(map[int][]porcupine.Operation)
		for _, o := range history {
			vm := o.Input.(clientCall).vm
			parts[vm] = append(parts[vm], o)
		}
		var all [][]porcupine.Operation
		for _, part := range parts {
			all = append(all, part)
		}
		return all
	},
	Init: func() any { return "" },
	Step: func(now, input, output any) (bool, any) {
		call, answer, value := input.(clientCall), output.(clientAnswer), now.(string)
		switch {
		case !call.write:
			return answer.value == value, value
		case answer.unknown && value == call.base:
			return true, call.next
		case answer.unknown:
			return true, value
		case answer.stored:
			return value == call.base, call.next
		default:
			return value != call.base, value
		}
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

const never = int64(1) << 62 // when an operation returns that nobody answered

func (w *world) record(client int, call clientCall, answer clientAnswer, from, to int64) {
	w.seen.mu.Lock()
	defer w.seen.mu.Unlock()
	w.seen.history = append(w.seen.history, porcupine.Operation{
		ClientId: client, Input: call, Output: answer, Call: from, Return: to,
	})
}

func vmID(vm int) string { return fmt.Sprintf("vm%d", vm) }

// read is a strong one, by one member. It tells whether there was an answer.
func (w *world) read(ctx context.Context, client, vm int, in *incarnation) (model.VM, bool) {
	from := w.ticket.Add(1)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	defer context.AfterFunc(in.alive, cancel)()
	var err error
	switch w.tooth {
	case unprovenRead:
		err = notLeader(in.raft.Load().State())
	case noBarrier:
		in.ready.Store(in.Term())
		err = in.VerifyRead(ctx)
	default:
		err = in.VerifyRead(ctx)
	}
	if err != nil {
		return model.VM{}, false
	}
	found, _ := in.store.Snapshot().VM(vmID(vm))
	if in.alive.Err() != nil {
		return model.VM{}, false
	}
	w.record(client, clientCall{vm: vm}, clientAnswer{value: found.Condition.Text}, from, w.ticket.Add(1))
	w.seen.add(func(t *tally) { t.reads++ })
	return found, true
}

// write replaces the value of a VM, on whichever member takes it, until the answer is known or patience ends.
func (w *world) write(client int, value string, base model.VM, vm int, chance *rand.Rand) {
	next := model.VM{ID: vmID(vm), Name: vmID(vm), Desired: model.Running, Condition: model.Condition{Text: value}}
	call := clientCall{vm: vm, write: true, base: base.Condition.Text, next: value}
	from := w.ticket.Add(1)
	unknown := false
	for range 6 {
		in := w.pick(chance)
		if in == nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		command := state.Command{
			Key: value, Kind: "write", Caller: "operator/admin", At: time.Now().Add(in.host.skew).UTC(),
			Expect: []state.Expectation{{Table: state.VMs, ID: next.ID, Revision: base.Revision}}, VMs: []model.VM{next},
		}
		ctx, cancel := context.WithTimeout(in.alive, time.Duration(200+chance.IntN(2000))*time.Millisecond)
		result, err := in.Propose(ctx, command)
		cancel()
		if in.alive.Err() != nil {
			err = ErrUnknown // the answer went down with the process
		}
		if w.tooth == blindAcknowledge && errors.Is(err, ErrUnknown) {
			result, err = state.Result{}, nil
		}
		switch {
		case err == nil && result.Refusal == nil:
			w.record(client, call, clientAnswer{stored: true}, from, w.ticket.Add(1))
			w.seen.mu.Lock()
			w.seen.answered[value] = result.Index
			w.seen.stats.acknowledged++
			w.seen.mu.Unlock()
			return
		case err == nil && result.Refusal.Code == state.Stale:
			w.record(client, call, clientAnswer{}, from, w.ticket.Add(1))
			w.seen.add(func(t *tally) { t.refused++ })
			return
		case err == nil:
			w.violated("a write was refused as %s: %s", result.Refusal.Code, result.Refusal.Message)
			return
		case errors.Is(err, ErrUnknown):
			unknown = true
		case !errors.Is(err, ErrNotLeader) && ctx.Err() == nil:
			w.violated("a write ended in %v", err)
		}
		time.Sleep(time.Duration(20+chance.IntN(200)) * time.Millisecond)
	}
	if unknown {
		w.record(client, call, clientAnswer{unknown: true}, from, never)
		w.seen.add(func(t *tally) { t.unknown++ })
	}
	// Otherwise nobody took it: it must never be seen.
}

// pick is whom a client speaks to: mostly one that believes that it leads.
func (w *world) pick(chance *rand.Rand) *incarnation {
	var all, leaders []*incarnation
	for _, h := range w.members() {
		if in := h.running(); in != nil {
			all = append(all, in)
			if in.IsLeader() {
				leaders = append(leaders, in)
			}
		}
	}
	if len(leaders) > 0 && chance.IntN(5) > 0 {
		all = leaders
	}
	if len(all) == 0 {
		return nil
	}
	return all[chance.IntN(len(all))]
}

func (w *world) members() []*host {
	w.seen.mu.Lock()
	defer w.seen.mu.Unlock()
	return append([]*host(nil), w.hosts...)
}

// client writes and reads until the faults are over.
func (w *world) client(id int) {
	chance := rand.New(rand.NewPCG(w.seed, uint64(100+id)))
	for turn := 0; time.Since(w.start) < w.during; turn++ {
		time.Sleep(time.Duration(20+chance.IntN(300)) * time.Millisecond)
		in, vm := w.pick(chance), chance.IntN(w.keys)
		if in == nil {
			continue
		}
		if chance.IntN(3) == 0 {
			w.read(context.Background(), id, vm, in)
			continue
		}
		base, found := in.store.Snapshot().VM(vmID(vm)) // as old as that member is
		if !found && in.store.Snapshot().Index() > 0 && chance.IntN(2) == 0 {
			base = model.VM{}
		}
		w.write(id, fmt.Sprintf("c%d.%d", id, turn), base, vm, chance)
	}
}

// errBroken is what a disk of a schedule fails with.
var errBroken = fmt.Errorf("write log.db: %w", syscall.EIO)
