package state

import (
	"bytes"
	"errors"
	"testing"

	"github.com/hashicorp/raft"

	"berth/coordinator/model"
	"berth/coordinator/placement"
)

// together applies the commands in one entry.
func (m *member) together(commands ...Command) []Result {
	m.t.Helper()
	m.index++
	encoded := make([][]byte, len(commands))
	for i := range commands {
		commands[i].At = noon
		var err error
		if encoded[i], err = commands[i].Encode(); err != nil {
			m.t.Fatal(err)
		}
	}
	return m.fsm.Apply(&raft.Log{Index: m.index, Type: raft.LogCommand, Data: Group(encoded)}).([]Result)
}

func keyed(key string, command Command) Command {
	command.Key = key
	command.Events = []model.Event{{Kind: key, At: noon}, {Kind: key + "!", At: noon}}
	command.Decisions = []placement.Decision{decision("of-" + key)}
	return command
}

// Each command of an entry is applied as if it were alone: a refused one changes nothing for the others.
func TestCommandsOfOneEntryAreAppliedOneByOne(t *testing.T) {
	m := newMember(t)
	first := m.stored(putNode(0, node("n1", "alpha")))
	results := m.together(
		keyed("a", putVM(0, vm("v1", "web", 0))),
		keyed("b", putNode(99, node("n1", "alpha"))),          // stale
		keyed("c", putVM(0, vm("v2", "web", 0))),              // the name was taken by the one before it
		keyed("a", putVM(0, vm("v1", "web", 0))),              // the first one again
		keyed("d", putNode(first.Index, node("n1", "beta"))),  // what was there before the entry
		keyed("e", putNode(first.Index, node("n1", "gamma"))), // stale by the one before it
		keyed("f", putVM(0, vm("v3", "db", 0))),
	)
	want := []RefusalCode{"", Stale, NameTaken, "", "", Stale, ""}
	for i, result := range results {
		code := RefusalCode("")
		if result.Refusal != nil {
			code = result.Refusal.Code
		}
		if code != want[i] || result.Index != m.index {
			t.Errorf("command %d came to %+v (%v), want %q", i+1, result, result.Refusal, want[i])
		}
	}
	now := m.store.Snapshot()
	if n, _ := now.Node("n1"); n.Name != "beta" || n.Revision != m.index {
		t.Errorf("the node is %+v", n)
	}
	if got := len(now.VMs()); got != 2 {
		t.Errorf("there are %d VMs", got)
	}
	var events []string
	for _, event := range now.EventsAfter(first.Index) {
		events = append(events, event.Kind)
	}
	if got, want := len(events), 6; got != want || events[0] != "a" || events[1] != "a!" || events[2] != "d" || events[5] != "f!" {
		t.Errorf("the history is %v", events)
	}
	var decisions []string
	for _, d := range now.Decisions(0) {
		decisions = append(decisions, d.ID)
	}
	if len(decisions) != 3 || decisions[0] != "of-f" || decisions[2] != "of-a" {
		t.Errorf("the decisions are %v, newest first", decisions)
	}
	for _, key := range []string{"a", "d", "f"} {
		command := putVM(0, vm("v9", "other", 0))
		command.Key = key
		if key == "d" {
			command.Kind = "node"
		}
		if again := m.apply(command); again.Index != m.index-uint64(1) && again.Refusal != nil || again.Index == m.index {
			t.Errorf("key %s was forgotten: %+v", key, again)
		}
	}
	restored, err := Load(bytes.NewReader(saved(t, now)))
	if err != nil {
		t.Fatal(err)
	}
	if restored.Hash() != now.Hash() || !bytes.Equal(saved(t, restored.Snapshot()), saved(t, now)) {
		t.Error("the saved state is not the one that was saved")
	}
}

func TestWhatIsNoEntryIsRefused(t *testing.T) {
	whole := keyed("a", putVM(0, vm("v1", "web", 0)))
	data, err := whole.Encode()
	if err != nil {
		t.Fatal(err)
	}
	entry := Group([][]byte{data, data})
	if commands, err := DecodeEntry(entry); err != nil || len(commands) != 2 || commands[1].Key != "a" {
		t.Fatalf("read %v (%v)", commands, err)
	}
	if len(entry) != 1+2*GroupedSize(data) {
		t.Errorf("the entry has %d bytes", len(entry))
	}
	for name, bad := range map[string][]byte{
		"empty": {}, "nothing in it": entry[:1], "one command": entry[:1+GroupedSize(data)], "cut in a length": entry[:3],
		"cut in a command": entry[:len(entry)-1], "a group in a group": Group([][]byte{entry, entry}),
		"something behind": append(bytes.Clone(entry), 0),
	} {
		if commands, err := DecodeEntry(bad); !errors.Is(err, ErrDecode) && !errors.Is(err, ErrFormat) {
			t.Errorf("%s: read %v (%v)", name, commands, err)
		}
	}
	if alone := Group([][]byte{data}); !bytes.Equal(alone, data) {
		t.Error("a command that is alone is not stored as before")
	}
}
