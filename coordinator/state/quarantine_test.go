package state

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
)

func TestABackupIsQuarantined(t *testing.T) {
	m := lived(t)
	backup, err := Load(bytes.NewReader(saved(t, m.store.Snapshot())))
	if err != nil {
		t.Fatal(err)
	}
	// The cluster goes on after the backup.
	v1, _ := m.store.Snapshot().VM("v1")
	v1.Epoch = 9
	m.stored(putVM(v1.Revision, v1))
	m.stored(putVM(0, vm("v8", "new", 4)))
	m.stored(Command{
		Expect:  []Expectation{expect(Members, "m2", 0)},
		Members: []model.Member{{ID: "m2", Name: "two"}},
	})
	present := m.store.Snapshot()
	backup.Quarantine(present, noon.Add(time.Hour), "operator/admin")

	x := backup.Snapshot()
	if reason := x.Meta(MetaQuarantine); !strings.Contains(reason, "restored at 2026-11-21T13:00:00Z") {
		t.Errorf("the reason is %q", reason)
	}
	for id, was := range map[string]uint64{"v1": 9, "v2": 7, "v3": 1, "v8": 4} {
		if got := x.LastEpoch(id); got != was+epochJump {
			t.Errorf("the epoch of %s is %d, want %d", id, got, was+epochJump)
		}
	}
	if op, _ := x.Operation("o1"); op.Live() || op.Result != operation.Parked || !strings.Contains(op.Message, "restored") {
		t.Errorf("the operation at work became %s, %s: %q", op.Phase, op.Result, op.Message)
	}
	if tokens := x.Tokens(); len(tokens) != 0 {
		t.Errorf("%d tokens are good again", len(tokens))
	}
	check(t, "members", names(x.Members(), func(m model.Member) string { return m.Name }), "one", "two")
	if x.Index() <= present.Index() {
		t.Errorf("the index goes back from %d to %d", present.Index(), x.Index())
	}
	if err := x.verify(); err != nil {
		t.Error(err)
	}
	if _, err := Load(bytes.NewReader(saved(t, x))); err != nil {
		t.Error(err)
	}
}

// Nodes that came since the backup stay, and what it has as proof that a node is off proves nothing any more.
func TestARestoreKeepsTheNodesThatThereAre(t *testing.T) {
	m := newMember(t)
	named := func(id, name, boot string, phase model.FencingPhase) model.Node {
		n := node(id, name)
		n.Boot, n.Fencing = boot, model.Fencing{Phase: phase, Boot: boot}
		return n
	}
	for _, n := range []model.Node{
		named("n1", "alpha", "b1", model.FencingProven), named("n2", "beta", "b1", ""), named("n3-replaced", "gamma", "b1", model.FencingProven),
	} {
		m.stored(putNode(0, n))
	}
	backup, err := Load(bytes.NewReader(saved(t, m.store.Snapshot())))
	if err != nil {
		t.Fatal(err)
	}
	revision := func(id string) uint64 {
		n, _ := m.store.Snapshot().Node(id)
		return n.Revision
	}
	m.stored(putNode(revision("n1"), named("n1", "alpha", "b2", "")))                 // it came back
	m.stored(putNode(revision("n2"), named("n2", "beta", "b1", model.FencingProven))) // it went
	m.stored(remove(Nodes, "n3-replaced", revision("n3-replaced")))
	m.stored(putNode(0, named("n4", "gamma", "b1", "")))
	m.stored(putResource(0, resource("c9", model.KindCluster, "later", nil)))
	elsewhere := named("n5", "delta", "b1", "")
	elsewhere.Cluster = "later"
	m.stored(putNode(0, elsewhere))
	backup.Quarantine(m.store.Snapshot(), noon, "operator/admin")

	x := backup.Snapshot()
	var got []string
	for _, n := range x.Nodes() {
		got = append(got, strings.Join([]string{n.ID, n.Name, n.Cluster, n.Boot, string(n.Fencing.Phase)}, " "))
	}
	want := []string{
		"n1 alpha default b2 ", "n2 beta default b1 proven", "n3-replaced gamma-replaced default b1 ", "n4 gamma default b1 ",
		"n5 delta default b1 ",
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the nodes are %q, want %q", got, want)
	}
	if err := x.verify(); err != nil {
		t.Error(err)
	}

	// One member alone does not know what the others noticed since.
	alone, err := Load(bytes.NewReader(saved(t, m.store.Snapshot())))
	if err != nil {
		t.Fatal(err)
	}
	alone.QuarantineAlone("m1", nil, noon, "coordinator/one")
	if n, _ := alone.Snapshot().Node("n2"); n.Fenced() {
		t.Errorf("a node counts as off that may have booted since: %+v", n.Fencing)
	}
}
