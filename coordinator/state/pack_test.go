package state

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/packing"
)

func encoded(t testing.TB, commands ...Command) [][]byte {
	t.Helper()
	all := make([][]byte, len(commands))
	for i := range commands {
		var err error
		if all[i], err = commands[i].Encode(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// Any commands come out of an entry as they went into it, at every level and whether they become smaller or not.
func TestAnEntryGivesItsCommandsBack(t *testing.T) {
	golden := goldenCommands()
	rapid.Check(t, func(t *rapid.T) {
		commands := rapid.SliceOfN(rapid.SampledFrom(golden), 1, 6).Draw(t, "commands")
		noise := rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(t, "noise")
		var all [][]byte
		for i, command := range commands {
			command.Key, command.Kind = fmt.Sprint("k", i), hex.EncodeToString(noise)
			data, err := command.Encode()
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, data)
		}
		level := rapid.Uint32Range(GroupLevel, FeatureLevel).Draw(t, "level")
		entry, plain := Entry(all, level), Group(all)
		if len(entry) > len(plain) || level < PackLevel && !bytes.Equal(entry, plain) {
			t.Fatalf("at level %d %d bytes have become %d", level, len(plain), len(entry))
		}
		got, err := DecodeEntry(entry)
		if err != nil {
			t.Fatal(err)
		}
		want, err := DecodeEntry(plain)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// A member of an older release never gets what it cannot read, and what does not become smaller stays as it is.
func TestOnlyWhatBecomesSmallerIsPackedAndOnlyFromItsLevelOn(t *testing.T) {
	one := encoded(t, keyed("a", putVM(0, vm("v1", "web", 0))))
	for level := uint32(1); level <= FeatureLevel; level++ {
		if packed := Entry(one, level)[0] == packing.Format; packed != (level >= PackLevel) {
			t.Errorf("level %d: packed is %v", level, packed)
		}
	}
	incompressible := []byte{commandFormat, 0xfe, 0x13, 0x9a, 0x7c}
	if entry := Entry([][]byte{incompressible}, FeatureLevel); !bytes.Equal(entry, incompressible) {
		t.Errorf("%x has become %x", incompressible, entry)
	}
	large := bytes.Repeat([]byte{commandFormat}, maxUnpacked+1)
	if entry := Entry([][]byte{large}, FeatureLevel); !bytes.Equal(entry, large) {
		t.Error("an entry is packed that nobody would unpack")
	}
}

// A leader tells the level of what it proposes by its state: the entry that raises it is the last one that all read.
func TestTheEntryThatRaisesTheLevelIsReadByAll(t *testing.T) {
	m := newMember(t)
	raise := RaiseLevel(FeatureLevel)
	if entry := Entry(encoded(t, raise), m.store.Snapshot().FeatureLevel()); entry[0] != commandFormat {
		t.Errorf("it begins with %d", entry[0])
	}
	m.stored(raise)
	if entry := Entry(encoded(t, raise), m.store.Snapshot().FeatureLevel()); entry[0] != packing.Format {
		t.Errorf("the next one begins with %d", entry[0])
	}
}

// A leader's entry may hold nothing that is packed twice, and no more than a command may have.
func TestABombInTheLogIsRefused(t *testing.T) {
	bomb := packing.Pack(append([]byte{commandFormat}, make([]byte, maxUnpacked)...))
	nested := Entry([][]byte{append([]byte{packing.Format}, bytes.Repeat([]byte("again "), 100)...)}, PackLevel)
	for name, bad := range map[string][]byte{"a bomb": bomb, "packed twice": nested, "cut": bomb[:len(bomb)-1]} {
		if commands, err := DecodeEntry(bad); !errors.Is(err, ErrDecode) && !errors.Is(err, ErrFormat) {
			t.Errorf("%s: read %v (%v)", name, commands, err)
		}
	}
	if _, err := DecodeEntry(bomb); !errors.Is(err, packing.ErrDamaged) {
		t.Errorf("a bomb is unpacked: %v", err)
	}
}

// both applies a command as it was written until level 3, and as it is written now, and compares.
func both(t *rapid.T, index uint64, plain, lean *Store, command Command) Result {
	data, err := command.Encode()
	if err != nil {
		t.Fatal(err)
	}
	was := plain.FSM().Apply(&raft.Log{Index: index, Type: raft.LogCommand, Data: data}).(Result)
	if data, err = command.Lean(lean.Snapshot()).Encode(); err != nil {
		t.Fatal(err)
	}
	entry := Entry([][]byte{data}, lean.Snapshot().FeatureLevel())
	is := lean.FSM().Apply(&raft.Log{Index: index, Type: raft.LogCommand, Data: entry}).(Result)
	if diff := cmp.Diff(was, is); diff != "" {
		t.Fatalf("entry %d is answered differently:\n%s", index, diff)
	}
	if plain.Hash() != lean.Hash() {
		t.Fatalf("entry %d parts the members", index)
	}
	return is
}

// Whatever the log: what is left out of it makes no difference to any answer, any record or the hash.
func TestWhatIsLeftOutOfTheLogChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plain, lean, m := NewStore(), NewStore(), newNaive()
		raise := RaiseLevel(FeatureLevel)
		raise.Key, raise.At = "raise", noon
		both(t, 1, plain, lean, raise)
		m = m.after(raise, 1)
		entries := rapid.Uint64Range(2, 50).Draw(t, "entries")
		for index := uint64(2); index <= entries; index++ {
			command := drawCommand(t, m, index)
			if rapid.Bool().Draw(t, "keep") { // as a transition does: most stays
				for i := range command.VMs {
					if before, exists := m.vms[command.VMs[i].ID]; exists {
						before.Holder, before.Epoch = command.VMs[i].Holder, command.VMs[i].Epoch
						command.VMs[i] = before
					}
				}
			}
			both(t, index, plain, lean, command)
			if next := m.after(command, index); next != nil {
				m = next
			}
		}
		if !bytes.Equal(save(t, plain), save(t, lean)) {
			t.Fatal("the records are others")
		}
	})
}

// A transition writes what it changes, and not the document of the VM once more.
func TestATransitionDoesNotWriteTheDocumentAgain(t *testing.T) {
	m := newMember(t)
	m.stored(RaiseLevel(FeatureLevel))
	web := vm("v1", "web", 0)
	web.Spec.XML = strings.Repeat("<device/>", 1000)
	op := start("o1", "v1")
	m.stored(Command{
		Expect: []Expectation{expect(VMs, "v1", 0), expect(Operations, "o1", 0)}, VMs: []model.VM{web}, Operations: []operation.Operation{op},
	})
	now, _ := m.store.Snapshot().VM("v1")
	now.Holder, now.Epoch = "n1", 1
	command := Command{
		Expect: []Expectation{expect(VMs, "v1", now.Revision), expect(Operations, "o1", now.Revision)},
		VMs:    []model.VM{now}, Operations: []operation.Operation{ended(op)},
	}
	lean := command.Lean(m.store.Snapshot())
	if data := encoded(t, *lean)[0]; len(data) > 1200 || len(lean.Partial) != 2 {
		t.Errorf("%d bytes are written: %.1500s", len(data), data)
	}
	if command.VMs[0].Spec.XML == "" || len(command.Partial) > 0 {
		t.Error("the command itself was changed")
	}
	m.stored(*lean)
	if got, _ := m.store.Snapshot().VM("v1"); got.Spec.XML != web.Spec.XML || got.Holder != "n1" || got.Name != "web" {
		t.Errorf("it has become %.200v", got)
	}
	// Of a record that this leader does not know yet nothing is left out.
	if later := putVM(m.index+1, now); later.Lean(m.store.Snapshot()).Partial != nil {
		t.Error("something is left out that is at another revision")
	}
	// Nothing is left out for members that would not know what to do.
	below := newMember(t)
	first := below.stored(putVM(0, web))
	if again := putVM(first.Index, web); again.Lean(below.store.Snapshot()).Partial != nil {
		t.Error("it is left out below its level")
	}
}

// A part of a record that has changed since, that is not there or that the command does not put is refused, and nothing is stored.
func TestAPartOfWhatIsNotThereIsRefused(t *testing.T) {
	m := newMember(t)
	m.stored(RaiseLevel(FeatureLevel))
	first := m.stored(putVM(0, vm("v1", "web", 1)))
	part := func(expected uint64, partial ...Partial) Command {
		return Command{
			Expect: []Expectation{expect(VMs, "v1", expected)}, VMs: []model.VM{vm("v1", "other", 2)}, Partial: partial,
		}
	}
	epoch := Partial{Table: VMs, ID: "v1", Fields: []string{"epoch"}}
	m.refused(Stale, part(first.Index+1, epoch))
	for name, partial := range map[string]Partial{
		"another record": {Table: VMs, ID: "v2"}, "another table": {Table: Nodes, ID: "v1"}, "no such table": {Table: "quota", ID: "v1"},
		"a table without parts": {Table: Decisions, ID: "v1"}, "no such field": {Table: VMs, ID: "v1", Fields: []string{"quota"}},
		"the ID": {Table: VMs, ID: "v1", Fields: []string{"id"}},
	} {
		t.Run(name, func(*testing.T) { m.refused(Invalid, part(first.Index, partial)) })
	}
	unexpected := part(first.Index, epoch)
	unexpected.Expect = nil
	m.refused(Invalid, unexpected)
	absent := part(0, Partial{Table: VMs, ID: "v9"})
	absent.Expect, absent.VMs = []Expectation{expect(VMs, "v9", 0)}, []model.VM{vm("v9", "new", 1)}
	m.refused(Invalid, absent)
	m.stored(part(first.Index, epoch))
	if got, _ := m.store.Snapshot().VM("v1"); got.Epoch != 2 || got.Name != "web" {
		t.Errorf("it has become %+v", got)
	}
}

// A field that is added to a record is left out and given back like all others.
func TestEveryFieldOfARecordIsGivenBack(t *testing.T) {
	for table, layout := range layouts {
		if layout.id == nil || layout.revision == nil {
			t.Errorf("%s has no ID or no revision", table)
		}
		names := make(map[string]bool)
		for _, field := range layout.fields {
			if names[field.name] {
				t.Errorf("%s has the field %s twice", table, field.name)
			}
			names[field.name] = true
		}
	}
}
