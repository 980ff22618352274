package state

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state/naming"
)

// naive is the state once more, written the naive way: whole maps, copied for every command.
type naive struct {
	nodes     map[string]model.Node
	vms       map[string]model.VM
	ops       map[string]operation.Operation
	resources map[string]model.Resource
	plans     map[string]model.Plan
	decisions map[string]bool
	meta      map[string]string
	events    []model.Event
	epochs    map[string]uint64
	keys      map[string]string // kind
}

func newNaive() *naive {
	return &naive{
		nodes: map[string]model.Node{}, vms: map[string]model.VM{}, ops: map[string]operation.Operation{},
		resources: map[string]model.Resource{}, plans: map[string]model.Plan{},
		decisions: map[string]bool{}, meta: map[string]string{}, epochs: map[string]uint64{}, keys: map[string]string{},
	}
}

// after is the model after the command, or nil when it has to be refused.
func (m *naive) after(command Command, index uint64) *naive {
	if kind, used := m.keys[command.Key]; used {
		if kind != command.Kind {
			return nil
		}
		return m
	}
	n := &naive{
		nodes: maps.Clone(m.nodes), vms: maps.Clone(m.vms), ops: maps.Clone(m.ops), decisions: maps.Clone(m.decisions),
		resources: maps.Clone(m.resources), plans: maps.Clone(m.plans),
		meta: maps.Clone(m.meta), events: slices.Clone(m.events), epochs: maps.Clone(m.epochs), keys: maps.Clone(m.keys),
	}
	revision := map[Table]func(string) uint64{
		Nodes: func(id string) uint64 { return m.nodes[id].Revision },
		VMs:   func(id string) uint64 { return m.vms[id].Revision }, Operations: func(id string) uint64 { return m.ops[id].Revision },
		Resources: func(id string) uint64 { return m.resources[id].Revision },
		Plans:     func(id string) uint64 { return m.plans[id].Revision },
	}
	expected := map[Record]bool{}
	for _, e := range command.Expect {
		if revision[e.Table](e.ID) != e.Revision {
			return nil
		}
		expected[Record{e.Table, e.ID}] = true
	}
	touched := map[Record]bool{}
	touch := func(table Table, id string) bool {
		record := Record{table, id}
		again := touched[record]
		touched[record] = true
		return !again && (expected[record] || table == Decisions)
	}
	for _, gone := range command.Delete {
		if !touch(gone.Table, gone.ID) || revision[gone.Table](gone.ID) == 0 || gone.Table == Operations {
			return nil
		}
		switch gone.Table {
		case Nodes:
			delete(n.nodes, gone.ID)
		case VMs:
			delete(n.vms, gone.ID)
		case Resources:
			delete(n.resources, gone.ID)
		}
	}
	n.forget(command.Delete, index)
	for _, node := range command.Nodes {
		if !touch(Nodes, node.ID) {
			return nil
		}
		node.Revision = index
		n.nodes[node.ID] = node
	}
	for _, vm := range command.VMs {
		if !touch(VMs, vm.ID) || vm.Epoch < m.epochs[vm.ID] {
			return nil
		}
		vm.Revision = index
		n.vms[vm.ID], n.epochs[vm.ID] = vm, vm.Epoch
	}
	for _, op := range command.Operations {
		before, exists := m.ops[op.ID]
		if !touch(Operations, op.ID) || exists && before.Phase == operation.Ended {
			return nil
		}
		op.Revision = index
		n.ops[op.ID] = op
	}
	for _, resource := range command.Resources {
		before, exists := m.resources[resource.ID]
		if !touch(Resources, resource.ID) || exists && before.Kind != resource.Kind {
			return nil
		}
		resource.Revision = index
		n.resources[resource.ID] = resource
	}
	for _, plan := range command.Plans {
		before, exists := m.plans[plan.ID]
		if !touch(Plans, plan.ID) || exists && !before.State.Live() && plan.State.Live() {
			return nil
		}
		plan.Revision = index
		n.plans[plan.ID] = plan
	}
	for _, decision := range command.Decisions {
		if !touch(Decisions, decision.ID) || m.decisions[decision.ID] {
			return nil
		}
		n.decisions[decision.ID] = true
	}
	for _, event := range command.Events {
		event.Index = index
		n.events = append(n.events, event)
	}
	for key, value := range command.Meta {
		n.meta[key] = value
	}
	n.keys[command.Key] = command.Kind
	if !n.consistent() || slices.ContainsFunc(command.Delete, n.needs) {
		return nil
	}
	return n
}

// forget takes what is gone out of every list of members and preferences.
func (m *naive) forget(deleted []Record, index uint64) {
	without := func(list []string, tables ...Table) ([]string, bool) {
		var kept []string
		for _, id := range list {
			if !slices.ContainsFunc(deleted, func(r Record) bool { return r.ID == id && slices.Contains(tables, r.Table) }) {
				kept = append(kept, id)
			}
		}
		return kept, len(kept) < len(list)
	}
	for id, resource := range m.resources {
		if kept, changed := without(resource.Members["vms"], VMs, Nodes); changed {
			resource.Revision, resource.Members = index, nil
			if kept != nil {
				resource.Members = map[string][]string{"vms": kept}
			}
			m.resources[id] = resource
		}
	}
	for id, vm := range m.vms {
		if kept, changed := without(vm.Preferred, Nodes); changed {
			vm.Revision, vm.Preferred = index, kept
			m.vms[id] = vm
		}
	}
}

// needs tells whether a deleted record is a node that something still names.
func (m *naive) needs(gone Record) bool {
	if gone.Table != Nodes {
		return false
	}
	for _, vm := range m.vms {
		if vm.Holder == gone.ID {
			return true
		}
	}
	for _, op := range m.ops {
		if op.Phase != operation.Ended && (op.Source == gone.ID || op.Target == gone.ID) {
			return true
		}
	}
	return false
}

func (m *naive) consistent() bool {
	used := map[string]bool{}
	for _, node := range m.nodes {
		if used["node "+node.Name] {
			return false
		}
		used["node "+node.Name] = true
	}
	for _, vm := range m.vms {
		if used["vm "+vm.Name] {
			return false
		}
		used["vm "+vm.Name] = true
	}
	if !m.linked() {
		return false
	}
	for _, op := range m.ops {
		if op.Phase == operation.Ended {
			continue
		}
		if _, exists := m.vms[op.VM]; !exists || used["live "+op.VM] {
			return false
		}
		used["live "+op.VM] = true
	}
	return true
}

// linked tells whether everything that is named exists, and each disk is in one VM at most.
func (m *naive) linked() bool {
	names, clusters := map[string]bool{}, map[string]bool{model.DefaultCluster: true}
	for _, resource := range m.resources {
		for _, member := range resource.Members["vms"] {
			_, vm := m.vms[member]
			if _, node := m.nodes[member]; !vm && !node {
				return false
			}
		}
		name := naming.OfResource(resource.Kind, resource.Name)
		if names[name] {
			return false
		}
		names[name] = true
		if resource.Kind == model.KindCluster {
			clusters[resource.Name] = true
		}
		for _, link := range resource.Links {
			if _, exists := m.resources[link]; !exists {
				return false
			}
		}
	}
	disks := map[string]string{}
	for _, vm := range m.vms {
		for _, link := range append([]string{vm.VDC}, vm.Disks...) {
			if _, exists := m.resources[link]; link != "" && !exists {
				return false
			}
		}
		for _, node := range vm.Preferred {
			if _, exists := m.nodes[node]; !exists {
				return false
			}
		}
		for _, disk := range vm.Disks {
			if other, taken := disks[disk]; taken && other != vm.ID {
				return false
			}
			disks[disk] = vm.ID
		}
	}
	for _, node := range m.nodes {
		if !clusters[node.Cluster] {
			return false
		}
	}
	return true
}

func (m *naive) compare(t *rapid.T, x *Snapshot) {
	got := newNaive()
	for _, n := range x.Nodes() {
		got.nodes[n.ID] = n
	}
	for _, v := range x.VMs() {
		got.vms[v.ID] = v
	}
	for _, o := range x.Operations() {
		got.ops[o.ID] = o
	}
	for _, kind := range []model.Kind{model.KindCluster, model.KindVDC} {
		for _, r := range x.Resources(kind) {
			got.resources[r.ID] = r
		}
	}
	for _, p := range x.Plans() {
		got.plans[p.ID] = p
	}
	for _, p := range x.LivePlans() {
		if !m.plans[p.ID].State.Live() {
			t.Fatalf("plan %s is live, want it ended", p.ID)
		}
	}
	for _, d := range x.Decisions(0) {
		got.decisions[d.ID] = true
	}
	for id := range m.epochs {
		if last := x.LastEpoch(id); last != m.epochs[id] {
			t.Fatalf("the last epoch of %s is %d, want %d", id, last, m.epochs[id])
		}
	}
	for key := range m.meta {
		got.meta[key] = x.Meta(key)
	}
	got.events = x.Events(0)
	got.epochs, got.keys = m.epochs, m.keys
	if diff := cmp.Diff(m, got, cmp.AllowUnexported(naive{})); diff != "" {
		t.Fatalf("the state is not the model's (want -, got +):\n%s", diff)
	}
}

// drawCommand draws from so few names that commands meet. Most expectations are right, so that most commands are stored.
func drawCommand(t *rapid.T, m *naive, index uint64) Command {
	id := rapid.SampledFrom([]string{"a", "b", "c", "d"})
	command := Command{
		Key:  rapid.SampledFrom([]string{fmt.Sprint("k", index), fmt.Sprint("k", index), fmt.Sprint("k", index), "k1", "k2"}).Draw(t, "key"),
		Kind: rapid.SampledFrom([]string{"x", "x", "x", "y"}).Draw(t, "kind"),
		At:   noon,
	}
	expectOf := func(table Table, id string, revision uint64) {
		switch rapid.IntRange(0, 12).Draw(t, "expectation") {
		case 0: // forgotten
		case 1:
			command.Expect = append(command.Expect, expect(table, id, revision+1))
		default:
			command.Expect = append(command.Expect, expect(table, id, revision))
		}
	}
	for range rapid.IntRange(1, 3).Draw(t, "changes") {
		switch rapid.IntRange(0, 9).Draw(t, "change") {
		case 0:
			n := node(id.Draw(t, "node"), id.Draw(t, "node name"))
			n.Cluster = rapid.SampledFrom([]string{model.DefaultCluster, "a", "b"}).Draw(t, "cluster")
			expectOf(Nodes, n.ID, m.nodes[n.ID].Revision)
			command.Nodes = append(command.Nodes, n)
		case 1, 2:
			v := vm(id.Draw(t, "vm"), id.Draw(t, "vm name"), 0)
			v.Epoch = m.epochs[v.ID] + rapid.SampledFrom([]uint64{0, 1, 1, 1 << 63}).Draw(t, "epoch")
			if v.Epoch >= 1<<63 { // one less than it was
				v.Epoch = max(m.epochs[v.ID], 1) - 1
			}
			v.Holder = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "holder")
			v.VDC = rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, "vdc")
			v.Disks = rapid.SampledFrom([][]string{nil, nil, {"a"}, {"a", "b"}, {"b", "b"}}).Draw(t, "disks")
			v.Preferred = rapid.SampledFrom([][]string{nil, nil, nil, {"a"}, {"a", "b"}}).Draw(t, "preferred")
			expectOf(VMs, v.ID, m.vms[v.ID].Revision)
			command.VMs = append(command.VMs, v)
		case 3:
			o := start(id.Draw(t, "operation")+id.Draw(t, "of"), id.Draw(t, "operation's vm"))
			if rapid.Bool().Draw(t, "ended") {
				o = ended(o)
			}
			expectOf(Operations, o.ID, m.ops[o.ID].Revision)
			command.Operations = append(command.Operations, o)
		case 4:
			command.Decisions = append(command.Decisions, decision(id.Draw(t, "decision")+id.Draw(t, "of")))
			command.Events = append(command.Events, model.Event{At: noon, Kind: "placed"})
		case 5:
			command.Meta = map[string]string{id.Draw(t, "meta"): id.Draw(t, "value")}
		case 6, 7:
			kind := rapid.SampledFrom([]model.Kind{model.KindCluster, model.KindVDC}).Draw(t, "kind of resource")
			r := resource(id.Draw(t, "resource"), kind, id.Draw(t, "resource name"), nil)
			if to := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "link"); to != "" {
				r.Links = map[string]string{"to": to}
			}
			if members := rapid.SampledFrom([][]string{nil, nil, {"a"}, {"a", "b"}, {"b", "c"}}).Draw(t, "members"); members != nil {
				r.Members = map[string][]string{"vms": members}
			}
			expectOf(Resources, r.ID, m.resources[r.ID].Revision)
			command.Resources = append(command.Resources, r)
		case 8:
			record := Record{rapid.SampledFrom([]Table{Nodes, VMs, Resources}).Draw(t, "table"), id.Draw(t, "deleted")}
			revision := map[Table]uint64{
				Nodes: m.nodes[record.ID].Revision, VMs: m.vms[record.ID].Revision, Resources: m.resources[record.ID].Revision,
			}[record.Table]
			expectOf(record.Table, record.ID, revision)
			command.Delete = append(command.Delete, record)
		case 9:
			p := plan(
				id.Draw(t, "plan"),
				rapid.SampledFrom([]model.PlanState{model.PlanProposed, model.PlanRunning, model.PlanDone}).Draw(t, "state"),
			)
			expectOf(Plans, p.ID, m.plans[p.ID].Revision)
			command.Plans = append(command.Plans, p)
		}
	}
	return command
}

// Whatever the log: the state is the model's, a restored member goes on like the others, a member that gets the log
// later comes to the same bytes and the same hash, and every invariant holds.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newNaive()
		a, b := NewStore(), NewStore() // b is restored from a's snapshots now and then
		var log []*raft.Log
		entries := rapid.Uint64Range(1, 60).Draw(t, "entries")
		for index := uint64(1); index <= entries; index++ {
			command := drawCommand(t, m, index)
			data, err := command.Encode()
			if err != nil {
				t.Fatal(err)
			}
			entry := &raft.Log{Index: index, Type: raft.LogCommand, Data: data}
			log = append(log, entry)
			next := m.after(command, index)
			result := a.FSM().Apply(entry).(Result)
			again := b.FSM().Apply(entry).(Result)
			if diff := cmp.Diff(result, again); diff != "" {
				t.Fatalf("two members answer differently:\n%s", diff)
			}
			if refused := result.Refusal != nil; refused != (next == nil) {
				t.Fatalf("entry %d refused: %v (%+v), the model refuses: %v", index, refused, result.Refusal, next == nil)
			}
			if next != nil {
				m = next
			}
			m.compare(t, a.Snapshot())
			if rapid.IntRange(0, 9).Draw(t, "restore") == 0 {
				if err := b.FSM().Restore(io.NopCloser(bytes.NewReader(save(t, a)))); err != nil {
					t.Fatal(err)
				}
			}
		}
		late := NewStore()
		for _, entry := range log {
			late.FSM().Apply(entry)
		}
		for _, other := range []*Store{b, late} {
			if !bytes.Equal(save(t, a), save(t, other)) || a.Hash() != other.Hash() {
				t.Fatal("the members have parted")
			}
		}
		if err := a.Snapshot().verify(); err != nil {
			t.Fatal(err)
		}
	})
}

func save(t *rapid.T, s *Store) []byte {
	var out bytes.Buffer
	if err := s.Snapshot().Save(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
