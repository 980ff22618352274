package api

import (
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/coordinator/evidence"
	"berth/coordinator/inventory"
	"berth/coordinator/model"
	"berth/coordinator/view"
	berthv1 "berth/shared/gen/berth/v1"
)

// FAULTS.md, W37. While the agent of a node and its libvirt are away together, and while one of them is back and the other is not, a VM of
// that node is neither lost nor started elsewhere, and what is told of it names what is missing. A new leader tells the same.
func TestWhatIsMissingIsNamedWhileAgentAndLibvirtAreAway(t *testing.T) {
	const id = "v1"
	m := newCloud(t, 1).members[0]
	m.addNode("n1", "hv1")
	for _, agentFirst := range []bool{true, false} {
		for _, newLeader := range []bool{true, false} {
			now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
			s := inventory.New(func() time.Time { return now }, hclog.NewNullLogger())
			vm := model.VM{
				ID: id, Name: "web", Desired: model.Running, Holder: "n1", LastNode: "n1", Epoch: 3, HA: true, StartedAt: now.Add(-time.Hour),
			}
			if _, known := m.store.Snapshot().VM(id); !known {
				m.addVM(vm)
			}
			var session *inventory.Session
			var sequence uint64
			report := func(message *berthv1.SessionRequest) {
				sequence++
				message.Sequence = sequence
				session.Report(message)
			}
			agent := func(incarnation string) {
				t.Helper()
				var err error
				sequence = 1
				session, err = s.OpenSession("n1", &berthv1.Hello{NodeId: "n1", Incarnation: incarnation}, sequence)
				if err != nil {
					t.Fatal(err)
				}
			}
			libvirt := func(says string) {
				report(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Libvirt{Libvirt: &berthv1.LibvirtStatus{
					Connected: says == "", Error: says,
				}}})
				report(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Telemetry{Telemetry: &berthv1.NodeTelemetry{}}})
				if says != "" {
					return
				}
				report(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Inventory{Inventory: &berthv1.InventoryReport{
					Node: &berthv1.NodeInventory{MemoryBytes: 8 << 30, Cpus: 4},
					Domains: []*berthv1.Domain{{
						Uuid: id, Name: "web", State: berthv1.DomainState_DOMAIN_STATE_RUNNING, MemoryBytes: 1 << 30, Vcpus: 1, Managed: true, Epoch: 3,
					}},
				}}})
			}
			step := func(what string, state berthv1.VMState, names ...string) {
				t.Helper()
				facts := s.Facts("n1", now)
				node := &view.NodeView{Node: model.Node{ID: "n1", Name: "hv1"}, Facts: facts}
				is, condition := settledState(vmObservation{VM: vm, Holder: node})
				if is != state {
					t.Errorf("agent first %t, new leader %t, %s: it is %v (%s)", agentFirst, newLeader, what, is, condition.Text)
				}
				for _, name := range names {
					if !strings.Contains(condition.Text, name) {
						t.Errorf("agent first %t, new leader %t, %s: it says %q, without %q", agentFirst, newLeader, what, condition.Text, name)
					}
				}
				moment := evidence.Moment{
					Records: m.store.Snapshot(), At: now, Facts: func(string) model.NodeFacts { return facts },
				}
				survey := evidence.Proofs{}.Survey(moment)
				if answer := survey.Start(&vm, ""); answer.May {
					t.Errorf("agent first %t, new leader %t, %s: it may be started: %s", agentFirst, newLeader, what, answer.Proof)
				}
				var follower evidence.Follower
				_, all := follower.Look(survey, evidence.Touched{All: true})
				for _, found := range all {
					if found.Verdict != evidence.Undecided || found.Missing {
						t.Errorf("agent first %t, new leader %t, %s: it counts as %s, missing %t", agentFirst, newLeader, what, found.Verdict, found.Missing)
					}
				}
			}

			agent("boot-1/1")
			libvirt("")
			step("both are there", berthv1.VMState_VM_STATE_RUNNING)
			session.Close("the connection was reset")
			now = now.Add(2 * time.Minute)
			step("both are away", berthv1.VMState_VM_STATE_UNKNOWN, "hv1 is unreachable", "no session for 2m0s", "the connection was reset")
			if newLeader {
				s = inventory.New(func() time.Time { return now }, hclog.NewNullLogger())
				now = now.Add(2 * time.Minute)
				step("a new leader has heard nothing", berthv1.VMState_VM_STATE_UNKNOWN, "hv1 is unreachable", "not heard")
			}
			if agentFirst {
				agent("boot-1/2")
				libvirt("no socket")
				step("the agent is back", berthv1.VMState_VM_STATE_UNKNOWN, "hv1 is degraded", "libvirt cannot be used: no socket")
				now = now.Add(time.Minute)
				libvirt("no socket")
				step("for a minute", berthv1.VMState_VM_STATE_UNKNOWN, "libvirt cannot be used: no socket")
			} else { // nobody tells of the libvirt that is back
				now = now.Add(time.Minute)
				step("libvirt is back", berthv1.VMState_VM_STATE_UNKNOWN, "hv1 is unreachable")
				agent("boot-1/2")
			}
			libvirt("")
			step("both are back", berthv1.VMState_VM_STATE_RUNNING)
		}
	}
}
