package inventory

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/coordinator/view"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

func apply(t testing.TB, records *state.Store, command state.Command) {
	t.Helper()
	data, err := command.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if refusal := put(records, data); refusal != nil {
		t.Fatal(refusal)
	}
}

func put(records *state.Store, data []byte) *state.Refusal {
	return records.FSM().Apply(&raft.Log{Index: records.Snapshot().Index() + 1, Data: data}).(state.Result).Refusal
}

func enrol(id string) state.Command {
	return state.Command{
		Key: "enrol " + id, Kind: "enrol", At: time.Now(), Expect: []state.Expectation{{Table: state.Nodes, ID: id}},
		Nodes: []model.Node{{ID: id, Name: "node-" + id, Cluster: model.DefaultCluster}},
	}
}

// Whatever changes what a view shows ends its being shared; and so does time.
func TestAViewIsSharedUntilSomethingIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		records := state.NewStore()
		apply(t, records, enrol("n1"))
		store := newStore()
		a := connect(t, store, "n1")
		view := func() *view.View { return store.View(records.Snapshot(), time.Now()) }
		available := int64(units.GiB)
		first := view()
		time.Sleep(viewLasts - 1)
		if view() != first {
			t.Error("nothing was heard, and the view was made again")
		}
		for _, it := range []struct {
			name   string
			change func()
		}{
			{"time", func() { time.Sleep(viewLasts) }},
			{"a listing", func() { a.inventory(running("u1")) }},
			{"a sample", func() { a.telemetry(&berthv1.NodeTelemetry{MemoryAvailableBytes: &available}) }},
			{"a domain", func() { a.change("started", running("u2")) }},
			{"an end", func() { a.session.Close("over") }},
			{"a session", func() { a.reconnect() }},
			{"a hard fact", func() { apply(t, records, enrol("n2")) }},
			{"a leadership", func() { store.Reset() }},
		} {
			before := view()
			if view() != before {
				t.Errorf("before %s: the view is not shared", it.name)
			}
			it.change()
			if view() == before {
				t.Errorf("%s left the old view in use", it.name)
			}
		}
		if later := store.View(records.Snapshot(), time.Now().Add(time.Minute)); view() == later {
			t.Error("a view of a later time is in use")
		}
	})
}

// Views are shared, so what-ifs must leave them as they are.
func TestWhatIfsLeaveASharedViewAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		records := state.NewStore()
		apply(t, records, enrol("n1"))
		guest := model.VM{
			ID: "u1", Name: "web", Desired: model.Running, Holder: "n1", Epoch: 1,
			Spec:     model.VMSpec{Memory: units.GiB, VCPUs: 1},
			Resident: []model.ResidentKey{{Class: model.CustomerKey, Name: "Group", Value: 1}},
		}
		apply(t, records, state.Command{
			Key: "vm", Kind: "vm", At: time.Now(), Expect: []state.Expectation{{Table: state.VMs, ID: "u1"}}, VMs: []model.VM{guest},
		})
		store := newStore()
		a := connect(t, store, "n1")
		a.inventory(running("u1"))
		kept := store.View(records.Snapshot(), time.Now())
		show := func() string {
			text, err := json.Marshal(kept)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		before := show()
		kept.Without("u1", "n1")
		columns := kept.Columns(model.DefaultCluster).Clone()
		columns.Charge(0, view.Allocation{Memory: units.GiB, VCPUs: 1, Resident: guest.Resident})
		if after := show(); after != before {
			t.Errorf("the view became\n%s\nit was\n%s", after, before)
		}
		if again := kept.Columns(model.DefaultCluster); again.Used.At(0) != columns.Used.At(0)-units.GiB {
			t.Errorf("%v used after the charge of other columns, want %v", again.Used.At(0), columns.Used.At(0)-units.GiB)
		}
	})
}
