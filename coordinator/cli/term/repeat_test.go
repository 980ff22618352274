package term

import (
	"testing"
)

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
	s := &Session{budget: newBudget()}
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
