package lastknown

import (
	"cmp"
	"slices"
	"time"

	"berth/coordinator/inventory"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/coordinator/view"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
)

// soft are the soft facts as they were heard last, in the shape in which a leader has them. What nodes measure is not among them.
type soft struct {
	snapshot *state.Snapshot
	facts    map[string]model.NodeFacts
	view     *view.View
}

// newSoft joins what was heard with the records. Nil: nothing was heard, and a VM is as its record says. The leader knew the nodes of told
// then; nil: which ones is not known.
func newSoft(snapshot *state.Snapshot, heard *berthv1.Heard, told *state.Snapshot, at time.Time) *soft {
	s := &soft{snapshot: snapshot, facts: make(map[string]model.NodeFacts)}
	said := make(map[string]*berthv1.HeardNode)
	for _, node := range heard.GetNodes() {
		said[node.GetId()] = node
	}
	strange := make(map[string]*berthv1.HeardVM)
	for _, vm := range heard.GetVms() {
		strange[vm.GetId()] = vm
	}
	records := view.Records{
		Clusters: snapshot.Clusters(), Nodes: snapshot.Nodes(), Reservations: snapshot.Reservations(), Groups: snapshot.Groups(),
	}
	for i := range records.Nodes {
		id := records.Nodes[i].ID
		facts := model.NodeFacts{Inventory: true, DomainsKnown: true} // without anything heard a VM is as its record says
		if node, odd := said[id]; odd {
			facts.Liveness, facts.LivenessReason, facts.Ailing = wire.LivenessOf(node.GetState()), node.GetReason(), node.GetAiling()
			facts.DomainsKnown = node.GetDomainsKnown()
		} else if heard != nil {
			if facts.DomainsKnown = told != nil && told.HasNode(id); facts.DomainsKnown {
				facts.Liveness = model.Up
			}
		}
		if facts.DomainsKnown {
			facts.Domains = domains(snapshot, id, strange)
		}
		s.facts[id] = facts
	}
	s.view = view.Over(at, snapshot.Index(), records, inventory.VMsOf(snapshot), s.facts)
	return s
}

// domains are those of the VMs that a node holds, by UUID: each runs, but for those of which something else was heard.
func domains(snapshot *state.Snapshot, node string, strange map[string]*berthv1.HeardVM) []model.Domain {
	var all []model.Domain
	for vm := range snapshot.SharedVMsOn(node) {
		domain := model.Domain{UUID: vm.ID, Name: vm.Name, State: model.DomainRunning, Managed: true, Epoch: vm.Epoch}
		if other, is := strange[vm.ID]; is {
			domain.State, domain.Reason = inventory.StateOf(other.GetState()), other.GetStateReason()
		}
		if domain.State == model.DomainAbsent {
			continue
		}
		size := vm.SizeOn(nil)
		domain.Memory, domain.VCPUs = size.Memory, size.VCPUs
		all = append(all, domain)
	}
	slices.SortFunc(all, func(a, b model.Domain) int { return cmp.Compare(a.UUID, b.UUID) })
	return all
}

func (s *soft) View(*state.Snapshot, time.Time) *view.View { return s.view }

func (s *soft) Facts(node string, _ time.Time) model.NodeFacts { return s.facts[node] }

func (s *soft) SameHosts() map[string][]string { return nil }

func (s *soft) Inventory(string) *berthv1.NodeInventory { return nil }

func (s *soft) Telemetry(string) *berthv1.NodeTelemetry { return nil }

func (s *soft) Domains(string) []*berthv1.Domain { return nil }

func (s *soft) MayShow(string) []string { return nil }

func (s *soft) Progress(string) *berthv1.MigrationStats { return nil }

// Subscribe gives a subscription that nothing is told to.
func (s *soft) Subscribe() *inventory.Subscription { return new(inventory.Store).Subscribe() }
