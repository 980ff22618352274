package state

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
)

func names[T any](values []T, of func(T) string) []string {
	var out []string
	for _, value := range values {
		out = append(out, of(value))
	}
	return out
}

func check(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (want -, got +):\n%s", what, diff)
	}
}

func TestReads(t *testing.T) {
	m := newMember(t)
	m.stored(putNode(0, node("n2", "alpha")))
	m.stored(putNode(0, node("n1", "beta")))
	for _, v := range []struct{ id, name, holder string }{
		{"v3", "web", "n1"}, {"v1", "www", "n1"}, {"v2", "db", "n2"}, {"v4", "v2", "n10"}, {"v5", "app", "n1"},
	} {
		record := vm(v.id, v.name, 1)
		record.Holder = v.holder
		m.stored(putVM(0, record))
	}
	for i, v := range []string{"v3", "v1", "v2"} {
		op := start("o"+v, v)
		op.Request = "r" + v
		op.CreatedAt = noon.Add(-time.Duration(i) * time.Hour)
		if v == "v1" {
			op = ended(op)
		}
		m.stored(putOperation(0, op))
	}
	other, last := decision("01AB"), decision("02")
	other.Request.VMName, last.Request.VMName = "db", "db"
	m.stored(Command{Decisions: []placement.Decision{decision("01AA"), other, last}})

	x := m.store.Snapshot()
	nodeName := func(n model.Node) string { return n.Name }
	vmName := func(v model.VM) string { return v.Name }
	operationID := func(o operation.Operation) string { return o.ID }
	decisionID := func(d placement.Decision) string { return d.ID }
	check(t, "nodes by ID", names(x.Nodes(), nodeName), "beta", "alpha")
	check(t, "VMs by name", names(x.VMs(), vmName), "app", "db", "v2", "web", "www")
	check(t, "VMs of n1 and not of n10, by name", names(x.VMsOn("n1"), vmName), "app", "web", "www")
	check(t, "VMs of no node", names(x.VMsOn(""), vmName))
	check(t, "operations, newest first", names(x.Operations(), operationID), "ov3", "ov1", "ov2")
	check(t, "live operations by VM", names(x.LiveOperations(), operationID), "ov2", "ov3")
	check(t, "decisions, newest first", names(x.Decisions(2), decisionID), "02", "01AB")
	about := func(r *placement.Request) bool { return r.VMName == "db" }
	check(t, "decisions about a VM, newest first", names(x.DecisionsAbout(0, "", about), decisionID), "02", "01AB")
	check(t, "the last decision about a VM", names(x.DecisionsAbout(1, "", about), decisionID), "02")
	check(t, "the decisions about a VM before one", names(x.DecisionsAbout(0, "02", about), decisionID), "01AB")
	check(t, "the decisions before one that is not kept", names(x.DecisionsAbout(0, "99", about), decisionID))

	if byID, _ := x.VMByRef("v2"); byID.Name != "db" {
		t.Errorf("v2 is %q: an ID goes before a name", byID.Name)
	}
	if byName, _ := x.VMByRef("web"); byName.ID != "v3" {
		t.Errorf("web is %q", byName.ID)
	}
	if withKind, _ := x.VMByRef("vm/web"); withKind.ID != "v3" {
		t.Errorf("found %+v by kind and name", withKind)
	}
	if other, found := x.VMByRef("node/web"); found {
		t.Errorf("found %+v by the kind of something else", other)
	}
	if n, ok := x.NodeByRef("alpha"); !ok || n.ID != "n2" {
		t.Errorf("alpha is %q", n.ID)
	}
	if op, ok := x.OperationByRequest("rv1"); !ok || op.ID != "ov1" {
		t.Errorf("request rv1 made %q", op.ID)
	}
	for _, lookup := range []string{"", "nothing", "v", "v1\x00"} {
		if found, ok := x.VMByRef(lookup); ok {
			t.Errorf("%q found %q", lookup, found.ID)
		}
		if found, ok := x.OperationByRequest(lookup); ok {
			t.Errorf("request %q found %q", lookup, found.ID)
		}
	}
	for ref, want := range map[string]string{"last": "02", "01AB": "01AB", "02": "02", "0": "", "01A": "", "": "", "03": ""} {
		if found, ok := x.Decision(ref); found.ID != want || ok != (want != "") {
			t.Errorf("decision %q found %q, want %q", ref, found.ID, want)
		}
	}
}

func TestEventsAreToldInOrderAndFromAnIndexOn(t *testing.T) {
	m := newMember(t)
	for _, kinds := range [][]string{{"a", "b"}, {}, {"c"}, {"d", "e"}} {
		command := Command{}
		for _, kind := range kinds {
			command.Events = append(command.Events, model.Event{At: noon, Kind: kind})
		}
		m.stored(command)
	}
	x := m.store.Snapshot()
	kind := func(e model.Event) string { return e.Kind }
	check(t, "all", names(x.Events(0), kind), "a", "b", "c", "d", "e")
	check(t, "the last two", names(x.Events(2), kind), "d", "e")
	check(t, "after 1", names(x.EventsAfter(1), kind), "c", "d", "e")
	check(t, "after 3", names(x.EventsAfter(3), kind), "d", "e")
	check(t, "after the last", names(x.EventsAfter(4), kind))
	check(t, "after the last possible", names(x.EventsAfter(1<<64-1), kind))
	if at := x.Events(0)[2].Index; at != 3 {
		t.Errorf("event c is of index %d, want 3", at)
	}
}

func TestASnapshotStaysAndTellsWhenItIsOld(t *testing.T) {
	m := newMember(t)
	m.stored(putNode(0, node("n1", "alpha")))
	x := m.store.Snapshot()
	select {
	case <-x.Changed():
		t.Fatal("old although nothing came after it")
	default:
	}
	m.stored(putNode(1, node("n1", "beta")))
	<-x.Changed()
	if n, _ := x.Node("n1"); n.Name != "alpha" || x.Index() != 1 {
		t.Errorf("the snapshot changed to %q at %d", n.Name, x.Index())
	}
	changed := m.store.Changed()
	m.refused(Stale, putNode(1, node("n1", "gamma")))
	<-changed // a refusal moves the index too, and readers wait for an index
}

func TestAReaderMayChangeWhatItGot(t *testing.T) {
	m := newMember(t)
	v := vm("v1", "web", 1)
	v.Spec.Networks = []string{"default"}
	m.stored(putVM(0, v))
	got, _ := m.store.Snapshot().VM("v1")
	got.Spec.Networks[0] = "changed"
	if again, _ := m.store.Snapshot().VM("v1"); again.Spec.Networks[0] != "default" {
		t.Error("a reader changed the state")
	}
}

// The starts of a node are those that are dispatched, and those that wait in the order in which they came.
func TestStartsOnANode(t *testing.T) {
	m := newMember(t)
	put := func(id, node string, change func(*operation.Operation)) {
		op := start(id, "vm-"+id)
		op.Target, op.Phase = node, operation.Queued
		change(&op)
		before, known := m.store.Snapshot().Operation(id)
		if !known {
			m.stored(putVM(0, vm("vm-"+id, id, 1)))
		}
		m.stored(putOperation(before.Revision, op))
	}
	queued := func(*operation.Operation) {}
	dispatched := func(op *operation.Operation) { op.Phase = operation.Dispatched }
	put("z", "n1", queued)
	put("b", "n1", dispatched)
	put("a", "n1", queued)
	put("c", "n10", queued)
	put("d", "n1", func(op *operation.Operation) { op.Phase = operation.Judging })
	put("e", "n1", func(op *operation.Operation) { op.Kind, op.Phase = operation.Migrate, operation.Copying })
	want := func(working int, queue ...string) {
		t.Helper()
		is, waiting := m.store.Snapshot().StartsOn("n1")
		if is != working || !slices.Equal(waiting, queue) {
			t.Errorf("%d start, %v wait; want %d and %v", is, waiting, working, queue)
		}
	}
	want(1, "z", "a")
	put("z", "n1", dispatched)
	want(2, "a")
	put("b", "n1", func(op *operation.Operation) { *op = ended(*op) })
	want(1, "a")
	if working, queue := m.store.Snapshot().StartsOn(""); working != 0 || queue != nil {
		t.Errorf("no node starts %d, and %v", working, queue)
	}
}

func TestVMsAreFoundByTheirMarksAsTheyChange(t *testing.T) {
	m := newMember(t)
	of := func() map[model.Mark][]string {
		marked := map[model.Mark][]string{}
		for _, mark := range []model.Mark{
			model.MarkDiscards, model.MarkCopies, model.MarkBound, model.MarkDown, model.MarkGuarded, model.MarkLeft, model.MarkUnusual,
		} {
			for _, vm := range m.store.Snapshot().VMsMarked(mark) {
				marked[mark] = append(marked[mark], vm.ID)
			}
		}
		return marked
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	some := func() bool { return random.IntN(2) == 0 }
	seen := map[model.Mark]bool{}
	for range 200 {
		id := fmt.Sprintf("vm%d", random.IntN(9))
		before, _ := m.store.Snapshot().VM(id)
		vm := vm(id, id, 1)
		if some() {
			vm.Holder = "n1"
		}
		if some() {
			vm.Discards = []model.Discard{{Node: "n1", Epoch: 1}}
		}
		if some() {
			vm.Copies = &model.DiskCopies{Node: "n1"}
		}
		if some() {
			vm.Bound = "n1"
		}
		if some() {
			vm.Condition, vm.Restart = model.Condition{Text: "odd"}, model.RestartNever
		}
		vm.HA, vm.Desired = some(), model.Stopped
		if some() {
			vm.Desired = model.Running
		}
		m.stored(putVM(before.Revision, vm))
		want := map[model.Mark][]string{}
		for vm := range m.store.Snapshot().SharedVMs() {
			for _, mark := range vm.Marks() {
				want[mark] = append(want[mark], vm.ID)
				seen[mark] = true
			}
		}
		for _, ids := range want {
			slices.Sort(ids)
		}
		if got := of(); !reflect.DeepEqual(got, want) {
			t.Fatalf("marked are %v, want %v", got, want)
		}
	}
	if len(seen) != 7 {
		t.Fatalf("only marks %v were ever set", seen)
	}
}
