package consensus

import (
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"berth/coordinator/model"
	"berth/coordinator/state"
)

// A leader writes plain entries until all members have told that they read others. From then on it packs them, and writes of a
// record only what changes. Members that have the log of before go on with it.
func TestALeaderWritesLittleOnceAllMembersReadIt(t *testing.T) {
	all := newTeam(t, newAuthority(t, "c1"), 3)
	leader := all.leader()
	back := state.Command{Key: "back", Kind: "test", At: time.Now(), Meta: map[string]string{state.MetaFeatureLevel: "1"}}
	leader.mustPropose(back)
	document := strings.Repeat("<device name='"+strings.Repeat("x", 30)+"'/>", 400)
	web := model.VM{ID: "v1", Name: "web", Desired: model.Stopped, Spec: model.VMSpec{XML: document}}
	change := func(key string, expected uint64) uint64 {
		t.Helper()
		web.Description = key
		if leader.store.Snapshot().FeatureLevel() < state.FeatureLevel {
			web.Description = ""
		}
		return leader.mustPropose(state.Command{
			Key: key, Kind: "test", At: time.Now(), Expect: []state.Expectation{{Table: state.VMs, ID: "v1", Revision: expected}},
			VMs: []model.VM{web},
		}).Index
	}
	written := func(index uint64) []byte {
		t.Helper()
		var entry raft.Log
		if err := leader.logs.GetLog(index, &entry); err != nil {
			t.Fatal(err)
		}
		return entry.Data
	}
	first := change("first", 0)
	second := change("second", first)
	for _, index := range []uint64{first, second} {
		if data := written(index); len(data) < len(document) {
			t.Errorf("entry %d has %d bytes, before anybody knows what the members read", index, len(data))
		}
	}
	raise := state.RaiseLevel(state.FeatureLevel)
	raise.Key, raise.At = "raise", time.Now()
	if data := written(leader.mustPropose(raise).Index); !strings.Contains(string(data), `"raise the feature level"`) {
		t.Errorf("the entry that raises the level is not plain: %q", data)
	}
	third := change("third", second)
	data := written(third)
	if len(data) > 300 || strings.Contains(string(data), "description") {
		t.Errorf("a change of a description takes %d bytes: %q", len(data), data)
	}
	if commands, err := state.DecodeEntry(data); err != nil || commands[0].VMs[0].Spec.XML != "" {
		t.Errorf("the document is in it again (%v)", err)
	}
	if vm, _ := leader.store.Snapshot().VM("v1"); vm.Spec.XML != document || vm.Description != "third" {
		t.Errorf("the record has become %.200v", vm)
	}
	all.agree()
	leader.kill()
	leader.start()
	all.leader()
	all.agree()
}
