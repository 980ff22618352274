package consensus

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/state"
)

// Commands that are proposed together share an entry, and what is wrong with one is its own affair.
func TestCommandsThatAreProposedTogetherShareAnEntry(t *testing.T) {
	all := newTunedTeam(t, newAuthority(t, "c1"), 3, calm)
	leader := all.leader()
	leader.mustPropose(enrol("n0"))
	// The first member may have raised the level while it was alone. The others tell nothing here, so it stays down.
	leader.mustPropose(state.Command{
		Key: "back", Kind: "test", Caller: "test", At: time.Now(), Meta: map[string]string{state.MetaFeatureLevel: "1"},
	})
	before := leader.Stats().LastIndex
	for i, answer := range leader.ProposeTogether(t.Context(), []state.Command{enrol("a"), enrol("b")}) {
		if answer.Err != nil || answer.Result.Index != before+1+uint64(i) {
			t.Fatalf("command %d, while a member may not know entries with several: %+v, want it in entry %d", i+1, answer, before+1+uint64(i))
		}
	}
	described := state.Command{
		Key: "described", Kind: "test", Caller: "test", At: time.Now(), Expect: []state.Expectation{{Table: state.VMs, ID: "v1"}},
		VMs: []model.VM{{ID: "v1", Name: "web", Desired: model.Stopped, Description: "front"}},
	}
	if _, err := leader.Propose(t.Context(), described); !errors.Is(err, state.ErrNotYet) {
		t.Errorf("what a member may not know yet: %v", err)
	}
	raise := state.RaiseLevel(state.GroupLevel)
	raise.Key, raise.At = "raise", time.Now()
	before = leader.mustPropose(raise).Index

	commands := make([]state.Command, 0, 53)
	for i := range 50 {
		commands = append(commands, enrol(fmt.Sprintf("n%d", i+1)))
	}
	refused, large := enrol("n0"), enrol("large")
	refused.Key = "again"
	large.Events = []model.Event{{Message: strings.Repeat("x", state.MaxCommand)}}
	commands = append(commands, refused, large, enrol("n51"))
	answers := leader.ProposeTogether(t.Context(), commands)
	for i, answer := range answers {
		switch {
		case i == 50 && (answer.Err != nil || answer.Result.Refusal == nil || answer.Result.Refusal.Code != state.Stale):
			t.Errorf("the refused one: %+v", answer)
		case i == 51 && !errors.Is(answer.Err, ErrTooLarge):
			t.Errorf("the large one: %v", answer.Err)
		case i < 50 && (answer.Err != nil || answer.Result.Refusal != nil || answer.Result.Index != before+1):
			t.Errorf("command %d: %+v, want it in entry %d", i+1, answer, before+1)
		}
	}
	if got := leader.Stats().LastIndex; got != before+1 {
		t.Errorf("it took entries %d to %d", before+1, got)
	}
	all.agree()
}

// What comes one by one while the disk is at work waits for it together, and nobody's answer is lost.
func TestEveryProposalOfACrowdIsAnswered(t *testing.T) {
	all := newTeam(t, newAuthority(t, "c1"), 1)
	leader := all.leader()
	raise := state.RaiseLevel(state.GroupLevel)
	raise.Key, raise.At = "raise", time.Now()
	leader.mustPropose(raise)
	var crowd sync.WaitGroup
	for i := range 400 { // more than there are slots
		crowd.Go(func() {
			result, err := leader.Propose(t.Context(), enrol(fmt.Sprintf("n%d", i)))
			if err != nil || result.Refusal != nil {
				t.Errorf("proposal %d: %+v (%v)", i, result, err)
			}
		})
	}
	crowd.Wait()
	if got := len(leader.store.Snapshot().Nodes()); got != 400 {
		t.Errorf("%d of 400 nodes are stored", got)
	}
	eventually(t, "nothing is under way", func() bool {
		leader.outgoing.mu.Lock()
		defer leader.outgoing.mu.Unlock()
		return len(leader.slots) == 0 && leader.outgoing.senders == 0 && len(leader.outgoing.waiting) == 0
	})
}

func TestAnEntryHasItsLimits(t *testing.T) {
	var o outgoing
	crowd := func(n, size int) {
		for range n {
			o.waiting = append(o.waiting, &proposal{data: make([]byte, size)})
		}
	}
	crowd(300, 10)
	crowd(2, state.MaxGroup) // too large for company
	crowd(3, state.MaxGroup/2)
	o.senders = 1
	var took []int
	for group := o.take(groupMost); group != nil; group = o.take(groupMost) {
		took = append(took, len(group))
	}
	if fmt.Sprint(took) != "[256 44 1 1 1 1 1]" || o.senders != 0 {
		t.Errorf("the entries hold %v commands, and %d senders are left", took, o.senders)
	}
}
