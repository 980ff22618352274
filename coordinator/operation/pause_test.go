package operation

import (
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
)

// standingVM is an operation of this kind on a VM that n1 has.
func standingVM(kind Kind) (Operation, model.VM) {
	op, vm := rebooting()
	op.Kind, op.Caller = kind, "operator/alice"
	return op, vm
}

func TestWhatAPauseAndAResumeComeTo(t *testing.T) {
	before := model.Stand{By: "operator/bob", At: noon.Add(-time.Hour)}
	alice := model.Stand{By: "operator/alice", At: noon}
	here := shows(model.DomainPaused, 4)
	for name, c := range map[string]struct {
		kind   Kind
		was    model.Stand
		answer Answer
		result Result
		says   string
		is     model.Stand
	}{
		"paused":           {Pause, model.Stand{}, Answer{Outcome: OutcomeDone, Seen: here}, Done, "", alice},
		"paused again":     {Pause, before, Answer{Outcome: OutcomeDone, Seen: here}, Done, "", alice},
		"not paused":       {Pause, model.Stand{}, Answer{Outcome: OutcomeRefused, Error: "crashed"}, Failed, "crashed", model.Stand{}},
		"pause failed":     {Pause, before, Answer{Outcome: OutcomeFailed, Error: "it ended"}, Failed, "it ended", before},
		"resumed":          {Resume, before, Answer{Outcome: OutcomeDone, Seen: shows(model.DomainRunning, 4)}, Done, "", model.Stand{}},
		"not resumed":      {Resume, before, Answer{Outcome: OutcomeRefused, Error: "a migration has"}, Failed, "a migration has", before},
		"pause, in doubt":  {Pause, before, Answer{Outcome: OutcomeAmbiguous, Error: "hangs"}, Pending, "", before},
		"resume, in doubt": {Resume, before, Answer{Outcome: OutcomeAmbiguous, Error: "hangs"}, Pending, "", before},
	} {
		t.Run(name, func(t *testing.T) {
			op, vm := standingVM(c.kind)
			vm.Paused, c.answer.Node, c.answer.Step = c.was, "n1", op.Step
			next, moved := Step(op, vm, c.answer, noon)
			if c.result == Pending {
				if moved {
					t.Errorf("an answer in doubt led to %+v", next.Operation)
				}
				return
			}
			if next.Operation.Result != c.result || next.Operation.Message != c.says || next.VM.Paused != c.is {
				t.Errorf("ended %s with %q, paused %+v", next.Operation.Result, next.Operation.Message, next.VM.Paused)
			}
			if next.VM.Holder != "n1" || next.VM.Epoch != 4 || next.VM.Desired != model.Running || next.VM.Operation != "" {
				t.Errorf("the VM is %+v", next.VM)
			}
		})
	}
}

func TestAPauseIsOneOrderAndDoesNotWaitForEver(t *testing.T) {
	for kind, action := range map[Kind]Action{Pause: ActPause, Resume: ActUnpause} {
		op, vm := standingVM(kind)
		orders := Orders(op, vm, 0)
		if len(orders) != 1 || orders[0].Action != action || orders[0].Node != "n1" || orders[0].Epoch != 4 {
			t.Errorf("%s ordered %+v", kind, orders)
		}
		if _, over := Overdue(op, vm, noon.Add(PausePatience-time.Second)); over {
			t.Errorf("%s is given up while the node may answer", kind)
		}
		next, over := Overdue(op, vm, noon.Add(PausePatience))
		if !over || next.Operation.Result != Failed || !strings.Contains(next.Operation.Message, "node1 did not answer") {
			t.Errorf("%s overdue %t: %+v", kind, over, next.Operation)
		}
		if end, _, _ := drivenOff(op, vm, "n1"); end.Result != Failed || end.Message != "node1 is proven to be off" {
			t.Errorf("%s, its node is off: %+v", kind, end)
		}
		if kind.Bound() == (Bound{}) || kind.Level() != 3 || kind.Brings() || kind.Stops() {
			t.Errorf("%s: bound %+v, level %d", kind, kind.Bound(), kind.Level())
		}
	}
}

// What was paused ends with its node, or by a stop, and whatever starts the VM lets it run. That is said.
func TestAStartLetsAPausedVMRun(t *testing.T) {
	op, vm := starting()
	vm.Paused = model.Stand{By: "operator/bob", At: noon}
	next := mustStep(t, op, vm, Answer{Node: op.Target, Outcome: OutcomeDone, Seen: shows(model.DomainRunning, op.Epoch)})
	if next.VM.Paused != (model.Stand{}) || !strings.Contains(next.Operation.Message, "it was paused by operator/bob since") {
		t.Errorf("paused %+v, said %q", next.VM.Paused, next.Operation.Message)
	}
	stop, vm := standingVM(Stop)
	vm.Paused = model.Stand{By: "operator/bob", At: noon}
	next = mustStep(t, stop, vm, Answer{Node: "n1", Outcome: OutcomeDone, Seen: nothing})
	if next.VM.Paused != (model.Stand{}) || next.Operation.Result != Done {
		t.Errorf("stopped: %+v", next.VM)
	}
}
