package state

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"berth/coordinator/model"
)

// part loses a node in the memory of one member, as a fault of its Apply would.
func part(t *testing.T, m *member, node string) {
	t.Helper()
	x := m.store.Snapshot()
	rows := x.draft()
	rows.remove(string(Nodes), &model.Node{ID: node})
	m.store.now.Store(newSnapshot(rows, x.applied))
}

func checkOf(m *member) Command {
	return Command{Kind: "check", Level: 2, Check: &Check{Index: m.store.Snapshot().Index(), Hash: m.store.Hash()}}
}

// stops is what a member says when it stops at a command; empty if it goes on.
func stops(m *member, command Command) (text string) {
	defer func() {
		if reason := recover(); reason != nil {
			text = fmt.Sprint(reason)
		}
	}()
	m.apply(command)
	return ""
}

func TestAMemberThatHasPartedStopsAtTheNextCheck(t *testing.T) {
	right, odd := newMember(t), newMember(t)
	for _, m := range []*member{right, odd} {
		m.stored(putNode(0, node("n1", "alpha")))
	}
	part(t, odd, "n1")
	change := putNode(1, node("n1", "beta"))
	right.stored(change)
	if odd.apply(change).Refusal == nil {
		t.Fatal("nothing has parted")
	}
	for i := range 300 { // long ago, and never the same again
		later := Command{Meta: map[string]string{"at": fmt.Sprint(i)}}
		right.stored(later)
		odd.stored(later)
	}
	check := checkOf(right)
	if text := stops(right, check); text != "" {
		t.Errorf("the one that is right stopped: %s", text)
	}
	text := stops(odd, check)
	if !strings.Contains(text, "has parted from that of the others") || !strings.Contains(text, "berth coordinator delete") {
		t.Errorf("the odd one said %q", text)
	}
}

func TestACheckOfLongAgoOrBeforeTheSnapshotSaysNothing(t *testing.T) {
	m := newMember(t)
	m.stored(putNode(0, node("n1", "alpha")))
	m.stored(putNode(1, node("n1", "beta")))
	late := newMember(t)
	if err := late.fsm.Restore(io.NopCloser(bytes.NewReader(saved(t, m.store.Snapshot())))); err != nil {
		t.Fatal(err)
	}
	late.index = m.index
	for name, check := range map[string]Check{
		"before its snapshot":    {Index: 1, Hash: "another"},
		"not yet":                {Index: 99, Hash: "another"},
		"the snapshot, as it is": {Index: 2, Hash: m.store.Hash()},
	} {
		if text := stops(late, Command{Kind: "check", Level: 2, Check: &check}); text != "" {
			t.Errorf("%s: %s", name, text)
		}
	}
	if text := stops(late, Command{Kind: "check", Level: 2, Check: &Check{Index: 2, Hash: "another"}}); text == "" {
		t.Error("a member goes on although the snapshot that it was restored from is another state")
	}
	if _, known := late.store.HashAt(1); known {
		t.Error("it tells a hash that it cannot know")
	}
	if hash, known := late.store.HashAt(2); !known || hash != m.store.Hash() {
		t.Errorf("the hash at its snapshot is %q, %v", hash, known)
	}
}

func TestHashesAreKeptForAWhile(t *testing.T) {
	var hashes trail
	for i := range uint64(5 * HashesKept) {
		hashes = hashes.add(&Snapshot{applied: appliedRow{Index: 2 * i, Hash: []byte{byte(i)}}})
		if len(hashes) > 2*HashesKept {
			t.Fatalf("%d are kept", len(hashes))
		}
	}
	newest := uint64(5*HashesKept - 1)
	for _, i := range []uint64{newest, newest - HashesKept + 1} {
		if hash, known := hashes.at(2 * i); !known || hash != fmt.Sprintf("%02x", byte(i)) {
			t.Errorf("at %d: %q, %v", 2*i, hash, known)
		}
	}
	for _, index := range []uint64{0, 2*newest - 1, 2*newest + 2} {
		if hash, known := hashes.at(index); known {
			t.Errorf("at %d: %q", index, hash)
		}
	}
}
