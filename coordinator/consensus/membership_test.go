package consensus

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
)

func TestAMemberJoinsWithoutAVoteAndIsPromotedWhenItKeepsUp(t *testing.T) {
	ca := newAuthority(t, "c1")
	all := newTeam(t, ca, 1)
	leader := all.leader()
	for i := range 20 {
		leader.mustPropose(enrol("n" + string(rune('a'+i))))
	}
	late := newPeer(t, ca, "m2")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	// Added before it is there: it must not vote, or nothing could be decided.
	if err := leader.AddNonvoter(ctx, "m2", late.cfg.Advertise); err != nil {
		t.Fatal(err)
	}
	short, stop := context.WithTimeout(ctx, 3*leader.cfg.Stability)
	defer stop()
	if err := leader.Promote(short, "m2"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("promoted a member that is not there: %v", err)
	}
	leader.mustPropose(enrol("decided-alone"))
	want := []Server{{ID: "m1", Address: leader.cfg.Advertise, Voter: true}, {ID: "m2", Address: late.cfg.Advertise}}
	if diff := cmp.Diff(want, leader.Configuration()); diff != "" {
		t.Error(diff)
	}

	late.start()
	if late.Joined() {
		t.Error("joined before it knows of it")
	}
	if err := leader.Promote(ctx, "m2"); err != nil {
		t.Fatal(err)
	}
	want[1].Voter = true
	if diff := cmp.Diff(want, leader.Configuration()); diff != "" {
		t.Error(diff)
	}
	eventually(t, "it knows that it joined", late.Joined)
	append(all, late).agree()
	if stats := leader.Stats(); !stats.Members["m2"].Reachable || stats.Members["m2"].LastIndex == 0 || stats.State != "leader" {
		t.Errorf("the leader sees %+v", stats)
	}
	if stats := late.Stats(); stats.Members != nil || stats.Leader != "m1" || stats.State != "follower" {
		t.Errorf("the follower sees %+v", stats)
	}
}

func TestAMemberChangesItsAddress(t *testing.T) {
	ca := newAuthority(t, "c1")
	all := newTeam(t, ca, 3)
	leader := all.leader()
	var moved *peer
	for _, p := range all {
		if p != leader {
			moved = p
		}
	}
	moved.kill()
	elsewhere := newPeer(t, ca, moved.cfg.MemberID)
	moved.cfg.Bind, moved.cfg.Advertise = elsewhere.cfg.Bind, elsewhere.cfg.Advertise
	moved.start()
	if err := leader.AddNonvoter(t.Context(), moved.cfg.MemberID, moved.cfg.Advertise); err != nil {
		t.Fatal(err)
	}
	all.agree()
	if s, _ := leader.server(moved.cfg.MemberID); string(s.Address) != moved.cfg.Advertise {
		t.Errorf("its address is %s", s.Address)
	}
}

func TestMembersAreNotRemovedBelowAQuorum(t *testing.T) {
	all := newTeam(t, newAuthority(t, "c1"), 3)
	leader := all.leader()
	others := team{}
	for _, p := range all {
		if p != leader {
			others = append(others, p)
		}
	}
	if err := leader.Remove(t.Context(), "m9"); !errors.Is(err, ErrNoMember) {
		t.Errorf("removed a stranger: %v", err)
	}
	if err := others[0].Remove(t.Context(), leader.cfg.MemberID); !errors.Is(err, ErrNotLeader) {
		t.Errorf("removed by a follower: %v", err)
	}
	others[1].kill()
	eventually(t, "its silence is noticed", func() bool { return !leader.Stats().Members[others[1].cfg.MemberID].Reachable })
	// Without this one, the other of the two that would be left is dead.
	if err := leader.Remove(t.Context(), others[0].cfg.MemberID); !errors.Is(err, ErrQuorum) {
		t.Errorf("removed the last one that answers: %v", err)
	}
	if err := leader.Remove(t.Context(), others[1].cfg.MemberID); err != nil {
		t.Errorf("the dead one could not be removed: %v", err)
	}
	if err := leader.Remove(t.Context(), others[0].cfg.MemberID); err != nil {
		t.Errorf("the second could not be removed: %v", err)
	}
	if err := leader.Remove(t.Context(), leader.cfg.MemberID); !errors.Is(err, ErrQuorum) {
		t.Errorf("removed the last one: %v", err)
	}
	leader.mustPropose(enrol("still-here"))
}

func TestALeaderMayRemoveItself(t *testing.T) {
	all := newTeam(t, newAuthority(t, "c1"), 3)
	leader := all.leader()
	if err := leader.Remove(t.Context(), leader.cfg.MemberID); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it stops leading", func() bool { return !leader.IsLeader() })
	rest := team{}
	for _, p := range all {
		if p != leader {
			rest = append(rest, p)
		}
	}
	rest.leader().mustPropose(enrol("n1"))
}

// A member that was away while another one joined has to listen to that one when it leads.
func TestAMemberThatWasAwayFollowsALeaderThatItNeverMet(t *testing.T) {
	ca := newAuthority(t, "c1")
	all := newTeam(t, ca, 3)
	all.leader()
	away := all[2]
	if away == all.leader() {
		if err := away.Transfer(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "another leader", func() bool { return !away.IsLeader() && all[:2].leader() != nil })
	}
	away.kill()
	fresh := newPeer(t, ca, "m4")
	fresh.start()
	present := append(team{}, all[0], all[1], fresh)
	present[:2].join(fresh)
	to := raft.ServerAddress(fresh.cfg.Advertise)
	if err := present.leader().raft.Load().LeadershipTransferToServer("m4", to).Error(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new one leads", func() bool { return fresh.IsLeader() && fresh.VerifyRead(t.Context()) == nil })
	fresh.mustPropose(enrol("n1"))
	away.start()
	append(present, away).agree()
}
