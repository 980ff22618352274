package state

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/schema"
)

// A command of a release that does not exist yet: the level is the only thing in it that can be read.
func TestACommandOfALaterReleaseNamesTheLevelThatItNeeds(t *testing.T) {
	future, err := os.ReadFile(filepath.Join("testdata", "future-command"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = DecodeCommand(bytes.TrimSpace(future))
	const says = "it needs level 1000, this release goes up to 3; install a release that has this level"
	if !errors.Is(err, ErrLevel) || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v", err)
	}
	if _, err := DecodeCommand([]byte("\x01" + `{"key":"k","quota":{}}`)); !errors.Is(err, ErrDecode) {
		t.Errorf("an unknown field without a level: %v", err)
	}
}

func TestTheFeatureLevelIsOneUntilItIsRaised(t *testing.T) {
	m := newMember(t)
	if got := m.store.Snapshot().FeatureLevel(); got != 1 {
		t.Errorf("a new state has level %d", got)
	}
	m.stored(RaiseLevel(FeatureLevel))
	if got := m.store.Snapshot().FeatureLevel(); got != FeatureLevel {
		t.Errorf("raised to %d, it is %d", FeatureLevel, got)
	}
}

func TestAStateOfALaterReleaseIsNotRestored(t *testing.T) {
	m := newMember(t)
	later := RaiseLevel(FeatureLevel + 1)
	later.Level = 0 // as that release would apply it
	m.stored(later)
	_, err := Load(bytes.NewReader(saved(t, m.store.Snapshot())))
	if !errors.Is(err, ErrSnapshot) || !errors.Is(err, ErrLevel) {
		t.Errorf("got %v", err)
	}
}

// The release that wrote it is read although nothing else of it can be.
func TestACommandOfALaterReleaseNamesTheReleaseToInstall(t *testing.T) {
	const says = "it needs level 9, this release goes up to 3; install release 1.4, which wrote it, or a later one"
	later := []byte("\x01" + `{"key":"k","quota":{},"level":9,"release":"1.4"}`)
	if _, err := DecodeCommand(later); !errors.Is(err, ErrLevel) || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v", err)
	}
	m := newMember(t)
	defer func() {
		if said, _ := recover().(string); !strings.Contains(said, "entry 7 of the Raft log cannot be applied") || !strings.Contains(said, says) {
			t.Errorf("it halts with %q", said)
		}
	}()
	m.fsm.Apply(&raft.Log{Index: 7, Type: raft.LogCommand, Data: later})
}

func TestACommandNamesItsReleaseWhereOneIsNeeded(t *testing.T) {
	for level, named := range map[uint32]bool{0: false, 2: false, 3: true} {
		data, err := (&Command{Key: "k", Level: level}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got := bytes.Contains(data, []byte(`"release":"`)); got != named {
			t.Errorf("level %d: %s", level, data)
		}
	}
}

// A record and a table of a later release are in the snapshot before the level that tells of them.
func TestASnapshotOfALaterReleaseNamesTheReleaseToInstall(t *testing.T) {
	later := []string{string(Meta), `{"key":"feature_level","value":"9","revision":1}`}
	for name, unknown := range map[string][]string{
		"a field": {string(VMs), `{"id":"v1","quota":{}}`, `{"id":"v2"}`}, "a table": {"quota", `{"id":"q1"}`},
	} {
		_, err := Load(bytes.NewReader(craftAll(unknown, later)))
		const says = "it needs level 9, this release goes up to 3; install release 9.9, which wrote it, or a later one"
		if !errors.Is(err, ErrSnapshot) || !errors.Is(err, ErrLevel) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
		_, err = Load(bytes.NewReader(craftAll(unknown)))
		if !errors.Is(err, ErrSnapshot) || errors.Is(err, ErrLevel) || !strings.Contains(err.Error(), `section "`+unknown[0]+`"`) {
			t.Errorf("%s without a level: %v", name, err)
		}
	}
}

func TestEveryFeatureLevelHasItsFirstRelease(t *testing.T) {
	for level := uint32(1); level <= FeatureLevel; level++ {
		if FirstRelease(level) == "" {
			t.Errorf("level %d has none", level)
		}
	}
	if FirstRelease(0) != "" || FirstRelease(FeatureLevel+1) != "" {
		t.Error("a level that nobody knows has one")
	}
}

// A node's labels stand for what a release may add to nodes.
func TestADeclaredFieldWaitsForItsFeatureLevel(t *testing.T) {
	labels := schema.Of(schema.Node, "labels")
	labels.Since = 3
	defer func() { labels.Since = 0 }()
	described, labelled := vm("v1", "web", 1), node("n1", "alpha")
	described.Description, labelled.Labels = "front", []string{"y"}
	for says, command := range map[string]Command{
		"the field description of VM web takes feature level 3, and they have come to 2": putVM(0, described),
		"the field labels of node alpha takes feature level 3, and they have come to 2":  putNode(0, labelled),
	} {
		if _, err := command.For(2); !errors.Is(err, ErrNotYet) || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %s", err, says)
		}
		if readable, err := command.For(3); err != nil || readable.needed() != 3 {
			t.Errorf("at its level: %v", err)
		}
	}
	// What a member can do without is left out: the node is held by its failed fencing all the same.
	doubted := node("n1", "alpha")
	doubted.Fencing = model.Fencing{ID: "f1", Phase: model.FencingFailed, Struck: "n2", StruckBoot: "b1"}
	command := putNode(0, doubted)
	if readable, err := command.For(2); err != nil || readable.Nodes[0].Fencing.Struck != "" || readable.needed() != 0 {
		t.Errorf("for level 2: %v, %+v", err, readable)
	}
	if command.needed() != 3 || command.Nodes[0].Fencing.Struck != "n2" {
		t.Errorf("it needs level %d, and has become %+v", command.needed(), command.Nodes)
	}
	spelled := Command{Resources: []model.Resource{{ID: "r1", Spelled: map[string]string{"nodes_rule": "hosts_rule"}}}}
	if readable, err := spelled.For(2); err != nil || readable.Resources[0].Spelled != nil || readable.needed() != 0 || spelled.needed() != 3 {
		t.Errorf("how a record was written, for level 2: %v, %+v", err, readable)
	}
	plain := putVM(0, vm("v1", "web", 1))
	if readable, err := plain.For(1); err != nil || readable.needed() != 0 {
		t.Errorf("without it: %v", err)
	}
}

func TestAKindOfOperationWaitsForItsFeatureLevel(t *testing.T) {
	reboot := Command{Operations: []operation.Operation{{ID: "o1", Kind: operation.Reboot, VM: "v1", VMName: "web"}}}
	const says = "the reboot of VM web takes feature level 3, and they have come to 2"
	if _, err := reboot.For(2); !errors.Is(err, ErrNotYet) || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want %s", err, says)
	}
	if readable, err := reboot.For(3); err != nil || readable.needed() != 3 {
		t.Errorf("a reboot at its level: %v", err)
	}
}
