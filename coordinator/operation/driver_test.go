package operation

import (
	"slices"
	"testing"
	"time"

	"berth/coordinator/model"
)

func judging() Input {
	op, vm := migrating()
	op.Phase, op.Step = Judging, 2
	return Input{Operation: op, VM: vm}
}

// inspected answers an order to inspect.
func inspected(order Order, state model.DomainState, epoch uint64) Answer {
	return Answer{
		Operation: order.Operation, Node: order.Node, Step: order.Step, Outcome: OutcomeDone,
		Seen: Observation{State: state, Epoch: epoch, Boot: "boot-1"},
	}
}

func TestADriverTakesLooksOfOneRoundOnly(t *testing.T) {
	input, d := judging(), NewDriver(7)
	first := d.Look(input, noon)
	if len(first.Orders) != 2 || first.Pause != LookEvery || first.Commit != nil {
		t.Fatalf("at first: %+v", first)
	}
	if _, moved := d.Answer(inspected(first.Orders[0], model.DomainAbsent, 0), noon); moved {
		t.Fatal("decided on one node's look")
	}
	second := d.Look(input, noon)
	if _, moved := d.Answer(inspected(first.Orders[1], model.DomainPaused, 5), noon); moved {
		t.Fatal("took a look of the round before")
	}
	if _, moved := d.Answer(inspected(second.Orders[1], model.DomainPaused, 5), noon); moved {
		t.Fatal("kept a look of the round before")
	}
	next, moved := d.Answer(inspected(second.Orders[0], model.DomainAbsent, 0), noon)
	if !moved || next.Operation.Phase != HandedOver {
		t.Errorf("both looks of a round led to %+v", next.Operation)
	}
}

// The first look of a new leader does not share its round with one of the last leader's, which may still be on its way.
func TestDriversOfTwoLeadersAskInRoundsOfTheirOwn(t *testing.T) {
	input := judging()
	old, now := NewDriver(7), NewDriver(40_000)
	asked := old.Look(input, noon)
	now.Look(input, noon)
	for _, order := range asked.Orders {
		if _, moved := now.Answer(inspected(order, model.DomainRunning, 4), noon); moved {
			t.Error("decided on what another leader has asked")
		}
	}
}

func TestANodeThatIsProvenOffShowsNothing(t *testing.T) {
	input, d := judging(), NewDriver(0)
	input.Fenced = []string{"n1"}
	todo := d.Look(input, noon)
	if len(todo.Orders) != 1 || todo.Orders[0].Node != "n2" {
		t.Fatalf("orders %+v, want one, to the other node", todo.Orders)
	}
	stale := inspected(todo.Orders[0], model.DomainRunning, 4)
	stale.Node = "n1"
	if _, moved := d.Answer(stale, noon); moved {
		t.Fatal("believed a node that is off")
	}
	next, moved := d.Answer(inspected(todo.Orders[0], model.DomainRunning, 5), noon)
	if !moved || next.Operation.Phase != HandedOver {
		t.Errorf("a running copy and a source that is off led to %+v", next.Operation)
	}
	input.Fenced = []string{"n1", "n2"}
	todo = d.Look(input, noon)
	if todo.Commit == nil || todo.Commit.Operation.Result != Failed || todo.Commit.VM.Holder != "" {
		t.Errorf("both nodes off led to %+v", todo)
	}
}

func TestADriverSaysWhatIsToBeDone(t *testing.T) {
	op, vm := migrating()
	op.Cancel = true
	todo := NewDriver(0).Look(Input{Operation: op, VM: vm}, noon)
	if len(todo.Orders) != 1 || len(todo.Cancels) != 1 || todo.Pause != WatchEvery {
		t.Errorf("a cancelled copy: %+v", todo)
	}
	op.Phase, op.UpdatedAt, op.Leftover = Discarding, noon, "n2"
	if todo = NewDriver(0).Look(Input{Operation: op, VM: vm}, noon.Add(DiscardPatience)); todo.Commit == nil {
		t.Errorf("an overdue leftover: %+v", todo)
	}
	op.Phase = Placing
	if todo = NewDriver(0).Look(Input{Operation: op, VM: vm}, noon); !todo.Place {
		t.Errorf("a start without a node: %+v", todo)
	}
	op.Phase, op.Result = Judging, Parked
	if todo = NewDriver(0).Look(Input{Operation: op, VM: vm}, noon.Add(time.Hour)); !todo.Over {
		t.Errorf("a parked operation: %+v", todo)
	}
}

// A start that is queued sends nothing until its turn comes. Until then it can be ended, or sent elsewhere, at once: no order of
// it is out.
func TestAQueuedStartWaitsForItsTurn(t *testing.T) {
	place := func(behind int) Input {
		op := Operation{ID: "op1", Kind: Start, VM: "vm1", VMName: "web", Memory: 1, VCPUs: 1, Created: true, CreatedAt: noon}
		next := Place(
			op, model.VM{ID: "vm1", Name: "web", Desired: model.Running, Operation: "op1"},
			Target{Node: "n1", Name: "node1", Behind: behind}, noon,
		)
		return Input{Operation: next.Operation, VM: next.VM}
	}
	look := func(input Input) Todo { return NewDriver(0).Look(input, noon.Add(time.Hour)) }
	if free := place(0); free.Operation.Phase != Dispatched || free.Operation.Message != "" || len(look(free).Orders) != 1 {
		t.Errorf("a start on a free node: %+v", free.Operation)
	}
	queued := place(7)
	if op := queued.Operation; op.Phase != Queued || op.Message != "waits for its turn: 7 other starts come first on node1" {
		t.Errorf("a start behind seven others: %+v", op)
	}
	if reserved, holds := queued.Operation.Reservation(); !holds || reserved.Node != "n1" {
		t.Error("a queued start holds no room")
	}
	if todo := look(queued); todo.Commit != nil || len(todo.Orders) != 0 || todo.Over || todo.Place || todo.Pause != ResendEvery {
		t.Errorf("before its turn: %+v", todo)
	}
	answer := Answer{Operation: "op1", Node: "n1", Step: queued.Operation.Step, Outcome: OutcomeDone}
	if _, moved := Step(queued.Operation, queued.VM, answer, noon); moved {
		t.Error("an answer to an order that was never given led somewhere")
	}

	turn := queued
	turn.Turn = true
	todo := look(turn)
	if todo.Commit == nil || todo.Commit.Operation.Phase != Dispatched || todo.Commit.Operation.Message != "" ||
		todo.Commit.Operation.Step <= queued.Operation.Step {
		t.Fatalf("its turn: %+v", todo)
	}
	if orders := Orders(
		todo.Commit.Operation, todo.Commit.VM, 0,
	); len(orders) != 1 || orders[0].Action != ActStart || orders[0].Epoch != queued.Operation.Epoch {
		t.Errorf("it is started by %+v", orders)
	}
	turn.Operation.Cancel = true
	if todo := look(turn); todo.Commit == nil || todo.Commit.Operation.Result != Failed || !todo.Commit.DeleteVM ||
		todo.Commit.VM.Desired != model.Stopped {
		t.Errorf("cancelled: %+v", todo)
	}
	turn = queued
	turn.Operation.TargetBoot, turn.Boot, turn.Turn = "b1", "b2", true
	if todo := look(turn); todo.Commit == nil || todo.Commit.Operation.TargetBoot != "b2" || len(todo.Commit.VM.Losses) != 0 {
		t.Errorf("its host has booted anew before its turn: %+v", todo)
	}
	queued.Fenced = []string{"n1"}
	if todo := look(queued); todo.Commit == nil || todo.Commit.Operation.Phase != Placing || !slices.Contains(
		todo.Commit.Operation.Excluded, "n1",
	) {
		t.Errorf("behind others on a node that is off: %+v", todo)
	}
}
