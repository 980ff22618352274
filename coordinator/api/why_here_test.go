package api

import (
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// A VM that somebody has moved, or that was there before Berth, is where it is for that reason, whatever was decided about it before or
// since.
func TestWhyAVMIsWhereNoDecisionHasPutIt(t *testing.T) {
	d := newDeclarer(t)
	d.m.addNode("n1", "hv1")
	d.m.addNode("n2", "hv2")
	now := d.m.now().Truncate(time.Second)
	at := func(ago time.Duration) time.Time { return now.Add(-ago) }
	stamp := func(ago time.Duration) string { return at(ago).Format("2006-01-02 15:04:05 UTC") }
	start := placement.Decision{
		ID: "d1", At: at(5 * time.Hour), Caller: "operator/alice", Outcome: placement.Placed, Winner: "n1", WinnerName: "hv1",
		Reason: "it scores 9", Request: placement.Request{Purpose: placement.ForStart, VM: "v1", VMName: "web"},
	}
	d.m.propose(commandOf(start))
	spec := model.VMSpec{Memory: units.GiB, VCPUs: 1}
	d.m.addVM(model.VM{ID: "v1", Name: "web", Desired: model.Running, Holder: "n2", Epoch: 2, Decision: "d1", Spec: spec})
	d.m.addVM(model.VM{ID: "v2", Name: "db", Desired: model.Running, Holder: "n1", Epoch: 1, Decision: "d9", Spec: spec, Adopted: true})
	done := func(id, vm string, kind operation.Kind, epoch uint64, ago time.Duration, change func(*operation.Operation)) {
		op := operation.Operation{
			ID: id, VM: vm, VMName: vm, Kind: kind, Phase: operation.Ended, Result: operation.Done, Epoch: epoch, Caller: "operator/bob",
			CreatedAt: at(ago), EndedAt: at(ago),
		}
		change(&op)
		d.m.update(op)
	}
	done("o1", "v1", operation.Start, 1, 5*time.Hour, func(op *operation.Operation) {
		op.Target, op.TargetName, op.Decision = "n1", "hv1", "d1"
	})
	done("o2", "v1", operation.Adopt, 2, 18*time.Minute, func(op *operation.Operation) {
		op.Source, op.SourceName, op.Target, op.TargetName = "n1", "hv1", "n2", "hv2"
	})
	done("o3", "v2", operation.Adopt, 1, 50*time.Hour, func(op *operation.Operation) {
		op.Target, op.TargetName, op.Created = "n1", "hv1", true
	})
	move := func(result operation.Result, cancelled bool) func(op *operation.Operation) {
		return func(op *operation.Operation) {
			op.Source, op.SourceName, op.Target, op.TargetName = "n1", "hv1", "n2", "hv2"
			op.Result, op.Cancel, op.Message = result, cancelled, "no connection to hv2"
		}
	}
	why := func(vm string) []string {
		t.Helper()
		answer, err := d.client.WhyVM(t.Context(), connect.NewRequest(&berthv1.WhyVMRequest{Vm: vm}))
		if err != nil {
			t.Fatal(err)
		}
		if answer.Msg.GetDecision() != nil {
			t.Errorf("it is there by decision %s", answer.Msg.GetDecision().GetId())
		}
		return answer.Msg.GetAnswer()
	}
	want := func(vm string, want ...string) {
		t.Helper()
		said := why(vm)
		for i := range said { // the test takes a second or two
			said[i] = strings.NewReplacer(", 18m ago", "", ", 5h ago", "", ", 2d2h ago", "", ", 3h ago", "", ", 2h ago", "").Replace(said[i])
		}
		if diff := cmp.Diff(want, said); diff != "" {
			t.Errorf("%s (-want +said):\n%s", vm, diff)
		}
	}
	want("web",
		"web runs on hv2 because somebody has moved it there from hv1 beside Berth, which followed it (seen "+stamp(18*time.Minute)+")",
		"before that, decision d1 (start, asked by operator/alice, "+stamp(5*time.Hour)+") had placed it on hv1: it scores 9")
	adopted := "db runs on hv1 because it ran there when Berth took it under management (" + stamp(50*time.Hour) + ", asked by operator/bob)"
	want("db", adopted)
	done("o4", "v2", operation.Migrate, 2, 3*time.Hour, move(operation.Failed, false))
	want("db", adopted, "the migration to hv2 ("+stamp(3*time.Hour)+", asked by operator/bob) failed: no connection to hv2")
	done("o5", "v2", operation.Migrate, 3, 2*time.Hour, move(operation.Failed, true))
	want("db", adopted, "the migration to hv2 ("+stamp(2*time.Hour)+", asked by operator/bob) was cancelled")
	done("o6", "v2", operation.Adopt, 4, 18*time.Minute, func(op *operation.Operation) { op.Target, op.TargetName = "n1", "hv1" })
	want("db", "db runs on hv1 because somebody has started it there beside Berth, which took note of it (seen "+stamp(18*time.Minute)+")")
}

// A rule that was made since a decision counts, and what the decision had found is told as such.
func TestWhyNotIsJudgedNow(t *testing.T) {
	d := newDeclarer(t)
	d.m.addNode("n1", "hv1")
	d.m.addNode("n2", "hv2")
	result := func(id, name string, passed bool) placement.NodeResult {
		return placement.NodeResult{Node: id, Name: name, Admitted: passed, Constraints: []placement.ConstraintResult{
			{Constraint: "affinity", Passed: passed, Message: "group apart keeps it away"},
		}}
	}
	decided := func(id string, passed bool) placement.Decision {
		return placement.Decision{
			ID: id, At: d.m.now().Add(-18 * time.Minute), Outcome: placement.Placed, Winner: "n1", WinnerName: "hv1",
			Request: placement.Request{Purpose: placement.ForStart, VM: "v1", VMName: "web"},
			Nodes:   []placement.NodeResult{result("n1", "hv1", true), result("n2", "hv2", passed)},
		}
	}
	d.m.propose(state.Command{Kind: "test", Decisions: []placement.Decision{decided("d1", true)}})
	d.m.addVM(model.VM{
		ID: "v1", Name: "web", Desired: model.Running, Holder: "n1", Epoch: 1, Decision: "d1", Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1},
	})
	passed := false
	d.m.control.judge = func(_ model.VM, purpose placement.Purpose) (placement.Decision, error) {
		if !purpose.Moves() {
			t.Errorf("a VM that runs is judged for %s", purpose)
		}
		return decided("", passed), nil
	}
	ask := func() []string {
		t.Helper()
		answered, err := d.client.WhyNot(t.Context(), connect.NewRequest(&berthv1.WhyNotRequest{Vm: "web", Node: "hv2"}))
		if err != nil {
			t.Fatal(err)
		}
		if answered.Msg.GetAt() == nil || answered.Msg.GetDecisionId() != "" {
			t.Errorf("dated %v, by decision %q", answered.Msg.GetAt(), answered.Msg.GetDecisionId())
		}
		return answered.Msg.GetAnswer()
	}
	said := ask()
	if len(said) != 2 || said[0] != "affinity: group apart keeps it away" || !strings.HasPrefix(said[1], "decision d1 (start, ") ||
		!strings.Contains(said[1], ", 18m ago) answered otherwise: ") {
		t.Errorf("after a rule was made: %q", said)
	}
	if passed = true; len(ask()) != 1 {
		t.Errorf("as before: %q", ask())
	}
}
