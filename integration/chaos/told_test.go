package chaos

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"berth/coordinator/operation"
	berthv1 "berth/shared/gen/berth/v1"
)

// Somebody moves a guest with virsh: it is where it is for that reason, and no decision is given the credit.
func TestAGuestThatWasMovedWithVirshIsExplainedByThat(t *testing.T) {
	s := byHand(t)
	here, there := s.lab.Hosts[0], s.lab.Hosts[1]
	s.guest("shifted", here)
	s.answers([]string{"vm", "why", "shifted"}, 0, "shifted was placed on "+here.Name+" by decision", " ago): ")
	s.virsh(here, "migrate", "--live", "--p2p", "--tls", "shifted", "qemu+tls://"+there.Name+"/system")
	s.within(lookLimit, "it is followed", func() error {
		if vm, _ := s.show("shifted"); vm.GetNode() != there.Name {
			return fmt.Errorf("it is on %q: %s", vm.GetNode(), vm.GetCondition())
		}
		return nil
	})
	s.answers([]string{"vm", "why", "shifted"}, 0, "shifted runs on "+there.Name+" because somebody has moved it there from "+here.Name+
		" beside Berth, which followed it (seen ", "before that, decision ", " had placed it on "+here.Name)
	s.does("group", "add", "away", "--vm", "shifted", "--node", there.Name+","+here.Name, "--nodes-rule", "positive", "--nodes-enforcing")
	other := s.lab.Hosts[2].Name
	s.answers([]string{"vm", "why-not", "shifted", "--node", other}, 0, "away", "as of ")
	s.does("group", "delete", "away", "--yes")
}

// A host is cut off, and somebody wants a guest of it stopped. Nobody stops it when the host is back, unless that was what was wanted.
func TestAStopOfACutOffGuestIsNotCarriedOutLater(t *testing.T) {
	s := byHand(t)
	host := s.lab.Hosts[0]
	before := s.guest("held", host)
	s.must(host.CutLink(s.Context()))
	s.node(host, 2*time.Minute, berthv1.NodeState_NODE_STATE_UNREACHABLE)
	s.answers([]string{"vm", "stop", "held"}, 1, "node "+host.Name+`, which runs VM "held", is unreachable`, "cannot be asked to stop now",
		"berth vm stop held --when-back")
	if said := s.does("vm", "stop", "held", "--when-back"); !strings.Contains(said, "waits until it is back") {
		t.Errorf("a stop that waits says %q", said)
	}
	_, op := s.show("held")
	s.does("operation", "cancel", op.GetId())
	s.answers([]string{"operation", "show", op.GetId()}, 0, "the guest was not asked")
	s.must(host.RestoreLink(s.Context()))
	s.node(host, time.Minute, berthv1.NodeState_NODE_STATE_UP)
	time.Sleep(operation.AwaitPatience)
	s.runsOnce("held", host)
	s.sameGuest("held", host, before)
}

// The same in the seconds before anybody knows that the host is cut off: the order goes out, and nobody has it. When the host is back it
// is not carried out.
func TestAStopThatACutOffNodeMayHaveIsTakenBack(t *testing.T) {
	s := byHand(t)
	host := s.lab.Hosts[0]
	before := s.guest("unasked", host)
	s.must(host.CutLink(s.Context()))
	s.does("vm", "stop", "unasked", "--no-wait")
	_, op := s.show("unasked")
	if op.GetId() == "" || op.GetPhase() != string(operation.Dispatched) {
		t.Fatalf("the stop should have gone out: %v", op)
	}
	s.within(2*operation.AwaitPatience, "it is given up", func() error {
		if _, op := s.show("unasked"); !strings.Contains(op.GetMessage(), "unless the guest was asked before, it is not asked any more") {
			return fmt.Errorf("it says %q", op.GetMessage())
		}
		return nil
	})
	s.must(host.RestoreLink(s.Context()))
	s.node(host, time.Minute, berthv1.NodeState_NODE_STATE_UP)
	s.ended("unasked", time.Minute)
	s.answers([]string{"operation", "show", op.GetId()}, 0, "it is taken back, and the guest was not asked")
	s.runsOnce("unasked", host)
	s.sameGuest("unasked", host, before)
}
