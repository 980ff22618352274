package operation

import (
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
)

func TestWhatAChangeOfDevicesComesTo(t *testing.T) {
	edit := model.DeviceEdit{Kind: "disk", Key: "vdb", Is: "fast/data", XML: "<disk/>", By: "operator/alice", At: noon}
	for kind, words := range map[Kind]string{
		Attach: "attaching disk vdb on node1", Detach: "detaching disk vdb on node1", Media: "changing disk vdb on node1",
	} {
		op, vm := standingVM(kind)
		op.Edits = []model.DeviceEdit{edit}
		orders := Orders(op, vm, 0)
		if len(orders) != 1 || orders[0].Action != ActAmend || orders[0].Epoch != 4 || len(orders[0].Edits) != 1 || op.Doing() != words {
			t.Errorf("%s: ordered %+v, doing %q", kind, orders, op.Doing())
		}
		if _, moved := Step(op, vm, Answer{Node: "n1", Step: op.Step, Outcome: OutcomeAmbiguous}, noon); moved {
			t.Errorf("%s: an answer in doubt led to something", kind)
		}
		failed := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeRefused, Error: "no such volume"})
		if failed.Operation.Result != Failed || failed.Operation.Message != "no such volume" || failed.VM.Drift != nil {
			t.Errorf("%s refused: %+v, %+v", kind, failed.Operation, failed.VM.Drift)
		}
		done := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeDone, Seen: shows(model.DomainRunning, 4)})
		if done.Operation.Result != Done || len(done.VM.Drifted()) != 1 || done.VM.Drifted()[0] != edit || len(done.VM.ChangedBeside()) != 0 {
			t.Errorf("%s: %+v, %+v", kind, done.Operation, done.VM.Drift)
		}
		if _, text := done.Operation.Ended(); text != "disk vdb was attached by operator/alice (fast/data)" {
			t.Errorf("%s is told as %q", kind, text)
		}
		late, over := Overdue(op, vm, noon.Add(AmendPatience))
		if !over || !strings.Contains(late.Operation.Message, "node1 did not answer for certain") {
			t.Errorf("%s overdue %t: %+v", kind, over, late.Operation)
		}
		if _, over := Overdue(op, vm, noon.Add(AmendPatience-time.Second)); over {
			t.Errorf("%s is given up while its node may answer", kind)
		}
	}
}
