package conformance

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"berth/coordinator/consensus"
	"berth/coordinator/control"
	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/estate"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/coordinator/view"
	"berth/shared/units"
)

// leader is the real leader's work on the real replicated state, with the records of a world in it. Only the log, the
// agents and the telemetry are stood in for: commands apply at once, agents do as they are told, figures never change.
type leader struct {
	*checker
	*control.Control
	world *world
	store *state.Store
	index uint64
	calls int
}

// lead runs steps against a leader, in virtual time.
func (w *world) lead(steps func(*leader)) {
	w.Helper()
	outside := w.checker
	synctest.Test(outside.T, func(t *testing.T) {
		inside := *outside
		inside.T = t
		w.checker = &inside
		defer func() { w.checker, outside.checked = outside, inside.checked }()
		store := state.NewStore()
		l := &leader{checker: &inside, world: w, store: store}
		random := uint64(0)
		l.Control = control.New(control.Config{Config: lead.Config{
			Store: store, Proposer: l, Agents: l, Inventory: l, Logger: hclog.NewNullLogger(), Now: time.Now,
			Random: func() uint64 { random++; return random * 0x9e3779b97f4a7c15 },
		}})
		l.load()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			l.Lead(ctx, 1)
			close(done)
		}()
		synctest.Wait()
		defer func() {
			cancel()
			<-done
		}()
		steps(l)
	})
}

// load puts the world's records into the state.
func (l *leader) load() {
	l.Helper()
	command := state.Command{
		Key: "load", Kind: "load", At: time.Now(), Resources: l.world.Resources, Nodes: l.world.Nodes, VMs: []model.VM{l.world.vm},
	}
	for _, r := range command.Resources {
		command.Expect = append(command.Expect, state.Expectation{Table: state.Resources, ID: r.ID})
	}
	for _, n := range command.Nodes {
		command.Expect = append(command.Expect, state.Expectation{Table: state.Nodes, ID: n.ID})
	}
	command.Expect = append(command.Expect, state.Expectation{Table: state.VMs, ID: l.world.vm.ID})
	l.put(command)
}

func (l *leader) put(command state.Command) {
	l.Helper()
	result, err := l.Propose(l.Context(), command)
	l.must(err)
	if result.Refusal != nil {
		l.Fatalf("%s is refused: %+v", command.Kind, result.Refusal)
	}
}

// Propose applies a command at once.
func (l *leader) Propose(_ context.Context, command state.Command) (state.Result, error) {
	data, err := command.Encode()
	if err != nil {
		return state.Result{}, err
	}
	l.index++
	return l.store.FSM().Apply(&raft.Log{Index: l.index, Data: data}).(state.Result), nil
}

// ProposeTogether applies commands one after the other.
func (l *leader) ProposeTogether(ctx context.Context, commands []state.Command) []consensus.Answer {
	answers := make([]consensus.Answer, len(commands))
	for i := range commands {
		answers[i].Result, answers[i].Err = l.Propose(ctx, commands[i])
	}
	return answers
}

// Barrier has nothing to wait for.
func (l *leader) Barrier(context.Context) error { return nil }

// Order does what is asked, and says so.
func (l *leader) Order(_ uint64, order operation.Order) bool {
	seen := operation.Observation{State: model.DomainRunning, Epoch: order.Epoch}
	switch order.Action {
	case operation.ActStop, operation.ActMigrate, operation.ActDiscard:
		seen.State = model.DomainAbsent
	}
	go l.Answered(operation.Answer{
		Operation: order.Operation, Node: order.Node, Step: order.Step, Outcome: operation.OutcomeDone, Seen: seen,
	})
	return true
}

// Perform does nothing: no case has volumes.
func (*leader) Lacks(operation.Order) []string { return nil }

func (*leader) Removed() []evidence.Removed { return nil }

func (*leader) SuspendRemoved(context.Context, string, lead.CopyOf) error { return nil }

func (l *leader) Perform(context.Context, string, lead.Task) (lead.TaskDone, error) {
	return lead.TaskDone{}, nil
}

// Cancel has nothing to cancel: orders are done at once.
func (l *leader) Cancel(string, string, uint32) {}

// Settled is always true: nothing is waited for.
func (l *leader) Settled(*state.Snapshot, time.Time) bool { return true }

// Shown, MayShow, WithDisk and Copied: a case has each VM once, and disks of its own.
func (l *leader) Shown(string) []string { return nil }

func (l *leader) MayShow(string) []string { return nil }

func (l *leader) WithDisk(string) []string { return nil }

func (l *leader) Copied() []string { return nil }

func (l *leader) ChangedDevices() []model.ToldDevices { return nil }

// Apart and RanOn are of what no case has.
func (l *leader) Apart() model.PoolsApart { return nil }

func (l *leader) RanOn(string) []string { return nil }

// NodesTouched and VMsTouched: everything is looked at each time.
func (l *leader) NodesTouched() func(*state.Snapshot, time.Time) evidence.Touched {
	return func(*state.Snapshot, time.Time) evidence.Touched { return evidence.Touched{All: true} }
}

func (l *leader) VMsTouched() func(*state.Snapshot, time.Time) evidence.Touched {
	return l.NodesTouched()
}

// SetApart is never called: the cases have no pools.
func (l *leader) SetApart(model.PoolsApart) { l.Error("a pool was tried that no case has") }

// Facts are the world's, as of now, and a domain of each VM that the node holds.
func (l *leader) Facts(node string, now time.Time) model.NodeFacts {
	facts := l.world.facts[node]
	for _, vm := range l.store.Snapshot().VMsOn(node) {
		facts.Domains = append(facts.Domains, model.Domain{
			UUID: vm.ID, Name: vm.Name, State: model.DomainRunning, Memory: vm.Spec.Memory, VCPUs: vm.Spec.VCPUs,
			Managed: true, Epoch: vm.Epoch,
		})
	}
	facts.InventoryAt, facts.TelemetryAt = now, now
	facts.MigrationURI = "qemu+tls://" + node + "/system"
	return facts
}

// View joins the state's records with the world's facts, and with the VMs that make its nodes as full as the case says.
func (l *leader) View(snapshot *state.Snapshot, now time.Time) *view.View {
	facts := map[string]model.NodeFacts{}
	for _, node := range snapshot.Nodes() {
		facts[node.ID] = l.Facts(node.ID, now)
	}
	records := view.Records{
		Clusters: snapshot.Clusters(), Nodes: snapshot.Nodes(), VMs: append(snapshot.VMs(), l.world.VMs...),
	}
	for _, op := range snapshot.LiveOperations() {
		if reservation, held := op.Reservation(); held {
			records.Reservations = append(records.Reservations, reservation)
		}
	}
	return view.New(now, snapshot.Index(), records, facts)
}

// vm is the record of a VM, which is made if there is none of that name.
func (l *leader) vm(name string) model.VM {
	l.Helper()
	vm, there := l.store.Snapshot().VMByName(name)
	if !there {
		vm = model.VM{
			ID: name, Name: name, VDC: "vdc", Desired: model.Stopped,
			Spec: model.VMSpec{Memory: units.MiB, VCPUs: 1, Kernel: "/vmlinuz"},
		}
		l.save(vm)
		vm, _ = l.store.Snapshot().VMByName(name)
	}
	return vm
}

func (l *leader) save(vm model.VM) {
	l.Helper()
	l.put(state.Command{
		Key: l.request(), Kind: "change vm", At: time.Now(), VMs: []model.VM{vm},
		Expect: []state.Expectation{{Table: state.VMs, ID: vm.ID, Revision: vm.Revision}},
	})
}

func (l *leader) request() string {
	l.calls++
	return "call-" + strconv.Itoa(l.calls)
}

// edit gives a VM other customer keys.
func (l *leader) edit(name string, keys []entry) {
	l.Helper()
	vm := l.vm(name)
	vm.Keys = slices.DeleteFunc(vm.Keys, func(k model.Key) bool { return k.Class != model.SystemKey })
	for _, one := range keys {
		vm.Keys = append(vm.Keys, one.key(model.CustomerKey))
	}
	l.save(vm)
}

// start starts a VM on a node, or on the best one if none is named.
func (l *leader) start(name, node string) {
	l.Helper()
	l.vm(name)
	_, err := l.StartVM(l.Context(), lifecycle.StartVM{Name: name, Node: node, RequestID: l.request(), Caller: "operator/test"})
	l.must(err)
	synctest.Wait()
	if vm := l.vm(name); vm.Holder == "" || vm.Operation != "" || node != "" && vm.Holder != node {
		l.Fatalf("%s was started on %q and is on %q", name, node, vm.Holder)
	}
}

func (l *leader) stop(name string) {
	l.Helper()
	_, err := l.ActOnVM(l.Context(), lifecycle.ActOnVM{
		Kind: operation.Stop, VM: l.vm(name).ID, RequestID: l.request(), Caller: "operator/test",
	})
	l.must(err)
	synctest.Wait()
	if vm := l.vm(name); vm.Holder != "" {
		l.Fatalf("%s was stopped and is on %q", name, vm.Holder)
	}
}

func (l *leader) migrate(name, node string) {
	l.Helper()
	_, err := l.MigrateVM(l.Context(), lifecycle.MigrateVM{VM: l.vm(name).ID, Node: node, RequestID: l.request(), Caller: "operator/test"})
	l.must(err)
	synctest.Wait()
	if vm := l.vm(name); node != "" && vm.Holder != node {
		l.Fatalf("%s was migrated to %q and is on %q", name, node, vm.Holder)
	}
}

// shown are the customer keys that the VMs on a node show to others.
func (l *leader) shown(node string) []string {
	l.Helper()
	view := l.View(l.store.Snapshot(), time.Now())
	var all []string
	for _, one := range view.Node(node).Allocations {
		for _, key := range one.Resident {
			all = append(all, entry{Name: key.Name, Value: key.Value}.String())
		}
	}
	return all
}

// next asks where a stopped VM would start.
func (l *leader) next(name string) decided {
	l.Helper()
	started, err := l.StartVM(l.Context(), lifecycle.StartVM{Name: name, DryRun: true, RequestID: l.request(), Caller: "operator/test"})
	var refusal *lead.Error
	if errors.As(err, &refusal) && refusal.Decision != nil { // no node is an answer, too
		started.Decision, err = *refusal.Decision, nil
	}
	l.must(err)
	return decideAll(l.checker, l.View(l.store.Snapshot(), time.Now()), started.Decision.Request, l.world.affinity())
}

// levelOf is the level of the compiled copy of a sticky key that a VM has.
func (l *leader) levelOf(vm model.VM, name string) string {
	l.Helper()
	resolved, err := estate.Resolve(l.store.Snapshot(), vm)
	l.must(err)
	for _, one := range slices.Concat(resolved.System, resolved.Customer) {
		if one.Name == name && one.Sticky {
			return one.Level
		}
	}
	return ""
}
