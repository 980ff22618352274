package state

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
)

func TestRecordsGetTheRaftIndexAsTheirRevision(t *testing.T) {
	m := newMember(t)
	m.index = 41
	n := node("n1", "alpha")
	n.Revision = 7 // whatever the proposer left there
	result := m.stored(putNode(0, n))
	got, ok := m.store.Snapshot().Node("n1")
	if !ok || got.Revision != 42 || result.Index != 42 || m.store.Snapshot().Index() != 42 {
		t.Errorf("node at revision %d, result at %d, state at %d; want 42", got.Revision, result.Index, m.store.Snapshot().Index())
	}
}

func TestACommandStoresAllOrNothing(t *testing.T) {
	m := newMember(t)
	m.stored(putNode(0, node("n1", "alpha")))
	command := Command{
		Kind:   "two",
		Expect: []Expectation{expect(Nodes, "n2", 0), expect(Nodes, "n1", 99)},
		Nodes:  []model.Node{node("n2", "beta"), node("n1", "alpha2")},
		Events: []model.Event{{At: noon, Kind: "node.enrolled"}},
	}
	refusal := m.refused(Stale, command)
	if refusal.Table != Nodes || refusal.ID != "n1" || !strings.Contains(refusal.Message, "revision 1, expected 99") {
		t.Errorf("the refusal does not say what moved: %+v", refusal)
	}
}

func TestExpectationsGuardRecords(t *testing.T) {
	m := newMember(t)
	m.stored(putNode(0, node("n1", "alpha")))
	for name, refused := range map[string]struct {
		code    RefusalCode
		command Command
	}{
		"a record that exists already": {Stale, putNode(0, node("n1", "alpha"))},
		"a record that is gone":        {Stale, putNode(1, node("n2", "beta"))},
		"a blind put":                  {Invalid, Command{Nodes: []model.Node{node("n2", "beta")}}},
		"a blind delete":               {Invalid, Command{Delete: []Record{{Nodes, "n1"}}}},
		"a delete of nothing":          {Invalid, remove(Nodes, "n2", 0)},
		"an expectation of no table":   {Invalid, Command{Expect: []Expectation{expect("disk", "d", 0)}}},
	} {
		t.Run(name, func(t *testing.T) {
			m.t = t
			m.refused(refused.code, refused.command)
		})
	}
	m.t = t
	m.stored(putNode(1, node("n1", "alpha2")))
}

func TestUnusableIdentifiersAreInvalid(t *testing.T) {
	long := strings.Repeat("n", maxIdentifier+1)
	for name, command := range map[string]Command{
		"empty ID":            putNode(0, node("", "alpha")),
		"empty name":          putNode(0, node("n1", "")),
		"zero byte in a name": putNode(0, node("n1", "al\x00pha")),
		"endless ID":          putNode(0, node(long, "alpha")),
		"twice in one command": {
			Expect: []Expectation{expect(Nodes, "n1", 0)}, Nodes: []model.Node{node("n1", "alpha"), node("n1", "beta")},
		},
		"zero byte in a request": {
			Expect:     []Expectation{expect(VMs, "v1", 0), expect(Operations, "o1", 0)},
			VMs:        []model.VM{vm("v1", "web", 1)},
			Operations: []operation.Operation{{ID: "o1", VM: "v1", Request: "a\x00b", Phase: operation.Dispatched}},
		},
		"an event deleted":    {Delete: []Record{{"event", "1"}}},
		"a decision deleted":  {Delete: []Record{{Decisions, "d1"}}},
		"an operation erased": remove(Operations, "o1", 0),
	} {
		t.Run(name, func(t *testing.T) {
			m := newMember(t)
			m.refused(Invalid, command)
		})
	}
}

func TestACommandWithoutAKeyIsInvalid(t *testing.T) {
	m := newMember(t)
	result := m.store.apply([]*Command{{Kind: "x"}}, 1)[0]
	if result.Refusal == nil || result.Refusal.Code != Invalid {
		t.Errorf("got %+v", result)
	}
}

func TestNamesAreUnique(t *testing.T) {
	m := newMember(t)
	m.stored(putNode(0, node("n1", "alpha")))
	m.stored(putNode(0, node("n2", "beta")))
	m.stored(putVM(0, vm("v1", "web", 0)))
	m.stored(putVM(0, vm("v2", "alpha", 0))) // names of nodes and VMs are apart
	m.stored(Command{
		Expect:  []Expectation{expect(Members, "m1", 0)},
		Members: []model.Member{{ID: "m1", Name: "one"}},
	})

	refusal := m.refused(NameTaken, putNode(0, node("n3", "alpha")))
	if refusal.ID != "n1" {
		t.Errorf("the refusal names %q, want the node that has the name", refusal.ID)
	}
	m.refused(NameTaken, putVM(0, vm("v3", "web", 0)))
	m.refused(NameTaken, Command{
		Expect:  []Expectation{expect(Members, "m2", 0)},
		Members: []model.Member{{ID: "m2", Name: "one"}},
	})
	m.refused(NameTaken, Command{
		Expect: []Expectation{expect(Nodes, "n3", 0), expect(Nodes, "n4", 0)},
		Nodes:  []model.Node{node("n3", "gamma"), node("n4", "gamma")},
	})
}

func TestOneCommandMaySwapAndFreeNames(t *testing.T) {
	m := newMember(t)
	m.stored(putNode(0, node("n1", "alpha")))
	m.stored(putNode(0, node("n2", "beta")))
	m.stored(Command{
		Expect: []Expectation{expect(Nodes, "n1", 1), expect(Nodes, "n2", 2)},
		Nodes:  []model.Node{node("n1", "beta"), node("n2", "alpha")},
	})
	m.stored(Command{
		Expect: []Expectation{expect(Nodes, "n1", 3), expect(Nodes, "n3", 0)},
		Nodes:  []model.Node{node("n3", "beta")},
		Delete: []Record{{Nodes, "n1"}},
	})
	x := m.store.Snapshot()
	alpha, _ := x.NodeByName("alpha")
	beta, _ := x.NodeByName("beta")
	if alpha.ID != "n2" || beta.ID != "n3" {
		t.Errorf("alpha is %q and beta is %q, want n2 and n3", alpha.ID, beta.ID)
	}
}

func TestOneLiveOperationPerVM(t *testing.T) {
	m := newMember(t)
	m.stored(putVM(0, vm("v1", "web", 0)))
	m.stored(putOperation(0, start("o1", "v1")))
	m.refused(Invalid, putOperation(0, start("o2", "v1")))
	m.refused(Invalid, putOperation(0, start("o3", "v9"))) // no such VM
	m.refused(Invalid, remove(VMs, "v1", 1))

	m.stored(putOperation(2, ended(start("o1", "v1"))))
	m.stored(putOperation(0, start("o2", "v1")))
	if op, ok := m.store.Snapshot().LiveOperationOf("v1"); !ok || op.ID != "o2" {
		t.Errorf("the live operation is %q", op.ID)
	}
}

func TestAnEndedOperationNeverChanges(t *testing.T) {
	m := newMember(t)
	m.stored(putVM(0, vm("v1", "web", 0)))
	m.stored(putOperation(0, ended(start("o1", "v1"))))
	m.refused(Invalid, putOperation(2, start("o1", "v1")))
	m.refused(Invalid, putOperation(2, ended(start("o1", "v1"))))
}

func TestADecisionNeverChanges(t *testing.T) {
	m := newMember(t)
	m.stored(Command{Decisions: []placement.Decision{decision("d1")}})
	m.refused(Invalid, Command{Decisions: []placement.Decision{decision("d1")}})
}

func TestAnEpochNeverDecreasesNotEvenOverADeletion(t *testing.T) {
	m := newMember(t)
	m.stored(putVM(0, vm("v1", "web", 5)))
	m.refused(Invalid, putVM(1, vm("v1", "web", 4)))
	back := vm("v1", "web", 4)
	back.LastEpoch = 5 // though none of those that were given would be given again
	m.refused(Invalid, putVM(1, back))
	m.stored(remove(VMs, "v1", 1))
	if last := m.store.Snapshot().LastEpoch("v1"); last != 5 {
		t.Fatalf("the last epoch of the deleted VM is %d, want 5", last)
	}
	m.refused(Invalid, putVM(0, vm("v1", "web", 1)))
	m.stored(putVM(0, vm("v1", "web", 6)))
	if last := m.store.Snapshot().LastEpoch("v1"); last != 6 {
		t.Errorf("the last epoch is %d, want 6", last)
	}
	if kept := m.store.Snapshot().count(tableEpochs); kept != 0 {
		t.Errorf("%d epochs of deleted VMs are kept, none is deleted", kept)
	}
}

func TestTheSameKeyGetsTheFirstResult(t *testing.T) {
	m := newMember(t)
	command := putNode(0, node("n1", "alpha"))
	command.Key = "enrol-alpha"
	first := m.stored(command)
	before := content(t, m.store.Snapshot())
	if again := m.apply(command); again.Index != first.Index || again.Refusal != nil {
		t.Errorf("the repeat got %+v, want %+v", again, first)
	}
	if string(before) != string(content(t, m.store.Snapshot())) {
		t.Error("the repeat changed the records")
	}
	other := Command{Key: "enrol-alpha", Kind: "something else"}
	m.refused(Invalid, other)
}

func TestARefusedCommandLeavesItsKeyFree(t *testing.T) {
	m := newMember(t)
	m.stored(putNode(0, node("n1", "alpha")))
	command := putNode(0, node("n1", "alpha2"))
	command.Key = "rename"
	m.refused(Stale, command)
	command.Expect[0].Revision = 1
	m.stored(command)
}

// Clocks of leaders jump, an hour ahead and an hour back: what a key was answered stays, nothing ages early, and time that
// ran once does not run again.
func TestClocksThatJumpForgetNothing(t *testing.T) {
	m := newMember(t)
	rows := m.store.Snapshot().draft()
	m.index = MinKeys // so many that a key goes as soon as it is too old
	m.store.now.Store(newSnapshot(rows, appliedRow{Index: MinKeys, Keys: MinKeys, clock: clock{Clock: noon}}))
	first := m.stored(Command{Key: "first", At: noon, Decisions: []placement.Decision{decision("d1")}})
	for i, jump := range []time.Duration{time.Hour, -time.Hour, 2 * time.Hour, -3 * time.Hour, 23 * time.Hour, -24 * time.Hour} {
		m.stored(Command{Key: fmt.Sprint("jump-", i), At: noon.Add(jump)})
		if again := m.stored(Command{Key: "first", At: noon.Add(-jump)}); again.Index != first.Index {
			t.Errorf("after a jump by %s the first command was stored again, at %d", jump, again.Index)
		}
		if left := len(m.store.Snapshot().Decisions(0)); left != 1 {
			t.Errorf("after a jump by %s there are %d decisions", jump, left)
		}
	}
	if clock := m.store.now.Load().applied.Clock; !clock.Equal(noon.Add(24 * time.Hour)) {
		t.Errorf("the clock is at %s", clock)
	}
}

func TestKeysAreForgottenByAgeButNeverTooFew(t *testing.T) {
	m := newMember(t)
	rows := m.store.Snapshot().draft()
	for i := range uint64(MinKeys) {
		row := &keyRow{Key: "old-" + string(number(i+1)), Kind: "x", At: noon, Index: i + 1}
		rows.insert(tableKeys, row)
	}
	m.store.now.Store(newSnapshot(rows, appliedRow{Index: MinKeys, Keys: MinKeys, clock: clock{Clock: noon}}))
	m.index = MinKeys

	m.stored(Command{At: noon.Add(KeyAge)})
	if keys := m.store.Snapshot().applied.Keys; keys != MinKeys+1 {
		t.Fatalf("%d keys, want %d: none is older than a day", keys, MinKeys+1)
	}
	m.stored(Command{At: noon.Add(KeyAge + time.Second)})
	if keys := m.store.Snapshot().applied.Keys; keys != MinKeys {
		t.Fatalf("%d keys, want %d: old ones go, down to the least", keys, MinKeys)
	}
	m.stored(Command{At: noon}) // a leader whose clock is behind
	if keys := m.store.Snapshot().applied.Keys; keys != MinKeys {
		t.Fatalf("%d keys, want %d: time that ran once does not run again", keys, MinKeys)
	}
	if got := m.store.Snapshot().count(tableKeys); got != MinKeys {
		t.Errorf("%d keys are stored", got)
	}
}

func TestHistoryIsTrimmedOldestFirst(t *testing.T) {
	m := newMember(t)
	m.stored(putVM(0, vm("v1", "web", 0)))
	m.stored(putOperation(0, start("live", "v1")))
	const each = 100
	for range MaxEvents/each + 1 {
		command := Command{}
		for i := range each {
			command.Decisions = append(command.Decisions, decision(label("d", m.index, i)))
			op := ended(start(label("o", m.index, i), "v1"))
			command.Operations = append(command.Operations, op)
			command.Expect = append(command.Expect, expect(Operations, op.ID, 0))
			command.Events = append(command.Events, model.Event{At: noon, Kind: "x", Message: label("e", m.index, i)})
		}
		m.stored(command)
	}
	x := m.store.Snapshot()
	if got := len(x.Decisions(0)); got != MaxDecisions {
		t.Errorf("%d decisions, want %d", got, MaxDecisions)
	}
	events := x.Events(0)
	if got := len(events); got != MaxEvents {
		t.Errorf("%d events, want %d", got, MaxEvents)
	}
	if oldest := events[0].Index; !x.EventsKept(oldest) || x.EventsKept(oldest-1) || !x.EventsKept(x.Index()) {
		t.Errorf("what is kept is told wrong, around %d", oldest)
	}
	if fresh := newMember(t); !fresh.store.Snapshot().EventsKept(0) {
		t.Error("a cluster without events has lost some")
	}
	if got := len(x.Operations()); got != MaxOperations+1 {
		t.Errorf("%d operations, want %d ended ones and the live one", got, MaxOperations+1)
	}
	if _, ok := x.Operation("live"); !ok {
		t.Error("a live operation was trimmed")
	}
	newest, _ := x.Decision("last")
	if want := label("d", m.index-1, each-1); newest.ID != want {
		t.Errorf("the newest decision is %q, want %q", newest.ID, want)
	}
	if err := x.verify(); err != nil {
		t.Error(err)
	}
}

func TestDecisionsGoByAge(t *testing.T) {
	m := newMember(t)
	old, young := decision("old"), decision("young")
	young.At = noon.Add(24 * time.Hour)
	m.stored(Command{Decisions: []placement.Decision{old}})
	m.stored(Command{Decisions: []placement.Decision{young}})
	m.stored(Command{At: noon.Add(DecisionAge)})
	if got := len(m.store.Snapshot().Decisions(0)); got != 2 {
		t.Fatalf("%d decisions are left, want 2: none is older than %v", got, DecisionAge)
	}
	m.stored(Command{At: noon.Add(DecisionAge + time.Second)})
	if left := m.store.Snapshot().Decisions(0); len(left) != 1 || left[0].ID != "young" {
		t.Errorf("left are %+v, want the young one", left)
	}
	if err := m.store.Snapshot().verify(); err != nil {
		t.Error(err)
	}
}

func TestTheHashFollowsTheOutcomeNotTheBytes(t *testing.T) {
	a, b := newMember(t), newMember(t)
	for _, m := range []*member{a, b} {
		m.stored(putNode(0, node("n1", "alpha")))
	}
	if a.store.Hash() != b.store.Hash() || a.store.Hash() == "" {
		t.Fatal("equal histories, other hashes")
	}
	// A planted divergence: b has lost the node, so the same command comes out differently.
	x := b.store.Snapshot()
	rows := x.draft()
	rows.remove(string(Nodes), &model.Node{ID: "n1"})
	b.store.now.Store(newSnapshot(rows, x.applied))
	a.apply(putNode(1, node("n1", "alpha2")))
	b.apply(putNode(1, node("n1", "alpha2")))
	if a.store.Hash() == b.store.Hash() {
		t.Error("members that answered differently have the same hash")
	}
}

// What a command changes of many records goes into the hash in one order, whatever the order of a map is.
func TestMembersHaveOneHashOfManyChanges(t *testing.T) {
	var hashes []string
	for range 4 {
		m := newMember(t)
		m.stored(putVM(0, vm("v1", "web", 1)))
		meta := make(map[string]string)
		for i := range 16 {
			id := fmt.Sprintf("g%02d", i)
			meta["meta-"+id] = "x"
			m.stored(Command{Expect: []Expectation{expect(Resources, id, 0)}, Resources: []model.Resource{group(id, id, []string{"v1"}, nil)}})
		}
		m.stored(Command{Meta: meta})
		hashes = append(hashes, m.store.Hash())
		m.stored(remove(VMs, "v1", 1)) // every group forgets it
		hashes = append(hashes, m.store.Hash())
	}
	for i, hash := range hashes {
		if hash != hashes[i%2] {
			t.Errorf("hash %d is %s, that of another member %s", i, hash, hashes[i%2])
		}
	}
}

func TestAMemberStopsAtAnEntryThatItCannotApply(t *testing.T) {
	for name, entry := range map[string]*raft.Log{
		"empty":             {Index: 9},
		"a later format":    {Index: 9, Data: []byte("\x02{}")},
		"an unknown field":  {Index: 9, Data: []byte("\x01" + `{"key":"k","kind":"x","quota":{}}`)},
		"a later release":   {Index: 9, Data: []byte("\x01" + `{"key":"k","kind":"x","level":99,"quota":{}}`)},
		"a later level":     {Index: 9, Data: []byte("\x01" + `{"key":"k","kind":"x","level":99}`)},
		"something after":   {Index: 9, Data: []byte("\x01" + `{"key":"k"}{}`)},
		"cut short":         {Index: 9, Data: []byte("\x01" + `{"key":"k"`)},
		"an index too late": {Index: 3, Data: []byte("\x01" + `{"key":"k","kind":"x"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMember(t)
			m.index = 4
			m.stored(Command{})
			defer func() {
				text, _ := recover().(string)
				if !strings.Contains(text, "this coordinator must stop") {
					t.Errorf("panicked with %q", text)
				}
			}()
			m.fsm.Apply(entry)
			t.Error("went on")
		})
	}
}

func TestMetaIsSetAndDeletedWithoutExpectation(t *testing.T) {
	m := newMember(t)
	m.stored(Command{Meta: map[string]string{MetaClusterID: "c1", MetaQuarantine: "restored"}})
	m.stored(Command{Delete: []Record{{Meta, MetaQuarantine}}})
	x := m.store.Snapshot()
	if got := [2]string{x.Meta(MetaClusterID), x.Meta(MetaQuarantine)}; got != [2]string{"c1", ""} {
		t.Errorf("meta is %q", got)
	}
	m.refused(Stale, Command{Meta: map[string]string{MetaClusterID: "c2"}, Expect: []Expectation{expect(Meta, MetaClusterID, 0)}})
}

func TestATokenIsUsedOnce(t *testing.T) {
	m := newMember(t)
	token := model.Token{Hash: "abc", Purpose: model.PurposeAgent, ExpiresAt: noon.Add(time.Hour)}
	use := func(by string, revision uint64) Command {
		used := token
		used.UsedBy = by
		return Command{Tokens: []model.Token{used}, Expect: []Expectation{expect(Tokens, "abc", revision)}}
	}
	m.stored(use("", 0))
	m.stored(use("n1", 1))
	m.refused(Stale, use("n2", 1))
	if got, _ := m.store.Snapshot().Token("abc"); got.UsedBy != "n1" {
		t.Errorf("used by %q", got.UsedBy)
	}
}

func TestACommandSurvivesItsEncoding(t *testing.T) {
	half := 0.5
	want := putNode(3, node("n1", "<alpha> & beta"))
	want.Nodes[0].Settings.RAMRatio = &half
	want.Key, want.At = "k", noon
	data, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeCommand(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Error(diff)
	}
}
