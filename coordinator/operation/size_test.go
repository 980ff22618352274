package operation

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/coordinator/model"
	"berth/shared/units"
)

// The record of a VM that was started says how large, and only what was changed after the start had begun waits for the next one.
func TestWhatAStartLeavesInTheRecord(t *testing.T) {
	change := func(field string, at time.Time) model.PendingChange { return model.PendingChange{Field: field, At: at} }
	vm := model.VM{
		ID: "vm-id", Name: "web1", Operation: "op", Spec: model.VMSpec{Memory: 4 * units.GiB, VCPUs: 4},
		Pending: []model.PendingChange{change("memory", noon.Add(-time.Hour)), change("offer", noon.Add(time.Second))},
	}
	op := Operation{
		ID: "op", Kind: Start, VM: vm.ID, VMName: vm.Name, Target: "n1", Epoch: 1, Phase: Dispatched, Step: 1, CreatedAt: noon,
		Spec: &model.VMSpec{Memory: 2 * units.GiB, VCPUs: 2}, // as it was when that was decided
	}
	next := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeDone, Seen: shows(model.DomainRunning, 1)})
	if next.VM.RanSize != (model.Size{Memory: 2 * units.GiB, VCPUs: 2}) {
		t.Errorf("it was started as %+v", next.VM.RanSize)
	}
	if diff := cmp.Diff([]model.PendingChange{change("offer", noon.Add(time.Second))}, next.VM.Pending); diff != "" {
		t.Errorf("what waits (-want +is):\n%s", diff)
	}
}

// Somebody else has started it: how large, its record cannot know.
func TestAVMThatCameBackIsAsLargeAsItsNodeShows(t *testing.T) {
	for holder, want := range map[string]model.Size{"": {}, "n2": {Memory: units.GiB, VCPUs: 1}} {
		vm := model.VM{ID: "vm-id", Name: "web1", Holder: holder, Operation: "op", RanSize: model.Size{Memory: units.GiB, VCPUs: 1}}
		op := Operation{
			ID: "op", Kind: Adopt, VM: vm.ID, VMName: vm.Name, Source: holder, Target: "n1", Epoch: 3, Phase: Dispatched, Step: 1,
		}
		next := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeDone, Seen: shows(model.DomainRunning, 3)})
		if next.VM.Holder != "n1" || next.VM.RanSize != want {
			t.Errorf("held by %q before: %+v", holder, next.VM.RanSize)
		}
	}
}
