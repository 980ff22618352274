package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

func TestVMHistory(t *testing.T) {
	d := newDeclarer(t)
	d.m.addNode("n1", "hv1")
	d.m.addNode("n2", "hv2")
	hour := func(n int) time.Time { return time.Date(2026, time.March, 1, n, 0, 0, 0, time.UTC) }
	add := func(id, holder string, epoch uint64) {
		d.m.addVM(model.VM{
			ID: id, Name: "vm-" + id, Desired: model.Running, Holder: holder, Epoch: epoch, CreatedAt: hour(0), StartedAt: hour(1),
			MovedAt: hour(9),
		})
	}
	did := func(op operation.Operation, ended int) {
		names := map[string]string{"n1": "hv1", "n2": "hv2"}
		op.VMName, op.SourceName, op.TargetName = "vm-"+op.VM, names[op.Source], names[op.Target]
		if op.Result == "" {
			op.Result = operation.Done
		}
		op.Phase, op.CreatedAt, op.UpdatedAt, op.EndedAt = operation.Ended, hour(ended), hour(ended), hour(ended)
		d.m.update(op)
	}
	decided := func(id string, request placement.Request, reason string) {
		d.m.propose(state.Command{Kind: "test", Decisions: []placement.Decision{{
			ID: id, At: time.Now(), Request: request, Outcome: placement.Placed, Reason: reason,
		}}})
	}
	history := func(vm string) (said []string, trimmed bool) {
		t.Helper()
		answer, err := d.client.VMHistory(t.Context(), connect.NewRequest(&berthv1.VMHistoryRequest{Vm: vm}))
		if err != nil {
			t.Fatal(err)
		}
		for _, stay := range answer.Msg.GetStays() {
			until := "now"
			if stay.GetUntil() != nil {
				until = stay.GetUntil().AsTime().Format("15")
			}
			said = append(said, fmt.Sprintf("%s %s-%s %s: %s",
				stay.GetNode(), stay.GetSince().AsTime().Format("15"), until, stay.GetCameBy(), stay.GetReason()))
		}
		return said, answer.Msg.GetTrimmed()
	}
	want := func(vm string, trimmed bool, lines ...string) {
		t.Helper()
		if said, cut := history(vm); strings.Join(said, "\n") != strings.Join(lines, "\n") || cut != trimmed {
			t.Errorf("trimmed %t\n%s\nwant %t\n%s", cut, strings.Join(said, "\n"), trimmed, strings.Join(lines, "\n"))
		}
	}

	add("v1", "n1", 7)
	decided("d1", placement.Request{Purpose: placement.ForStart, VM: "v1"}, "hv1 is best")
	decided("d2", placement.Request{Purpose: placement.ForDrain, VM: "v1"}, "only hv2 is left")
	decided("d5", placement.Request{Purpose: placement.ForStart, VM: "v1", Restart: true}, "hv2 is best")
	d.m.propose(state.Command{Kind: "test", Expect: []state.Expectation{{Table: state.Plans, ID: "p1"}}, Plans: []model.Plan{{
		ID: "p1", Kind: model.PlanDrain, State: model.PlanDone, CreatedAt: hour(2), EndedAt: hour(3),
		Moves: []model.Move{{VM: "v1", VMName: "vm-v1", Reason: "hv1 is drained"}},
	}}})
	did(operation.Operation{ID: "o1", Kind: operation.Start, VM: "v1", Target: "n1", Epoch: 1, Decision: "d1"}, 1)
	did(operation.Operation{ID: "o2", Kind: operation.Migrate, VM: "v1", Source: "n1", Target: "n2", Epoch: 2, Decision: "d2", Plan: "p1"}, 3)
	did(operation.Operation{ID: "o3", Kind: operation.Migrate, VM: "v1", Source: "n2", Target: "n1", Epoch: 3, Result: operation.Failed}, 4)
	did(operation.Operation{ID: "o4", Kind: operation.Stop, VM: "v1", Source: "n2", Epoch: 3}, 5)
	did(operation.Operation{ID: "o5", Kind: operation.Start, VM: "v1", Target: "n2", Epoch: 4, Decision: "d5"}, 6)
	did(operation.Operation{ID: "o6", Kind: operation.Adopt, VM: "v1", Source: "n2", Target: "n1", Epoch: 5}, 7)
	want("vm-v1", false,
		"hv1 07-now out-of-band: somebody else moved it here from hv2",
		"hv2 06-07 restart: its node had failed; hv2 is best",
		"hv2 03-05 drain: hv1 is drained; only hv2 is left",
		"hv1 01-03 start: hv1 is best",
	)

	add("v2", "n2", 9) // what brought it where it is, and before, is forgotten
	did(operation.Operation{ID: "o7", Kind: operation.Start, VM: "v2", Target: "n1", Epoch: 5, Decision: "d0"}, 2)
	want("v2", true, "hv2 09-now : ", "hv1 02-now start: decision d0 is no longer kept")

	add("v3", "", 2) // ended out of band
	did(operation.Operation{ID: "o8", Kind: operation.Adopt, VM: "v3", Target: "n1", Epoch: 2}, 2)
	d.m.propose(state.Command{Kind: "test", Events: []model.Event{
		{At: hour(1), Kind: "vm.released", Subject: "vm/vm-v3"},
		{At: hour(4), Kind: "vm.stopped-out-of-band", Subject: "vm/vm-v3"},
		{At: hour(5), Kind: "vm.released", Subject: "vm/vm-v3"},
	}})
	want("v3", false, "hv1 02-04 adopt: it ran here when Berth took it under management")

	add("v4", "", 0)
	want("v4", false)

	_, err := d.client.VMHistory(t.Context(), connect.NewRequest(&berthv1.VMHistoryRequest{Vm: "mail"}))
	wantRefusal(t, err, rpc.NotFound, "vm/mail")
}
