package operation

import (
	"testing"
	"time"

	"berth/coordinator/cluster"
)

func judging() Picture {
	op, vm := migrating()
	op.Phase, op.Step = Judging, 2
	return Picture{Operation: op, VM: vm}
}

// inspected answers an order to inspect.
func inspected(order Order, state cluster.DomainState, epoch uint64) Answer {
	return Answer{
		Operation: order.Operation, Node: order.Node, Step: order.Step, Outcome: OutcomeDone,
		Seen: Observation{State: state, Epoch: epoch, Boot: "boot-1"},
	}
}

func TestADriverTakesLooksOfOneRoundOnly(t *testing.T) {
	picture, d := judging(), NewDriver(7)
	first := d.Look(picture, noon)
	if len(first.Orders) != 2 || first.Pause != LookEvery || first.Commit != nil {
		t.Fatalf("at first: %+v", first)
	}
	if _, moved := d.Answer(inspected(first.Orders[0], cluster.DomainAbsent, 0), noon); moved {
		t.Fatal("decided on one node's look")
	}
	second := d.Look(picture, noon)
	if _, moved := d.Answer(inspected(first.Orders[1], cluster.DomainPaused, 5), noon); moved {
		t.Fatal("took a look of the round before")
	}
	if _, moved := d.Answer(inspected(second.Orders[1], cluster.DomainPaused, 5), noon); moved {
		t.Fatal("kept a look of the round before")
	}
	next, moved := d.Answer(inspected(second.Orders[0], cluster.DomainAbsent, 0), noon)
	if !moved || next.Operation.Phase != HandedOver {
		t.Errorf("both looks of a round led to %+v", next.Operation)
	}
}

// The first look of a new leader does not share its round with one of the last leader's, which may still be on its way.
func TestDriversOfTwoLeadersAskInRoundsOfTheirOwn(t *testing.T) {
	picture := judging()
	old, now := NewDriver(7), NewDriver(40_000)
	asked := old.Look(picture, noon)
	now.Look(picture, noon)
	for _, order := range asked.Orders {
		if _, moved := now.Answer(inspected(order, cluster.DomainRunning, 4), noon); moved {
			t.Error("decided on what another leader has asked")
		}
	}
}

func TestANodeThatIsProvenOffShowsNothing(t *testing.T) {
	picture, d := judging(), NewDriver(0)
	picture.Fenced = []string{"n1"}
	todo := d.Look(picture, noon)
	if len(todo.Orders) != 1 || todo.Orders[0].Node != "n2" {
		t.Fatalf("orders %+v, want one, to the other node", todo.Orders)
	}
	stale := inspected(todo.Orders[0], cluster.DomainRunning, 4)
	stale.Node = "n1"
	if _, moved := d.Answer(stale, noon); moved {
		t.Fatal("believed a node that is off")
	}
	next, moved := d.Answer(inspected(todo.Orders[0], cluster.DomainRunning, 5), noon)
	if !moved || next.Operation.Phase != HandedOver {
		t.Errorf("a running copy and a source that is off led to %+v", next.Operation)
	}
	picture.Fenced = []string{"n1", "n2"}
	todo = d.Look(picture, noon)
	if todo.Commit == nil || todo.Commit.Operation.Result != Failed || todo.Commit.VM.Holder != "" {
		t.Errorf("both nodes off led to %+v", todo)
	}
}

func TestADriverSaysWhatIsToBeDone(t *testing.T) {
	op, vm := migrating()
	op.Cancel = true
	todo := NewDriver(0).Look(Picture{Operation: op, VM: vm}, noon)
	if len(todo.Orders) != 1 || len(todo.Cancels) != 1 || todo.Pause != ResendEvery {
		t.Errorf("a cancelled copy: %+v", todo)
	}
	op.Phase, op.UpdatedAt, op.Leftover = Discarding, noon, "n2"
	if todo = NewDriver(0).Look(Picture{Operation: op, VM: vm}, noon.Add(DiscardPatience)); todo.Commit == nil {
		t.Errorf("an overdue leftover: %+v", todo)
	}
	op.Phase = Placing
	if todo = NewDriver(0).Look(Picture{Operation: op, VM: vm}, noon); !todo.Place {
		t.Errorf("a start without a node: %+v", todo)
	}
	op.Phase = Judging
	op.Result = Parked
	if todo = NewDriver(0).Look(Picture{Operation: op, VM: vm}, noon.Add(time.Hour)); !todo.Over {
		t.Errorf("a parked operation: %+v", todo)
	}
}
