package operation

import (
	"testing"
	"time"

	"berth/coordinator/model"
)

// A kind that lacks something would only be noticed when an operation gets there.
func TestEveryKindIsWhole(t *testing.T) {
	seen := map[Kind]bool{}
	for _, k := range kinds {
		if seen[k.name] || k.name == "" || k.begun == nil || k.doing == nil || k.ended == nil || len(k.phases) == 0 {
			t.Errorf("%q: a second time %t, with %d phases, begun %t, doing %t, ended %t",
				k.name, seen[k.name], len(k.phases), k.begun != nil, k.doing != nil, k.ended != nil)
		}
		seen[k.name] = true
		for name, one := range k.phases {
			if one.node == nil || one.order == nil || one.answered == nil {
				t.Errorf("%s, %s: node %t, order %t, answered %t", k.name, name, one.node != nil, one.order != nil, one.answered != nil)
			}
			if name == Clearing && k.name != Delete && k.cleared == nil {
				t.Errorf("%s removes volumes, and nothing follows", k.name)
			}
		}
	}
}

// A record of a later release leads nowhere and ends nothing.
func TestAKindThatNobodyKnowsLeadsNowhere(t *testing.T) {
	op := Operation{ID: "op", Kind: "dance", Source: "n1", Target: "n1", Phase: Dispatched, Step: 1, Cancel: true}
	if orders := Orders(op, model.VM{}, 0); len(orders) > 0 {
		t.Errorf("ordered %+v", orders)
	}
	if _, moved := Step(op, model.VM{}, Answer{Node: "n1", Step: 1, Outcome: OutcomeDone}, noon); moved {
		t.Error("an answer led somewhere")
	}
	if _, moved := Off(op, model.VM{}, "n1", noon); moved {
		t.Error("a node that is off led somewhere")
	}
	if _, moved := Overdue(op, model.VM{}, noon.Add(time.Hour)); moved {
		t.Error("it was overdue")
	}
	op.Phase = Judging
	if _, moved := Settle(op, model.VM{}, map[string]Observation{"n1": nothing}, noon); moved {
		t.Error("a look led somewhere")
	}
	if event, _ := op.Ended(); op.Begun() != "dance" || op.Doing() != "dance" || event != "vm.dance" {
		t.Errorf("told as %q, %q and %q", op.Begun(), op.Doing(), event)
	}
}
