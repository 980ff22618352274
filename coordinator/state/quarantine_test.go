package state

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"berth/coordinator/cluster"
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
		Members: []cluster.Member{{ID: "m2", Name: "two"}},
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
	check(t, "members", names(x.Members(), func(m cluster.Member) string { return m.Name }), "one", "two")
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
