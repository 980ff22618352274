package state

import (
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/session"
)

// lived is a state with something in every table.
func lived(t testing.TB) *member {
	m := newMember(t)
	m.stored(Command{Kind: "init", Meta: map[string]string{MetaClusterID: "c1"}})
	m.stored(putNode(0, node("n1", "alpha")))
	m.stored(Command{
		Kind: "members",
		Expect: []Expectation{
			expect(Members, "m1", 0), expect(Tokens, "abc", 0), expect(Resources, "d1", 0), expect(Resources, "d2", 0), expect(Sessions, "s1", 0),
		},
		Members:  []model.Member{{ID: "m1", Name: "one", RaftAddress: "one:7422"}},
		Tokens:   []model.Token{{Hash: "abc", Purpose: model.PurposeAgent, ExpiresAt: noon}},
		Sessions: []session.Session{{ID: "s1", Link: "dd", Until: noon}},
		Resources: []model.Resource{
			resource("d1", model.KindVDC, "prod", nil), resource("d2", model.KindDisk, "root", map[string]string{"offer": "d1"}),
		},
	})
	m.stored(Command{
		Kind:       "start",
		Expect:     []Expectation{expect(VMs, "v1", 0), expect(Operations, "o1", 0)},
		VMs:        []model.VM{vm("v1", "web", 3)},
		Operations: []operation.Operation{start("o1", "v1")},
		Decisions:  []placement.Decision{decision("d1")},
		Events:     []model.Event{{At: noon, Kind: "vm.start"}, {At: noon, Kind: "vm.placed"}},
	})
	m.stored(putVM(0, vm("v2", "old", 7)))
	m.stored(remove(VMs, "v2", m.index))
	m.stored(putPlan(0, plan("p1", model.PlanRunning)))
	m.stored(putPlan(0, plan("p2", model.PlanDone)))
	m.stored(Command{
		Expect:     []Expectation{expect(VMs, "v3", 0), expect(Operations, "o2", 0)},
		VMs:        []model.VM{vm("v3", "db", 1)},
		Operations: []operation.Operation{ended(start("o2", "v3"))},
	})
	m.stored(putIdentity(0, operatorOf("i1", "alice", "aa")))
	m.refused(Stale, putNode(0, node("n1", "alpha")))
	return m
}

func TestARestoredStateIsTheSavedOneAndGoesOnAlike(t *testing.T) {
	m := lived(t)
	data := saved(t, m.store.Snapshot())
	other := newMember(t)
	other.stored(putNode(0, node("n9", "to be replaced")))
	changed := other.store.Changed()
	if err := other.fsm.Restore(io.NopCloser(iotest.OneByteReader(bytes.NewReader(data)))); err != nil {
		t.Fatal(err)
	}
	<-changed
	other.index = m.index
	if !bytes.Equal(data, saved(t, other.store.Snapshot())) {
		t.Fatal("the restored state is another one")
	}
	for _, next := range []Command{
		putNode(2, node("n1", "beta")),
		putVM(0, vm("v2", "old", 1)), // refused on both: the epoch of the deleted VM was 7
		{Key: "key-2", Kind: "node"}, // a repeat on both
		putOperation(4, ended(start("o1", "v1"))),
	} {
		a, b := m.apply(next), other.apply(next)
		if (a.Refusal == nil) != (b.Refusal == nil) || a.Index != b.Index {
			t.Errorf("%s: %+v and %+v", next.Kind, a, b)
		}
	}
	if m.store.Hash() != other.store.Hash() {
		t.Error("the hashes part after a restore")
	}
}

func TestASnapshotIsTheMomentItWasTaken(t *testing.T) {
	m := lived(t)
	taken, err := m.fsm.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	want := saved(t, m.store.Snapshot())
	m.stored(putNode(2, node("n1", "later")))
	sink := &sink{}
	if err := taken.Persist(sink); err != nil || !sink.closed {
		t.Fatalf("persist: %v, closed: %v", err, sink.closed)
	}
	if !bytes.Equal(want, sink.Bytes()) {
		t.Error("a command after the snapshot is in it")
	}
}

func TestAFailedSnapshotIsCancelled(t *testing.T) {
	m := lived(t)
	taken, _ := m.fsm.Snapshot()
	full := errors.New("no space left")
	sink := &sink{err: full}
	if err := taken.Persist(sink); !errors.Is(err, full) || !sink.cancelled || sink.closed {
		t.Errorf("persist: %v, cancelled: %v, closed: %v", err, sink.cancelled, sink.closed)
	}
}

type sink struct {
	bytes.Buffer
	err               error
	closed, cancelled bool
}

func (s *sink) Write(b []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	return s.Buffer.Write(b)
}
func (s *sink) ID() string    { return "test" }
func (s *sink) Close() error  { s.closed = true; return nil }
func (s *sink) Cancel() error { s.cancelled = true; return nil }

func TestEveryFlippedBitAndEveryCutIsFound(t *testing.T) {
	data := saved(t, lived(t).store.Snapshot())
	for i := range data {
		damaged := bytes.Clone(data)
		damaged[i] ^= 1 << (i % 8)
		if _, err := Load(bytes.NewReader(damaged)); !errors.Is(err, ErrSnapshot) {
			t.Fatalf("a flipped bit in byte %d of %d: %v", i, len(data), err)
		}
		if _, err := Load(bytes.NewReader(data[:i])); !errors.Is(err, ErrSnapshot) {
			t.Fatalf("cut to %d of %d bytes: %v", i, len(data), err)
		}
	}
	if _, err := Load(bytes.NewReader(append(data, 0))); !errors.Is(err, ErrSnapshot) {
		t.Errorf("a byte more: %v", err)
	}
}

func TestAFailedRestoreLeavesTheStateAlone(t *testing.T) {
	m := lived(t)
	want := saved(t, m.store.Snapshot())
	if err := m.fsm.Restore(io.NopCloser(strings.NewReader("berthfsm and then rubbish"))); !errors.Is(err, ErrSnapshot) {
		t.Fatalf("restored rubbish: %v", err)
	}
	broken := errors.New("disk broken")
	if err := m.fsm.Restore(io.NopCloser(iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Fatalf("the reader's error became %v", err)
	}
	if !bytes.Equal(want, saved(t, m.store.Snapshot())) {
		t.Error("the state changed")
	}
}

// craft writes a snapshot with one section of the test's own.
func craft(name string, records ...string) []byte {
	return craftAll(append([]string{name}, records...))
}

// craftAll writes a snapshot of release 9.9 with sections of the test's own: each is a name and its records.
func craftAll(sections ...[]string) []byte {
	var out bytes.Buffer
	seal := func(part []byte) {
		out.Write(part)
		sum := &checking{crc: crc32.Checksum(part, castagnoli)}
		out.Write([]byte(number(uint64(sum.crc)))[4:])
	}
	seal([]byte(magic + "\x00\x01" + "\x00\x03" + "9.9"))
	for _, section := range sections {
		name, records := section[0], section[1:]
		part := append([]byte{markSection, 0, byte(len(name))}, name...)
		part = append(part, number(uint64(len(records)))...)
		for _, record := range records {
			part = append(part, number(uint64(len(record)))[4:]...)
			part = append(part, record...)
		}
		seal(part)
	}
	seal([]byte{markEnd, 0, 0, 0, byte(len(sections))})
	return out.Bytes()
}

func TestWhatThisReleaseDoesNotKnowIsRefusedNotSkipped(t *testing.T) {
	if _, err := Load(bytes.NewReader(craft("node", `{"id":"n1","name":"a"}`))); err != nil {
		t.Fatalf("the crafted snapshot is not one: %v", err)
	}
	for says, data := range map[string][]byte{
		`"quota", which this release does not know (written by release 9.9)`: craft("quota"),
		`member name "rack"`:    craft("node", `{"id":"n1","name":"a","rack":"r"}`),
		"have an ID twice":      craft("node", `{"id":"n1","name":"a"}`, `{"id":"n1","name":"b"}`),
		`are named "a"`:         craft("node", `{"id":"n1","name":"a"}`, `{"id":"n2","name":"a"}`),
		"names resource":        craft("resource", `{"id":"r1","kind":"nic","name":"a","links":{"network":"r2"}}`),
		`"a" is in cluster "x"`: craft("node", `{"id":"n1","name":"a","cluster":"x"}`),
		`are named "vdc/a"`:     craft("resource", `{"id":"r1","kind":"vdc","name":"a"}`, `{"id":"r2","kind":"vdc","name":"a"}`),
		"does not exist":        craft("operation", `{"id":"o1","vm":"v1","phase":"dispatched"}`),
		"counts its history":    craft("decision", `{"index":1,"sequence":0,"decision":{"id":"d1"}}`),
		"it has format 2":       append([]byte(magic+"\x00\x02"), make([]byte, 64)...),
		`has the member "v1"`:   craft("resource", `{"id":"r1","kind":"group","name":"a","members":{"vms":["v1"]}}`),
		`prefers node "n1"`:     craft("vm", `{"id":"v1","name":"a","preferred":["n1"]}`),
	} {
		if _, err := Load(bytes.NewReader(data)); !errors.Is(err, ErrSnapshot) || !strings.Contains(err.Error(), says) {
			t.Errorf("want an error that says %s, got: %v", says, err)
		}
	}
}

func TestEveryTableIsInTheSnapshot(t *testing.T) {
	tables := slices.Sorted(maps.Keys(newTables()))
	var inSnapshot []string
	for _, section := range sections {
		inSnapshot = append(inSnapshot, section.name)
	}
	slices.Sort(inSnapshot)
	check(t, "sections", inSnapshot, tables...)
	x := lived(t).store.Snapshot()
	for _, table := range tables {
		if x.count(table) == 0 {
			t.Errorf("table %q is empty: these tests would not see that it is lost", table)
		}
	}
}
