package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"berth/coordinator/consensus"
	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/control/plans"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/coordinator/view"
	"berth/shared/units"
)

// log stands for Raft: it applies to the real state machine, in order.
type log struct {
	mu      sync.Mutex
	store   *state.Store
	index   uint64
	unknown int // how many of the next proposals are applied and then reported as unknown
	stopped bool
	before  func(command state.Command) // called before each proposal; may propose itself
}

func (l *log) Propose(_ context.Context, command state.Command) (state.Result, error) {
	if l.before != nil {
		l.before(command)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return state.Result{}, consensus.ErrNotLeader
	}
	now := l.store.Snapshot()
	data, err := command.Lean(now).Encode()
	if err != nil {
		return state.Result{}, err
	}
	data = state.Entry([][]byte{data}, now.FeatureLevel())
	l.index++
	result := l.store.FSM().Apply(&raft.Log{Index: l.index, Data: data}).(state.Result)
	if l.unknown > 0 {
		l.unknown--
		return state.Result{}, consensus.ErrUnknown
	}
	return result, nil
}

func (l *log) ProposeTogether(ctx context.Context, commands []state.Command) []consensus.Answer {
	answers := make([]consensus.Answer, len(commands))
	for i := range commands {
		answers[i].Result, answers[i].Err = l.Propose(ctx, commands[i])
	}
	return answers
}

func (l *log) Barrier(context.Context) error { return nil }

// nodes stand for the agents: script says what an order is answered with, and nil says nothing at all.
type nodes struct {
	mu        sync.Mutex
	control   *Control
	facts     *facts
	script    func(order operation.Order) *operation.Answer
	orders    []operation.Order
	away      map[string]bool
	frozen    map[string]bool   // guests, by VM
	reached   map[string]string // by node: the address of another one that answers it
	cancels   int
	removed   []evidence.Removed            // that speak
	suspended []string                      // on them
	stubborn  bool                          // they suspend nothing
	lacks     map[operation.Action][]string // capabilities that an order needs and no agent has
	takes     time.Duration                 // a migration
	refusing  time.Duration                 // how long a node takes to refuse a VM

	grown   units.Bytes                             // what every volume has that is made larger; 0: what was ordered
	volumes map[string]string                       // place/pool/volume -> disk's name; the place is a node's ID, or "shared"
	tasks   []done                                  // that were performed
	task    func(node string, task lead.Task) error // what becomes of a task; nil: it is done
	lock    func(node string, order *lead.TryLock) (locked bool, err error)
}

// done is a task that a node did, or refused to.
type done struct {
	node string
	task lead.Task
}

func (n *nodes) Order(_ uint64, order operation.Order) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.away[order.Node] {
		return false
	}
	n.orders = append(n.orders, order)
	if answer := n.script(order); answer != nil {
		answer.Operation, answer.Node, answer.Step = order.Operation, order.Node, order.Step
		answer.Seen.Boot = n.facts.Facts(order.Node, time.Now()).Boot
		n.keep(order, answer.Outcome)
		if answer.Outcome == operation.OutcomeDone {
			n.facts.carryOut(order)
		}
		if order.Action == operation.ActMigrate && n.takes > 0 {
			time.AfterFunc(n.takes, func() { n.control.Answered(*answer) })
		} else {
			go n.control.Answered(*answer)
		}
	}
	return true
}

// keep does to the nodes' pools what an order does. Of one whose end is in doubt, what it makes is left.
func (n *nodes) keep(order operation.Order, outcome operation.Outcome) {
	done := outcome == operation.OutcomeDone
	for _, volume := range order.Volumes {
		switch order.Action {
		case operation.ActStart, operation.ActPrepare:
			if done || outcome == operation.OutcomeAmbiguous {
				n.volumes[at(order.Node, volume)] = volume.DiskName
			}
		case operation.ActDiscard, operation.ActClear:
			if done {
				delete(n.volumes, at(order.Node, volume))
			}
		}
	}
}

// at is where a volume is that a node works on.
func at(node string, volume model.VolumeOrder) string {
	if volume.Shared {
		node = "shared"
	}
	return node + "/" + volume.PoolName + "/" + volume.Name
}

func (n *nodes) Removed() []evidence.Removed {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.removed)
}

func (n *nodes) SuspendRemoved(_ context.Context, node string, copied lead.CopyOf) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stubborn {
		return fmt.Errorf("node %s does not answer", node)
	}
	n.suspended = append(n.suspended, fmt.Sprint(node, " ", copied.VM, " ", copied.Epoch))
	for i := range n.removed {
		if n.removed[i].Node == node {
			n.removed[i].Domains = slices.Clone(n.removed[i].Domains)
			for k := range n.removed[i].Domains {
				n.removed[i].Domains[k].State = model.DomainPaused
			}
		}
	}
	return nil
}

func (n *nodes) Lacks(order operation.Order) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lacks[order.Action]
}

func (n *nodes) Perform(_ context.Context, node string, task lead.Task) (lead.TaskDone, error) {
	if task.Refuse != nil {
		time.Sleep(n.refusing)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tasks = append(n.tasks, done{node, task})
	if n.away[node] {
		return lead.TaskDone{}, fmt.Errorf("node %s does not answer", node)
	}
	if n.task != nil {
		if err := n.task(node, task); err != nil {
			return lead.TaskDone{}, err
		}
	}
	if task.Lock != nil && n.lock != nil {
		locked, err := n.lock(node, task.Lock)
		return lead.TaskDone{Locked: locked}, err
	}
	if len(task.Reach) > 0 {
		return lead.TaskDone{Reached: n.reached[node]}, nil
	}
	if task.Frozen != nil {
		return lead.TaskDone{Frozen: n.frozen[task.Frozen.VM]}, nil
	}
	if done, err := n.facts.perform(node, task); done.DomainXML != "" || done.Devices != nil || err != nil {
		return done, err
	}
	if task.Grow != nil {
		return lead.TaskDone{Capacity: cmp.Or(n.grown, task.Grow.Volume.Capacity)}, nil
	}
	for _, volume := range task.Remove {
		delete(n.volumes, at(node, volume))
	}
	if fetch := task.Fetch; fetch != nil {
		content, err := io.ReadAll(fetch.Content)
		if err != nil || len(content) != int(fetch.Size) {
			return lead.TaskDone{}, &lead.TaskError{Code: "invalid", Message: fmt.Sprintf("%d bytes came: %v", len(content), err)}
		}
		n.volumes[at(node, fetch.Volume)] = fetch.Volume.DiskName
	}
	return lead.TaskDone{}, nil
}

// left are the volumes that are anywhere, by place and disk.
func (n *nodes) left() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var found []string
	for place, disk := range n.volumes {
		node, _, _ := strings.Cut(place, "/")
		found = append(found, node+" "+disk)
	}
	slices.Sort(found)
	return found
}

func (n *nodes) Cancel(string, string, uint32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cancels++
}

func (n *nodes) ordered(action operation.Action) []operation.Order {
	n.mu.Lock()
	defer n.mu.Unlock()
	var found []operation.Order
	for _, order := range n.orders {
		if order.Action == action {
			found = append(found, order)
		}
	}
	return found
}

// facts stand for the inventory: every node is up and has 8 GiB, unless changed.
type facts struct {
	mu      sync.Mutex
	nodes   map[string]model.NodeFacts
	xml     map[string]string // what domains are started with, by UUID
	now     []model.Device    // what nodes tell of devices when they are asked; nil: what they have reported
	changed []model.ToldDevices
	apart   model.PoolsApart
	waiting bool         // for the first reports to a new leader
	mirror  *state.Store // nodes show what the records say; nil: what the test says
}

func (f *facts) Settled(*state.Snapshot, time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.waiting
}

func (f *facts) NodesTouched() func(*state.Snapshot, time.Time) evidence.Touched {
	return func(*state.Snapshot, time.Time) evidence.Touched { return evidence.Touched{All: true} }
}

func (f *facts) VMsTouched() func(*state.Snapshot, time.Time) evidence.Touched {
	return f.NodesTouched()
}

func (f *facts) Shown(uuid string) []string {
	f.mu.Lock()
	ids := slices.Sorted(maps.Keys(f.nodes))
	f.mu.Unlock()
	return slices.DeleteFunc(ids, func(id string) bool {
		facts := f.Facts(id, time.Now())
		domain := facts.Domain(uuid)
		return domain == nil || !facts.DomainsKnown || facts.Liveness == model.Unreachable || !domain.State.Holds() ||
			domain.State == model.DomainPausedMigration
	})
}

func (f *facts) MayShow(uuid string) []string {
	f.mu.Lock()
	ids := slices.Sorted(maps.Keys(f.nodes))
	f.mu.Unlock()
	return slices.DeleteFunc(ids, func(id string) bool {
		facts := f.Facts(id, time.Now())
		return facts.Domain(uuid) == nil && facts.Inventory
	})
}

func (f *facts) WithDisk(name string) []string {
	f.mu.Lock()
	ids := slices.Sorted(maps.Keys(f.nodes))
	f.mu.Unlock()
	return slices.DeleteFunc(ids, func(id string) bool {
		return !slices.ContainsFunc(f.Facts(id, time.Now()).Domains, func(one model.Domain) bool {
			return slices.ContainsFunc(one.Sources, func(source model.DiskSource) bool { return source.FileName() == name })
		})
	})
}

func (f *facts) RanOn(uuid string) (on []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(f.nodes)) {
		if _, told := f.nodes[id].LastRuns[uuid]; told {
			on = append(on, id)
		}
	}
	return on
}

func (f *facts) ChangedDevices() []model.ToldDevices {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed := f.changed
	f.changed = nil
	return changed
}

func (f *facts) Copied() []string {
	shown := map[string]bool{}
	f.mu.Lock()
	ids := slices.Sorted(maps.Keys(f.nodes))
	f.mu.Unlock()
	for _, id := range ids {
		for _, domain := range f.Facts(id, time.Now()).Domains {
			shown[domain.UUID] = len(f.Shown(domain.UUID)) > 1
		}
	}
	maps.DeleteFunc(shown, func(_ string, twice bool) bool { return !twice })
	return slices.Sorted(maps.Keys(shown))
}

func (f *facts) Facts(node string, now time.Time) model.NodeFacts {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.nodes[node]
	one.TelemetryAt, one.InventoryAt = now, now
	if one.Liveness == model.Up && !one.HeardAt.IsZero() {
		one.HeardAt = now
	}
	if f.mirror != nil {
		one.Domains = nil
		for _, vm := range f.mirror.Snapshot().VMsOn(node) {
			one.Domains = append(one.Domains, domainOf(vm))
		}
		slices.SortFunc(one.Domains, func(a, b model.Domain) int { return strings.Compare(a.UUID, b.UUID) })
	}
	return one
}

func domainOf(vm model.VM) model.Domain {
	return model.Domain{
		UUID: vm.ID, Name: vm.Name, State: model.DomainRunning, Memory: vm.Spec.Memory, VCPUs: 1, Managed: true, Epoch: vm.Epoch,
	}
}

func (f *facts) Apart() model.PoolsApart {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.apart
}

func (f *facts) SetApart(apart model.PoolsApart) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.apart = apart
}

func (f *facts) View(snapshot *state.Snapshot, now time.Time) *view.View {
	all := map[string]model.NodeFacts{}
	for _, node := range snapshot.Nodes() {
		all[node.ID] = f.Facts(node.ID, now)
	}
	var reservations []model.Reservation
	for _, op := range snapshot.LiveOperations() {
		if reservation, held := op.Reservation(); held {
			reservations = append(reservations, reservation)
		}
	}
	return view.New(now, snapshot.Index(), view.Records{
		Clusters: snapshot.Clusters(), Groups: snapshot.Groups(), Nodes: snapshot.Nodes(), VMs: snapshot.VMs(), Reservations: reservations,
		Pools: snapshot.Resources(model.KindPool),
		Disks: slices.DeleteFunc(
			append(snapshot.Resources(model.KindDisk), snapshot.Resources(model.KindImage)...),
			func(r model.Resource) bool { return r.Volume == nil },
		),
		Apart: f.Apart(),
	}, all)
}

// carryOut changes what a node shows as an order does that brings, ends or marks a domain.
func (f *facts) carryOut(order operation.Order) {
	if order.Action == operation.ActMigrate {
		facts := f.Facts(order.Node, time.Now())
		if domain := facts.Domain(order.VM); domain != nil {
			arrived := *domain
			arrived.Epoch = order.TargetEpoch
			f.change(order.TargetNode, func(facts *model.NodeFacts) {
				facts.Domains = append(facts.Domains, arrived)
				slices.SortFunc(facts.Domains, func(a, b model.Domain) int { return strings.Compare(a.UUID, b.UUID) })
			})
		}
	}
	f.change(order.Node, func(facts *model.NodeFacts) {
		at := slices.IndexFunc(facts.Domains, func(d model.Domain) bool { return d.UUID == order.VM })
		switch {
		case order.Action == operation.ActStart && at < 0:
			facts.Domains = append(facts.Domains, model.Domain{
				UUID: order.VM, Name: order.VMName, State: model.DomainRunning, Memory: order.Spec.Memory, VCPUs: 1, Managed: true, Epoch: order.Epoch,
			})
			slices.SortFunc(facts.Domains, func(a, b model.Domain) int { return strings.Compare(a.UUID, b.UUID) })
		case at < 0:
		case order.Action == operation.ActStop, order.Action == operation.ActMigrate:
			facts.Domains = slices.Delete(facts.Domains, at, at+1)
		case order.Action == operation.ActAdopt:
			facts.Domains[at].Managed, facts.Domains[at].Epoch, facts.Domains[at].Operation = true, order.Epoch, order.Operation
			facts.Domains[at].Autostart = false
		case order.Action == operation.ActRelease:
			facts.Domains[at].Managed, facts.Domains[at].Epoch, facts.Domains[at].Operation = false, 0, ""
		}
	})
}

// perform does a task that is about a domain, as an agent does.
func (f *facts) perform(node string, task lead.Task) (done lead.TaskDone, err error) {
	f.change(node, func(facts *model.NodeFacts) {
		of := func(uuid string) *model.Domain {
			at := slices.IndexFunc(facts.Domains, func(d model.Domain) bool { return d.UUID == uuid })
			if at < 0 {
				return &model.Domain{State: model.DomainAbsent}
			}
			return &facts.Domains[at]
		}
		refuse := func(code operation.ErrorCode) {
			err = &lead.TaskError{Code: code, Message: "it cannot be done: " + string(code)}
		}
		switch {
		case task.Refuse != nil:
			if of(task.Refuse.VM).State.Holds() {
				refuse("invalid_state")
			}
		case task.Suspend != nil:
			if domain := of(task.Suspend.VM); domain.Epoch != task.Suspend.Epoch {
				refuse("other_epoch")
			} else {
				domain.State, domain.Reason = model.DomainPaused, "user"
			}
		case task.Undefine != nil:
			if domain := of(task.Undefine.VM); domain.State != model.DomainShutoff || domain.Epoch != task.Undefine.Epoch {
				refuse("invalid_state")
			} else {
				facts.Domains = slices.DeleteFunc(facts.Domains, func(d model.Domain) bool { return d.UUID == task.Undefine.VM })
			}
		case task.Discard != nil:
			if domain := of(task.Discard.VM); domain.Epoch == task.Discard.Epoch && domain.State == model.DomainRunning {
				refuse("invalid_state")
			} else if domain.Epoch == task.Discard.Epoch {
				facts.Domains = slices.DeleteFunc(facts.Domains, func(d model.Domain) bool { return d.UUID == task.Discard.VM })
			}
		case task.Devices != nil || task.Sizes != nil:
			asked := cmp.Or(task.Devices, task.Sizes)
			if domain := of(asked.VM); domain.Epoch != asked.Epoch || domain.Devices == nil {
				refuse("not_found")
			} else {
				done.Devices = slices.Clone(domain.Devices)
				if f.now != nil {
					done.Devices = slices.Clone(f.now)
				}
				for i := range done.Devices {
					done.Devices[i].XML = "<" + done.Devices[i].Kind + "/>"
				}
			}
		case task.Document != "":
			if done.DomainXML = f.xml[task.Document]; done.DomainXML == "" {
				refuse("not_found")
			}
		case task.Describe != "":
			if done.DomainXML = f.xml[task.Describe]; done.DomainXML == "" {
				refuse("not_found")
			}
		}
	})
	return done, err
}

func (f *facts) change(node string, change func(*model.NodeFacts)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.nodes[node]
	one.Domains = slices.Clone(one.Domains) // somebody reads them
	change(&one)
	f.nodes[node] = one
}

// mirrored makes the nodes show what the records say.
func (w *world) mirrored() {
	w.facts.mu.Lock()
	defer w.facts.mu.Unlock()
	w.facts.mirror = w.Store
}

// takes says how long a migration takes from now on.
func (w *world) takes(d time.Duration) {
	w.agents.mu.Lock()
	defer w.agents.mu.Unlock()
	w.agents.takes = d
}

// world is a cluster of three nodes with a leader.
type world struct {
	*testing.T
	*Control
	log     *log
	agents  *nodes
	facts   *facts
	devices *devices
	lose    func() // ends the leadership and waits

	callsWait atomic.Bool
}

func newWorld(t *testing.T, script func(operation.Order) *operation.Answer) *world {
	store := state.NewStore()
	w := &world{
		T: t, log: &log{store: store}, agents: &nodes{script: script, away: map[string]bool{}, volumes: map[string]string{}},
		facts: &facts{nodes: map[string]model.NodeFacts{}}, devices: &devices{takes: 5 * time.Second},
	}
	w.agents.facts = w.facts
	var random atomic.Uint64
	w.Control = New(Config{Config: lead.Config{
		Store: store, Proposer: w.log, Agents: w.agents, Inventory: w.facts,
		Logger: hclog.NewNullLogger(), Now: time.Now,
		Random: func() uint64 { return random.Add(1) * 0x9e3779b97f4a7c15 },
	}, Fences: w.devices, Plans: plans.Config{CallsWait: w.callsWait.Load}})
	w.agents.control = w.Control
	for i := 1; i <= 3; i++ {
		id, name := fmt.Sprintf("n%d", i), fmt.Sprintf("node%d", i)
		available, load := 8*units.GiB, 0.0
		w.facts.nodes[id] = model.NodeFacts{
			Liveness: model.Up, Boot: "b1", Inventory: true, Memory: 8 * units.GiB, CPUs: 4, DomainsKnown: true, Telemetry: true,
			Available: &available, Load1: &load, MigrationURI: "qemu+tls://" + name + "/system",
			NetworksKnown: true, Networks: []string{"default"}, Bridges: []string{"br0"}, PoolsKnown: true, Pools: []model.PoolFacts{
				{Name: "fast", Active: true, Capacity: 100 * units.GiB, Available: 90 * units.GiB},
				{Name: "wide", Active: true, Capacity: 100 * units.GiB, Available: 90 * units.GiB},
			},
		}
		w.store(state.Command{
			Nodes: []model.Node{{ID: id, Name: name, Cluster: model.DefaultCluster, EnrolledAt: time.Now()}},
		}, state.Expectation{Table: state.Nodes, ID: id})
	}
	w.lead(1)
	return w
}

// store stores records without control knowing.
func (w *world) store(command state.Command, expect ...state.Expectation) {
	w.Helper()
	command.Key, command.Kind, command.At, command.Expect = w.NewID(), "test", time.Now(), expect
	result, err := w.log.Propose(context.Background(), command)
	if err != nil || result.Refusal != nil {
		w.Fatal(err, result.Refusal)
	}
}

// between is from a leadership's beginning to a test's first step. The leader's loops look at multiples of half a second
// from that beginning, and tests wait for whole seconds: so no look comes in the midst of a step, which may be many changes.
const between = 7 * time.Millisecond

// lead makes the world's member lead, and returns when its loops have begun.
func (w *world) lead(term uint64) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		w.Lead(ctx, term)
		close(done)
	}()
	w.lose = func() {
		cancel()
		<-done
	}
	synctest.Wait()
	time.Sleep(between)
}

func (w *world) start(name string) (lifecycle.Started, error) {
	return w.StartVM(
		w.Context(),
		lifecycle.StartVM{
			Name: name, RequestID: "start " + name,
			Caller: "operator/test",
			VM:     &model.VM{Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1, Kernel: "/vmlinuz"}},
		},
	)
}

// running starts a VM and waits until it runs.
func (w *world) running(name string) model.VM {
	w.Helper()
	started, err := w.start(name)
	if err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
	vm, _ := w.Store.Snapshot().VM(started.VM.ID)
	if vm.Holder == "" || vm.Operation != "" {
		op, _ := w.Store.Snapshot().Operation(started.Operation.ID)
		w.Fatalf("%s does not run: %+v", name, op)
	}
	w.show(vm)
	return vm
}

// show makes a VM's node show it.
func (w *world) show(vm model.VM) { w.showing(vm.Holder, domainOf(vm)) }

// showing makes a node show a domain, at once and in the place of one of the same UUID.
func (w *world) showing(node string, domain model.Domain) {
	w.facts.change(node, func(f *model.NodeFacts) {
		f.Domains = slices.DeleteFunc(f.Domains, func(d model.Domain) bool { return d.UUID == domain.UUID })
		f.Domains = append(f.Domains, domain)
		slices.SortFunc(f.Domains, func(a, b model.Domain) int { return strings.Compare(a.UUID, b.UUID) })
	})
}

func (w *world) operation(id string) operation.Operation {
	op, _ := w.Store.Snapshot().Operation(id)
	return op
}

// obedient agents do as they are told.
func obedient(order operation.Order) *operation.Answer {
	seen := operation.Observation{State: model.DomainRunning, Epoch: order.Epoch}
	switch order.Action {
	case operation.ActStop, operation.ActMigrate, operation.ActDiscard:
		seen.State = model.DomainAbsent
	}
	return &operation.Answer{Outcome: operation.OutcomeDone, Seen: seen}
}

func TestStartStopMigrate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.running("web1")
		moved, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: other(vm.Holder), RequestID: "m", Caller: "operator/test"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		op := w.operation(moved.Operation.ID)
		after, _ := w.Store.Snapshot().VM(vm.ID)
		if op.Result != operation.Done || after.Holder != moved.Operation.Target || after.Epoch <= vm.Epoch {
			t.Fatalf("migration %+v, vm %+v", op, after)
		}
		stopped, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Stop, VM: vm.ID, RequestID: "s", Caller: "operator/test"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		after, _ = w.Store.Snapshot().VM(vm.ID)
		if w.operation(stopped.ID).Result != operation.Done || after.Holder != "" || after.Desired != model.Stopped {
			t.Fatalf("after the stop: %+v", after)
		}
		var kinds []string
		for _, event := range w.Store.Snapshot().EventsAfter(0) {
			kinds = append(kinds, event.Kind)
		}
		if got, want := strings.Join(kinds, " "), "vm.start vm.started vm.migrate vm.handed-over vm.migrated vm.stop vm.stopped"; got != want {
			t.Errorf("history %q, want %q", got, want)
		}
	})
}

func other(node string) string {
	if node == "n1" {
		return "n2"
	}
	return "n1"
}

func TestTheSameRequestTwiceIsOneOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		first, err := w.start("web1")
		if err != nil {
			t.Fatal(err)
		}
		again, err := w.start("web1")
		if err != nil || again.Operation.ID != first.Operation.ID {
			t.Fatalf("second answer %q, %v; want operation %s", again.Operation.ID, err, first.Operation.ID)
		}
	})
}

func TestAProposalWithUnknownOutcomeIsNotDoneTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.log.unknown = 1
		w.running("web1")
		if starts := w.agents.ordered(operation.ActStart); len(starts) != 1 {
			t.Errorf("%d starts were ordered", len(starts))
		}
	})
}

func TestAFailedNodeIsReplacedAndTheDecisionSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := ""
		w := newWorld(t, func(order operation.Order) *operation.Answer {
			if failed == "" || failed == order.Node {
				failed = order.Node
				return &operation.Answer{
					Outcome: operation.OutcomeFailed, Code: "no_memory", Error: "cannot allocate",
					Seen: operation.Observation{State: model.DomainAbsent},
				}
			}
			return obedient(order)
		})
		defer w.lose()
		vm := w.running("web1")
		if vm.Holder == failed || vm.Epoch != 2 {
			t.Errorf("holder %s after %s failed, epoch %d", vm.Holder, failed, vm.Epoch)
		}
		decision, _ := w.Store.Snapshot().Decision(vm.Decision)
		if len(decision.Request.Excluded) != 1 || decision.Request.Excluded[0] != failed {
			t.Errorf("the last decision excludes %v", decision.Request.Excluded)
		}
	})
}

func TestAStartThatFailsEverywhereLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(operation.Order) *operation.Answer {
			return &operation.Answer{
				Outcome: operation.OutcomeFailed, Error: "no such kernel", Seen: operation.Observation{State: model.DomainAbsent},
			}
		})
		defer w.lose()
		started, err := w.start("web1")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		op := w.operation(started.Operation.ID)
		if op.Result != operation.Failed || !strings.Contains(op.Message, "no such kernel") {
			t.Errorf("operation %+v", op)
		}
		if _, there := w.Store.Snapshot().VMByName("web1"); there {
			t.Error("the VM's record is still there")
		}
	})
}

func TestNoNodeFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		_, err := w.StartVM(
			t.Context(), lifecycle.StartVM{
				Name: "huge", RequestID: "r", VM: &model.VM{Spec: model.VMSpec{Memory: 64 * units.GiB, VCPUs: 1, Kernel: "/vmlinuz"}},
			},
		)
		var refusal *lead.Error
		if !errors.As(err, &refusal) || refusal.Code != lead.NoNodeFits || refusal.Decision == nil || len(refusal.Decision.Inputs.IDs) != 3 {
			t.Fatalf("error %v", err)
		}
		if _, kept := w.Store.Snapshot().Decision(refusal.Decision.ID); !kept {
			t.Error("the decision was not kept")
		}
		if _, there := w.Store.Snapshot().VMByName("huge"); there {
			t.Error("a VM was made")
		}
	})
}

func TestADryRunChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		before := w.Store.Snapshot().Index()
		started, err := w.StartVM(t.Context(), lifecycle.StartVM{
			Name: "web1", DryRun: true, VM: &model.VM{Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1, Kernel: "/vmlinuz"}},
		})
		if err != nil || started.Decision.Winner == "" || started.Operation.ID != "" {
			t.Fatalf("%+v, %v", started, err)
		}
		if after := w.Store.Snapshot().Index(); after != before {
			t.Errorf("index %d after %d", after, before)
		}
	})
}

// A burst sees its own reservations: eight nodes' worth of memory is never promised twice.
func TestABurstSpreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(operation.Order) *operation.Answer { return nil })
		defer w.lose()
		var wait sync.WaitGroup
		var mu sync.Mutex
		placed, refused := map[string]int{}, 0
		for i := range 24 {
			wait.Go(func() {
				started, err := w.start(fmt.Sprintf("vm%d", i))
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					refused++
					return
				}
				placed[started.Operation.Target]++
			})
		}
		wait.Wait()
		// 8 GiB less 1 GiB overhead takes six VMs of 1 GiB: "must exceed" is strict.
		for node, n := range placed {
			if n != 6 {
				t.Errorf("%s was promised to %d VMs", node, n)
			}
		}
		if refused != 6 {
			t.Errorf("%d refused, want 6", refused)
		}
	})
}

func TestANewLeaderTakesUpWhatTheOldOneLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := true
		w := newWorld(t, func(order operation.Order) *operation.Answer {
			if silent {
				return nil
			}
			return obedient(order)
		})
		started, err := w.start("web1")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.lose()
		if _, err := w.start("web2"); !isCode(err, lead.NoLeader) {
			t.Errorf("a deposed leader answers %v", err)
		}
		silent = false
		w.lead(2)
		defer w.lose()
		synctest.Wait()
		if op := w.operation(started.Operation.ID); op.Result != operation.Done {
			t.Fatalf("operation %+v", op)
		}
		orders := w.agents.ordered(operation.ActStart)
		if len(orders) != 2 || orders[0].Step != orders[1].Step || orders[0].Epoch != orders[1].Epoch {
			t.Errorf("the new leader ordered anew: %+v", orders)
		}
	})
}

func isCode(err error, code lead.Code) bool {
	refusal, ok := isRefusal(err)
	return ok && refusal.Code == code
}

func TestAnAgentThatComesBackGetsItsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		for _, node := range []string{"n1", "n2", "n3"} {
			w.agents.away[node] = true
		}
		started, err := w.start("web1")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if op := w.operation(started.Operation.ID); op.Phase != operation.Dispatched {
			t.Fatalf("silence moved the operation: %+v", op)
		}
		w.agents.mu.Lock()
		clear(w.agents.away)
		w.agents.mu.Unlock()
		w.AgentConnected(started.Operation.Target)
		synctest.Wait()
		if op := w.operation(started.Operation.ID); op.Result != operation.Done {
			t.Errorf("operation %+v", op)
		}
	})
}

func TestADoubtfulMigrationIsJudgedByWhatBothNodesShow(t *testing.T) {
	judgedWhen(t, "b1", func(op operation.Operation, vm model.VM, resumes []operation.Order) {
		if op.Result != operation.Done || vm.Holder != op.Target {
			t.Errorf("operation %+v, holder %s", op, vm.Holder)
		}
		if len(resumes) != 1 || resumes[0].Node != op.Target {
			t.Errorf("resume orders %+v", resumes)
		}
	})
}

// Its guest may have run on there until the machine went down.
func TestAMigrationWhoseSourceBootedAnewWaitsForAPerson(t *testing.T) {
	judgedWhen(t, "b2", func(op operation.Operation, vm model.VM, resumes []operation.Order) {
		if op.Result != operation.Parked || len(resumes) != 0 || !strings.HasPrefix(vm.Condition.Text, "parked: the source's host went down") {
			t.Errorf("operation %s %q, condition %q, resume orders %+v", op.Phase, op.Result, vm.Condition.Text, resumes)
		}
	})
}

// judgedWhen migrates a VM. The end goes unseen, the source shows it no more, under a boot, and the target has it paused.
func judgedWhen(t *testing.T, boot string, check func(op operation.Operation, vm model.VM, resumes []operation.Order)) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.running("web1")
		w.agents.mu.Lock()
		w.agents.script = func(order operation.Order) *operation.Answer {
			switch {
			case order.Action == operation.ActMigrate:
				return &operation.Answer{
					Outcome: operation.OutcomeAmbiguous, Error: "libvirtd went away", Seen: operation.Observation{State: model.DomainUnknown},
				}
			case order.Action == operation.ActInspect && order.Node == vm.Holder:
				looks++
				// The job is seen running twice before it ends.
				seen := operation.Observation{State: model.DomainRunning, Epoch: order.Epoch, JobActive: true}
				if looks > 2 {
					seen = operation.Observation{State: model.DomainAbsent}
					w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.Boot = boot })
				}
				return &operation.Answer{Outcome: operation.OutcomeDone, Seen: seen}
			case order.Action == operation.ActInspect:
				return &operation.Answer{Outcome: operation.OutcomeDone, Seen: operation.Observation{State: model.DomainPaused, Epoch: order.Epoch}}
			default:
				return obedient(order)
			}
		}
		w.agents.mu.Unlock()
		target := other(vm.Holder)
		moved, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: target, RequestID: "m"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		op := w.operation(moved.Operation.ID)
		after, _ := w.Store.Snapshot().VM(vm.ID)
		check(op, after, w.agents.ordered(operation.ActResume))
	})
}

func TestACancelledMigrationLeavesTheVMWhereItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.running("web1")
		w.agents.mu.Lock()
		w.agents.script = func(order operation.Order) *operation.Answer {
			if order.Action == operation.ActMigrate {
				if w.agents.cancels == 0 {
					return nil
				}
				return &operation.Answer{
					Outcome: operation.OutcomeCancelled, Error: "cancelled",
					Seen: operation.Observation{State: model.DomainRunning, Epoch: order.Epoch},
				}
			}
			return obedient(order)
		}
		w.agents.mu.Unlock()
		moved, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: other(vm.Holder), RequestID: "m"})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Stop, VM: vm.ID}); !isCode(err, lead.Busy) {
			t.Errorf("a stop during the migration: %v", err)
		}
		if _, err := w.CancelOperation(t.Context(), moved.Operation.ID, "operator/test"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		op := w.operation(moved.Operation.ID)
		after, _ := w.Store.Snapshot().VM(vm.ID)
		if op.Result != operation.Failed || after.Holder != vm.Holder || after.Operation != "" {
			t.Errorf("operation %+v, vm %+v", op, after)
		}
		if ended, failed := w.told("vm.migrate-cancelled"), w.told("vm.migrate-failed"); len(ended) != 1 || len(failed) > 0 {
			t.Errorf("what somebody has cancelled is told as %v, and as a failure: %v", ended, failed)
		}
		if _, err := w.CancelOperation(t.Context(), moved.Operation.ID, ""); !isCode(err, lead.Conflict) ||
			!strings.Contains(err.Error(), "has ended already (cancelled)") {
			t.Errorf("cancelling what has ended: %v", err)
		}
	})
}

// The guest would stand still on a node that nobody can tell to let it run.
func TestAMigrationIsGivenUpWhenItsTargetAils(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.running("web1")
		target := other(vm.Holder)
		ails := func(why string) {
			w.facts.change(target, func(f *model.NodeFacts) { f.Ailing, f.HeardAt = why, time.Now() })
		}
		w.agents.mu.Lock()
		w.agents.script = func(order operation.Order) *operation.Answer {
			if order.Action != operation.ActMigrate {
				return obedient(order)
			}
			if w.agents.cancels == 0 {
				return nil
			}
			return &operation.Answer{
				Outcome: operation.OutcomeCancelled, Error: "cancelled",
				Seen: operation.Observation{State: model.DomainRunning, Epoch: order.Epoch},
			}
		}
		w.agents.mu.Unlock()
		moved, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: target, RequestID: "m"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if op := w.operation(moved.Operation.ID); !op.Live() || op.GivenUp != "" {
			t.Fatalf("while its target is well: %+v", op)
		}
		ails("its agent's journal takes no entry")
		time.Sleep(time.Minute)
		op := w.operation(moved.Operation.ID)
		after, _ := w.Store.Snapshot().VM(vm.ID)
		if op.Result != operation.Failed || after.Holder != vm.Holder || !strings.Contains(op.Message, "its agent's journal takes no entry") {
			t.Errorf("operation %+v, vm %+v", op, after)
		}
		if _, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: target}); !isCode(err, lead.NoNodeFits) {
			t.Errorf("to a node that ails: %v", err)
		}
		ails("")
		w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.Ailing = "its agent's journal takes no entry" })
		if _, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: target}); !isCode(err, lead.Unavailable) {
			t.Errorf("away from a node that ails: %v", err)
		}
	})
}

func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.running("web1")
		start := func(r lifecycle.StartVM) error {
			_, err := w.StartVM(t.Context(), r)
			return err
		}
		migrate := func(r lifecycle.MigrateVM) error {
			_, err := w.MigrateVM(t.Context(), r)
			return err
		}
		spec := func(memory units.Bytes, vcpus int) *model.VMSpec {
			return &model.VMSpec{Memory: memory, VCPUs: vcpus, Kernel: "/vmlinuz"}
		}
		for _, c := range []struct {
			name string
			err  error
			code lead.Code
			says string
		}{
			{"a name twice", start(lifecycle.StartVM{Name: "web1", VM: &model.VM{Spec: *spec(units.GiB, 1)}}), lead.Exists, "runs already"},
			{"nothing to start", start(lifecycle.StartVM{Name: "web9"}), lead.NotFound, "no VM"},
			{"a bad name", start(lifecycle.StartVM{Name: "../x", VM: &model.VM{Spec: *spec(units.GiB, 1)}}), lead.Invalid, "../x"},
			{"negative memory", start(lifecycle.StartVM{Name: "a", VM: &model.VM{Spec: *spec(-1, 1)}}), lead.Invalid, "memory"},
			{"absurd memory", start(lifecycle.StartVM{Name: "a", VM: &model.VM{Spec: *spec(units.Bytes(1)<<60, 1)}}), lead.Invalid, "memory"},
			{"no vCPU", start(lifecycle.StartVM{Name: "a", VM: &model.VM{Spec: *spec(units.GiB, 0)}}), lead.Invalid, "vcpus"},
			{"a UUID twice", start(lifecycle.StartVM{Name: "b", VM: &model.VM{ID: vm.ID, Spec: *spec(units.GiB, 1)}}), lead.Exists, "web1"},
			{"an unknown VM", migrate(lifecycle.MigrateVM{VM: "nothing"}), lead.NotFound, "no VM"},
			{"to where it is", migrate(lifecycle.MigrateVM{VM: vm.ID, Node: vm.Holder}), lead.Conflict, "already"},
		} {
			refusal, ok := isRefusal(c.err)
			if !ok || refusal.Code != c.code || !strings.Contains(refusal.Message, c.says) || refusal.NextStep == "" {
				t.Errorf("%s: %v, next %q; want %s saying %q", c.name, c.err, refusal.NextStep, c.code, c.says)
			}
		}
		w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.Liveness, f.LivenessReason = model.Unreachable, "silent for 40s" })
		if err := migrate(lifecycle.MigrateVM{VM: vm.ID}); !isCode(err, lead.Unavailable) {
			t.Errorf("from a silent node: %v", err)
		}
	})
}

// Right after a failover a new leader has heard of no node: a start waits for them instead of being refused.
func TestAStartWaitsForTheNodesOfANewLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		known := w.facts.nodes
		w.facts.mu.Lock()
		w.facts.nodes, w.facts.waiting = map[string]model.NodeFacts{}, true
		w.facts.mu.Unlock()
		time.AfterFunc(time.Second, func() {
			w.facts.mu.Lock()
			defer w.facts.mu.Unlock()
			w.facts.nodes = known
		})
		w.running("web1")
		w.facts.mu.Lock()
		w.facts.nodes, w.facts.waiting = map[string]model.NodeFacts{}, false
		w.facts.mu.Unlock()
		if _, err := w.start("web2"); !isCode(err, lead.NoNodeFits) {
			t.Errorf("once all is known: %v", err)
		}
	})
}

// A guest that switched itself off is started again, under a new epoch, once its node positively does not run it.
func TestAVMThatIsGoneCanBeStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.running("web1")
		again := lifecycle.StartVM{Name: "web1", RequestID: "again"}
		w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.Domains = nil })
		if _, err := w.StartVM(t.Context(), again); !isCode(err, lead.Busy) {
			t.Fatalf("with a listing from before it was started: %v", err)
		}
		w.show(vm)
		time.Sleep(time.Second)
		if _, err := w.StartVM(t.Context(), again); !isCode(err, lead.Exists) {
			t.Fatalf("while it runs: %v", err)
		}
		w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.Domains, f.DomainsKnown = nil, false })
		if _, err := w.StartVM(t.Context(), again); !isCode(err, lead.Exists) {
			t.Fatalf("while nobody knows: %v", err)
		}
		w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.DomainsKnown = true })
		if _, err := w.StartVM(t.Context(), again); !isCode(err, lead.Busy) {
			t.Fatalf("while nobody knows how it left: %v", err)
		}
		w.facts.change(vm.Holder, ended(vm.ID))
		if _, err := w.StartVM(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if after, _ := w.Store.Snapshot().VM(vm.ID); after.Epoch <= vm.Epoch || after.Holder == "" {
			t.Errorf("vm %+v", after)
		}
	})
}

func isRefusal(err error) (*lead.Error, bool) {
	var refusal *lead.Error
	ok := errors.As(err, &refusal)
	return refusal, ok
}
