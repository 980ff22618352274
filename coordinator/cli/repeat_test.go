package cli

import (
	"testing"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// However many coordinators there are, a request whose outcome is not known is repeated three times at most.
func TestARequestIsRepeatedThreeTimesAtMost(t *testing.T) {
	var all []*fake
	for range 5 {
		f := steady()
		f.startVM = func(*berthv1.StartVMRequest) (*berthv1.StartVMResponse, error) {
			return nil, rpc.Errorf(connect.CodeUnavailable, &berthv1.ErrorDetail{Code: rpc.Unavailable, NextStep: "run it again"}, "it is not known")
		}
		all = append(all, f)
	}
	w, _ := newWorld(t, all...)
	if said := w.run("vm", "start", "web1"); said.exit != Failed || said.errOut != "berth: it is not known\nnext step: run it again\n" {
		t.Errorf("exit %d, %s", said.exit, said.errOut)
	}
	sent, ids := 0, map[string]bool{}
	for _, f := range all {
		for _, request := range asked[berthv1.StartVMRequest](f) {
			sent++
			ids[request.GetRequestId()] = true
		}
	}
	if sent != 1+mostRepeats || len(ids) != 1 {
		t.Errorf("sent %d times, with %d request IDs", sent, len(ids))
	}
}

// In the long run a tenth of the requests may be repetitions, and no more than ten in a row.
func TestTheBudgetIsATenthOfWhatWasAnswered(t *testing.T) {
	b := newBudget()
	spend := func() (n int) {
		for b.spend() {
			n++
		}
		return n
	}
	if n := spend(); n != mostRepeats {
		t.Errorf("a new budget had %d repetitions", n)
	}
	for range 25 {
		b.earn()
	}
	if n := spend(); n != 2 {
		t.Errorf("25 answers earned %d repetitions", n)
	}
	for range 1000 {
		b.earn()
	}
	if n := spend(); n != mostSaved {
		t.Errorf("1000 answers earned %d repetitions", n)
	}
}

// A request that has used the budget up leaves nothing to the next one, which is asked once.
func TestRequestsShareTheBudget(t *testing.T) {
	s := &session{budget: newBudget()}
	first := tries{session: s, sent: true}
	for first.another() {
	}
	next := tries{session: s}
	if first.repeats != mostRepeats || !next.another() {
		t.Errorf("the first was repeated %d times, and the next one was not asked", first.repeats)
	}
	if next.sent = true; next.another() || next.left() {
		t.Error("the next one was repeated with an empty budget")
	}
	if next.sent = false; !next.another() || !next.left() {
		t.Error("what nobody got may be asked anywhere")
	}
}
