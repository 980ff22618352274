package state

import (
	"bufio"
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/shared/units"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// member is a store with a log of its own, driven the way Raft drives it.
type member struct {
	t     testing.TB
	store *Store
	fsm   raft.FSM
	index uint64
}

func newMember(t testing.TB) *member {
	t.Helper()
	store := NewStore()
	return &member{t: t, store: store, fsm: store.FSM()}
}

// apply stamps what every command needs and is not what the test is about.
func (m *member) apply(command Command) Result {
	m.t.Helper()
	m.index++
	if command.Key == "" {
		command.Key = fmt.Sprintf("key-%d", m.index)
	}
	if command.At.IsZero() {
		command.At = noon.Add(time.Duration(m.index) * time.Second)
	}
	data, err := command.Encode()
	if err != nil {
		m.t.Fatal(err)
	}
	return m.fsm.Apply(&raft.Log{Index: m.index, Type: raft.LogCommand, Data: data}).(Result)
}

func (m *member) stored(command Command) Result {
	m.t.Helper()
	result := m.apply(command)
	if result.Refusal != nil {
		m.t.Fatalf("refused: %+v", result.Refusal)
	}
	return result
}

func (m *member) refused(want RefusalCode, command Command) *Refusal {
	m.t.Helper()
	before := content(m.t, m.store.Snapshot())
	result := m.apply(command)
	if result.Refusal == nil {
		m.t.Fatalf("stored, want it refused as %s", want)
	}
	if result.Refusal.Code != want {
		m.t.Fatalf("refused as %s (%s), want %s", result.Refusal.Code, result.Refusal.Message, want)
	}
	if !bytes.Equal(before, content(m.t, m.store.Snapshot())) {
		m.t.Fatal("a refused command changed the records")
	}
	return result.Refusal
}

func saved(t testing.TB, x *Snapshot) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := x.Save(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// content is the snapshot without the section that moves with every entry of the log.
func content(t testing.TB, x *Snapshot) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, section := range sections {
		if section.name == tableApplied {
			continue
		}
		w := &summing{to: bufio.NewWriter(&out)}
		x.saveSection(w, section.name)
		if err := w.to.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

func node(id, name string) model.Node {
	return model.Node{ID: id, Name: name, Cluster: model.DefaultCluster, EnrolledAt: noon}
}

func vm(id, name string, epoch uint64) model.VM {
	return model.VM{
		ID: id, Name: name, Epoch: epoch, Desired: model.Running, CreatedAt: noon,
		Spec: model.VMSpec{Memory: 512 * units.MiB, VCPUs: 2},
	}
}

func resource(id string, kind model.Kind, name string, links map[string]string) model.Resource {
	return model.Resource{ID: id, Kind: kind, Name: name, Links: links, CreatedAt: noon}
}

func start(id, vm string) operation.Operation {
	return operation.Operation{
		ID: id, Kind: operation.Start, VM: vm, VMName: vm, Target: "n1", Epoch: 1, Phase: operation.Dispatched,
		CreatedAt: noon, UpdatedAt: noon,
	}
}

func ended(op operation.Operation) operation.Operation {
	op.Phase, op.Result, op.EndedAt = operation.Ended, operation.Done, noon
	return op
}

func decision(id string) placement.Decision {
	return placement.Decision{ID: id, At: noon, Outcome: placement.Placed, Winner: "n1"}
}

func expect(table Table, id string, revision uint64) Expectation {
	return Expectation{Table: table, ID: id, Revision: revision}
}

func putNode(revision uint64, n model.Node) Command {
	return Command{Kind: "node", Nodes: []model.Node{n}, Expect: []Expectation{expect(Nodes, n.ID, revision)}}
}

func putVM(revision uint64, v model.VM) Command {
	return Command{Kind: "vm", VMs: []model.VM{v}, Expect: []Expectation{expect(VMs, v.ID, revision)}}
}

func putResource(revision uint64, r model.Resource) Command {
	return Command{
		Kind: "resource", Resources: []model.Resource{r}, Expect: []Expectation{expect(Resources, r.ID, revision)},
	}
}

func putOperation(revision uint64, o operation.Operation) Command {
	return Command{
		Kind: "operation", Operations: []operation.Operation{o}, Expect: []Expectation{expect(Operations, o.ID, revision)},
	}
}

func plan(id string, state model.PlanState) model.Plan {
	return model.Plan{ID: id, Kind: model.PlanDrain, State: state, Cluster: model.DefaultCluster, CreatedAt: noon, UpdatedAt: noon}
}

func putPlan(revision uint64, p model.Plan) Command {
	return Command{Kind: "plan", Plans: []model.Plan{p}, Expect: []Expectation{expect(Plans, p.ID, revision)}}
}

func remove(table Table, id string, revision uint64) Command {
	return Command{Kind: "delete", Delete: []Record{{table, id}}, Expect: []Expectation{expect(table, id, revision)}}
}

func label(kind string, index uint64, i int) string { return fmt.Sprintf("%s-%d-%d", kind, index, i) }
