package consensus

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"berth/coordinator/state"
)

// odd is the state of a member that applies one command in another way than the others do. It catches the end of the
// process, which would be that of the test.
type odd struct {
	raft.FSM
	at string // key of the command

	mu  sync.Mutex
	end string
}

func (o *odd) Apply(entry *raft.Log) (result any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.end != "" {
		return nil
	}
	defer func() {
		if reason := recover(); reason != nil {
			o.end = fmt.Sprint(reason)
		}
	}()
	commands, err := state.DecodeEntry(entry.Data)
	if err == nil && commands[0].Key == o.at {
		commands[0].Nodes[0].Maintenance = true
		changed := *entry
		if changed.Data, err = commands[0].Encode(); err == nil {
			entry = &changed
		}
	}
	return o.FSM.Apply(entry)
}

func (o *odd) ended() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.end
}

// part restarts a member with a state that parts from the others' at a command.
func (p *peer) part(at string) *odd {
	p.t.Helper()
	p.kill()
	o := &odd{at: at}
	p.cfg.seams.fsm = func(below raft.FSM) raft.FSM { o.FSM = below; return o }
	p.start()
	return o
}

// tell has everybody report to the leader, once.
func (all team) tell(leader *peer) {
	for _, p := range all.running() {
		leader.Heard(p.cfg.MemberID, p.Report())
	}
}

func (all team) others(leader *peer) team {
	var others team
	for _, p := range all {
		if p != leader {
			others = append(others, p)
		}
	}
	return others
}

func TestTheMemberWhoseStateHasPartedStops(t *testing.T) {
	all := newTeam(t, newAuthority(t, "c1"), 3)
	leader := all.leader()
	followers := all.others(leader)
	wrong := followers[0].part("enrol-parting")
	leader.mustPropose(enrol("parting"))
	eventually(t, "it stops", func() bool {
		all.tell(leader)
		return wrong.ended() != ""
	})
	if !strings.Contains(wrong.ended(), "has parted from that of the others") || !strings.Contains(wrong.ended(), "berth coordinator delete") {
		t.Errorf("it ended with %q", wrong.ended())
	}
	if seen := leader.Stats().Members[followers[0].cfg.MemberID]; !seen.Parted || seen.Trouble != "has another state than the leader" {
		t.Errorf("the leader sees %+v", seen)
	}
	leader.mustPropose(enrol("later"))
	for _, p := range []*peer{leader, followers[1]} {
		if died := p.died(); len(died) > 0 {
			t.Errorf("%s ended too: %v", p.cfg.MemberID, died)
		}
	}
}

func TestALeaderThatIsTheOddOneStopsItselfAndNobodyElse(t *testing.T) {
	all := newTeam(t, newAuthority(t, "c1"), 3)
	wrong := all.others(all.leader())[0]
	state := wrong.part("enrol-parting")
	all.leader().mustPropose(enrol("parting"))
	eventually(t, "it leads", func() bool {
		if leader := all.leader(); leader != wrong {
			_ = leader.Transfer(t.Context()) // to either of two
		}
		return all.leader() == wrong
	})
	eventually(t, "it stops", func() bool {
		all.tell(wrong)
		return len(wrong.died()) > 0
	})
	if died := wrong.died()[0].Error(); !strings.Contains(died, "most others have another state") {
		t.Errorf("it ended with %q", died)
	}
	for _, p := range all.others(wrong) {
		if died := p.died(); len(died) > 0 {
			t.Errorf("%s, which is right, ended: %v", p.cfg.MemberID, died)
		}
	}
	if state.ended() != "" {
		t.Errorf("a check was proposed that it did not pass itself: %s", state.ended())
	}
}

func TestOfTwoThatHavePartedNeitherStops(t *testing.T) {
	all := newTeam(t, newAuthority(t, "c1"), 2)
	leader := all.leader()
	other := all.others(leader)[0]
	state := other.part("enrol-parting")
	leader.mustPropose(enrol("parting"))
	eventually(t, "the leader knows", func() bool {
		all.tell(leader)
		return leader.Stats().Members[other.cfg.MemberID].Parted
	})
	if v := leader.judge(); !v.undecided || v.outvoted || v.agreed != 0 {
		t.Errorf("it concludes %+v", v)
	}
	time.Sleep(5 * leadEvery) // nothing is to happen: the leader looks this often
	if len(leader.died()) > 0 || state.ended() != "" {
		t.Errorf("the leader ended: %v; the other: %q", leader.died(), state.ended())
	}
}

func TestStatesAreComparedByTheLogEveryThousandEntries(t *testing.T) {
	all := newTeam(t, newAuthority(t, "c1"), 1)
	leader := all.leader()
	checks := func() int {
		found := 0
		last, err := leader.logs.LastIndex()
		if err != nil {
			t.Fatal(err)
		}
		for index := uint64(1); index <= last; index++ {
			var entry raft.Log
			if err := leader.logs.GetLog(index, &entry); err != nil {
				t.Fatal(err)
			}
			if entry.Type != raft.LogCommand {
				continue
			}
			commands, err := state.DecodeEntry(entry.Data)
			if err != nil {
				t.Fatal(err)
			}
			for _, command := range commands {
				if command.Check == nil {
					continue
				}
				found++
				if hash, known := leader.store.HashAt(command.Check.Index); !known || hash != command.Check.Hash {
					t.Errorf("the check at %d has hash %s of entry %d, it was %s", index, command.Check.Hash, command.Check.Index, hash)
				}
			}
		}
		return found
	}
	entries := 0
	propose := func(count int) { // each in an entry of its own
		for range count {
			entries++
			leader.mustPropose(state.Command{
				Key: fmt.Sprint(entries), Kind: "note", Caller: "test", At: time.Now(), Meta: map[string]string{"note": fmt.Sprint(entries)},
			})
		}
	}
	propose(checkEvery)
	eventually(t, "a check", func() bool {
		if checks() > 0 {
			return true
		}
		propose(10) // it counts from the entry that it found when it first looked
		return false
	})
	if found := checks(); found != 1 || entries > 2*checkEvery {
		t.Errorf("%d checks for %d entries", found, entries)
	}
}

func TestTheFeatureLevelRisesWhenAllHaveTold(t *testing.T) {
	all := newTeam(t, newAuthority(t, "c1"), 1)
	leader := all.leader()
	level := func() uint32 { return leader.store.Snapshot().FeatureLevel() }
	eventually(t, "a member alone has told", func() bool { return level() == state.FeatureLevel })

	old := newPeer(t, &authority{id: "c1", Authority: newAuthority(t, "c1").Authority}, "m2")
	if err := leader.AddNonvoter(t.Context(), "m2", old.cfg.Advertise); err != nil {
		t.Fatal(err)
	}
	// As it would be if the other one had been there from the start.
	leader.mustPropose(state.Command{
		Key: "back", Kind: "test", Caller: "test", At: time.Now(), Meta: map[string]string{state.MetaFeatureLevel: "1"},
	})
	stays := func(why string) {
		t.Helper()
		time.Sleep(3 * leadEvery) // nothing is to happen: the leader looks this often
		if level() != 1 {
			t.Errorf("%s, and the level is %d", why, level())
		}
	}
	stays("one has not told anything")
	leader.Heard("m2", Report{Version: "0.5", FeatureLevel: 1})
	stays("one cannot apply more than level 1")
	if seen := leader.Stats().Members["m2"]; seen.Report == nil || seen.Report.Version != "0.5" {
		t.Errorf("the leader sees %+v", seen)
	}
	leader.Heard("m2", Report{Version: "0.6", FeatureLevel: state.FeatureLevel + 1})
	eventually(t, "all have told", func() bool { return level() == state.FeatureLevel })
}
