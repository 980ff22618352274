package chaos

import (
	"strings"
	"testing"
	"time"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

const (
	up       = berthv1.NodeState_NODE_STATE_UP
	degraded = berthv1.NodeState_NODE_STATE_DEGRADED
)

func TestANodeWithoutLibvirtIsDegradedGetsNothingAndComesBackByItself(t *testing.T) {
	s := begin(t)
	host := s.lab.Hosts[0]
	s.must(host.StopAgent())
	s.must(host.Stop(lab.Libvirtd))
	s.must(host.StartAgent(t.Context()))
	if node := s.node(host, 20*time.Second, degraded); !strings.Contains(node.GetStateReason(), "libvirt") {
		t.Errorf("the node is degraded, and the reason given is %q", node.GetStateReason())
	}
	if status := s.does("status"); !strings.Contains(status, "node1 is degraded") {
		t.Errorf("the status does not name it:\n%s", status)
	}
	s.refuse(refusal{"placed there", []string{"vm", "start", "there", "--memory", "64M", "--node", "node1"}, 2, []string{"node1", "libvirt"}})
	s.does("vm", "start", "elsewhere", "--memory", "64M")
	if vm, _ := s.show("elsewhere"); vm.GetNode() == host.Name {
		t.Errorf("it was placed on %s", vm.GetNode())
	}
	s.must(host.StartLibvirtd(t.Context()))
	s.node(host, 20*time.Second, up)
	s.firmware("there", host)
	s.runsOnce("there", host)
}

func TestAnOldLibvirtIsReportedWithWhatIsNeeded(t *testing.T) {
	s := begin(t)
	host := s.lab.Hosts[0]
	s.firmware("before", host)
	s.edit(host.Machine, "/etc/berth/agent.yaml", func(text string) string { return text + "minimum_libvirt: 99.0.0\n" })
	s.must(host.StopAgent())
	s.must(host.StartAgent(t.Context()))
	s.node(host, 20*time.Second, degraded, "99.0.0", "upgrade")
	s.refuse(refusal{"placed there", []string{"vm", "start", "there", "--memory", "64M", "--node", "node1"}, 2, []string{"node1", "99.0.0"}})
	s.says(host.Machine, []string{"berth-agent", "doctor"}, 1, "99.0.0", "FAIL")
	if running := s.watch.Running("before"); running != 1 {
		t.Errorf("the guest that was there before is executed %d times", running)
	}
	// Put back by hand, since the file comes back only when the test has ended.
	s.must(host.StopAgent())
}

func TestGuestsDoNotNoticeThatLibvirtdDies(t *testing.T) {
	s := begin(t)
	host := s.lab.Hosts[0]
	before := s.guest("quiet", host)
	s.must(host.Kill(lab.Libvirtd))
	s.node(host, 20*time.Second, degraded)
	s.refuse(refusal{"moved meanwhile", []string{"vm", "migrate", "quiet", "--best"}, 1, []string{"node1", "degraded"}})
	s.must(host.StartLibvirtd(t.Context()))
	s.node(host, 20*time.Second, up)
	s.runsOnce("quiet", host)
	s.sameGuest("quiet", host, before)
	s.stops("quiet")
}

func TestGuestsDoNotNoticeThatTheAgentDies(t *testing.T) {
	s := begin(t)
	host := s.lab.Hosts[0]
	before := s.guest("quiet", host)
	s.must(host.KillAgent())
	s.node(host, 30*time.Second, berthv1.NodeState_NODE_STATE_UNREACHABLE)
	if vm, _ := s.show("quiet"); vm.GetState() != berthv1.VMState_VM_STATE_UNKNOWN || vm.GetNode() != host.Name {
		t.Errorf("silence is not death: the VM is %s on %q", vm.GetState(), vm.GetNode())
	}
	s.refuse(refusal{"started elsewhere", []string{"vm", "start", "quiet"}, 1, []string{`"quiet"`, "node1"}})
	s.must(host.StartAgent(t.Context()))
	s.node(host, 20*time.Second, up)
	s.runsOnce("quiet", host)
	s.sameGuest("quiet", host, before)
	s.stops("quiet")
}
