package balance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/policies"
	"berth/coordinator/view"
	"berth/shared/units"
)

var noon = time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)

// site is a cluster to be made a fleet. Names are IDs.
type site struct {
	nodes  []model.Node
	facts  map[string]model.NodeFacts
	vms    []model.VM
	use    map[string]float64 // CPUs at work, by VM; all others are idle
	groups []model.Resource
	held   []model.Reservation
	policy policies.Policy
	Fleet
}

const nodeCPUs = 16

// newSite has nodes of 16 CPUs and 64 GiB that do nothing.
func newSite(nodes ...string) *site {
	s := &site{facts: map[string]model.NodeFacts{}, use: map[string]float64{}}
	for _, name := range nodes {
		one, none := 1.0, units.Bytes(0)
		s.nodes = append(s.nodes, model.Node{
			ID: name, Name: name, Cluster: model.DefaultCluster,
			Settings: model.NodeSettings{CPURatio: &one, Overhead: &none},
		})
		s.facts[name] = model.NodeFacts{
			Liveness: model.Up, Inventory: true, InventoryAt: noon, Memory: 64 * units.GiB, CPUs: nodeCPUs, DomainsKnown: true,
			Telemetry: true, TelemetryAt: noon,
		}
	}
	s.Settings = model.DefaultSettings()
	s.Settings.Balancing = model.Automatic
	s.At = noon
	s.policy = bare()
	return s
}

// bare is the policy that weighs nothing.
func bare() policies.Policy {
	policy := policies.Default()
	policy.Name, policy.Gate, policy.Weighers = "bare", policies.Gate{Kind: policies.GateOff}, nil
	return policy
}

// vm puts a VM of 1 GiB and one vCPU on a node, which has been running for long.
func (s *site) vm(node, name string, changes ...func(*model.VM)) *site {
	vm := model.VM{
		ID: name, Name: name, Holder: node, StartedAt: noon.Add(-time.Hour), Desired: model.Running,
		Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1},
	}
	for _, change := range changes {
		change(&vm)
	}
	s.vms = append(s.vms, vm)
	return s
}

// fill puts so many VMs on a node.
func (s *site) fill(node string, n int) *site {
	for i := range n {
		s.vm(node, fmt.Sprintf("%s-%02d", node, i+1))
	}
	return s
}

func (s *site) node(name string) *model.Node {
	return &s.nodes[slices.IndexFunc(s.nodes, func(n model.Node) bool { return n.ID == name })]
}

func (s *site) change(node string, change func(*model.NodeFacts)) {
	facts := s.facts[node]
	change(&facts)
	s.facts[node] = facts
}

// group declares one: its rules are "+" or "-", with "!" before if they are hard.
func (s *site) group(name, vmsRule string, vms []string, nodesRule string, nodes []string) *model.Resource {
	record := model.Resource{
		ID: name, Name: name, Kind: model.KindGroup, Settings: map[string]string{},
		Members: map[string][]string{
			model.MembersVMs: slices.Sorted(slices.Values(vms)), model.MembersNodes: slices.Sorted(slices.Values(nodes)),
		},
	}
	rule := func(text, polarity, enforcing string) {
		words := map[string]string{"+": string(model.Positive), "-": string(model.Negative), "": string(model.Disabled)}
		if text != "" && text[0] == '!' {
			record.Settings[enforcing], text = "true", text[1:]
		}
		record.Settings[polarity] = words[text]
	}
	rule(vmsRule, model.SettingVMsRule, model.SettingVMsEnforcing)
	rule(nodesRule, model.SettingNodesRule, model.SettingNodesEnforcing)
	s.groups = append(s.groups, record)
	return &s.groups[len(s.groups)-1]
}

// fleet works the site up as it is now.
func (s *site) fleet() *Fleet {
	facts := map[string]model.NodeFacts{}
	for _, node := range s.nodes {
		f := s.facts[node.ID]
		f.Domains = nil
		free, load := f.Memory, 0.0
		for _, vm := range s.vms {
			if vm.Holder == node.ID {
				used := s.use[vm.ID]
				f.Domains = append(f.Domains, model.Domain{
					UUID: vm.ID, Name: vm.Name, State: model.DomainRunning, Memory: vm.Spec.Memory, VCPUs: vm.Spec.VCPUs, Managed: true,
					Since: vm.StartedAt, Resident: &vm.Spec.Memory, CPU: &used,
				})
				free -= vm.Spec.Memory
				load += used
			}
		}
		slices.SortFunc(f.Domains, func(a, b model.Domain) int {
			if a.UUID < b.UUID {
				return -1
			}
			return 1
		})
		f.Available, f.Load1 = &free, &load
		facts[node.ID] = f
	}
	s.View = view.New(s.At, 1, view.Records{Nodes: s.nodes, VMs: s.vms, Reservations: s.held, Groups: s.groups}, facts)
	f := s.Fleet
	f.Cluster, f.Policy, f.Groups, f.VMs = model.DefaultCluster, s.policy, s.View.Groups(model.DefaultCluster), nil
	at := map[string]int{}
	for _, vm := range s.vms {
		if vm.Holder == "" {
			continue
		}
		one := VM{
			ID: vm.ID, Name: vm.Name, Node: vm.Holder, NodeName: vm.Holder, Memory: vm.Spec.Memory, VCPUs: vm.Spec.VCPUs,
			CPU: s.use[vm.ID], CPUKnown: true, Migration: vm.Migration, MovedAt: vm.MovedAt, Busy: vm.Condition.Text,
			Unbalanced: s.node(vm.Holder).Unbalanced,
		}
		for _, g := range f.Groups {
			one.Unbalanced = one.Unbalanced || g.Unbalanced && slices.Contains(g.VMs, vm.ID)
		}
		at[vm.ID] = len(f.VMs)
		f.VMs = append(f.VMs, one)
	}
	slices.SortFunc(f.VMs, func(a, b VM) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	for i := range f.VMs {
		at[f.VMs[i].ID] = i
	}
	f.Ask = func(id string, purpose placement.Purpose) (placement.Request, error) {
		vm := &f.VMs[at[id]]
		return placement.Request{
			Purpose: purpose, VM: vm.ID, VMName: vm.Name, Memory: vm.Memory, VCPUs: vm.VCPUs, Current: vm.Node, Cluster: f.Cluster,
		}, nil
	}
	random := rand.New(rand.NewPCG(1, 1))
	f.Seed = random.Uint64
	if f.History == nil {
		s.History = &History{}
		f.History = s.History
	}
	return &f
}

// carryOut makes moves as if they took no time.
func (s *site) carryOut(moves []model.Move) {
	for _, move := range moves {
		if move.Stays {
			continue
		}
		at := slices.IndexFunc(s.vms, func(vm model.VM) bool { return vm.ID == move.VM })
		s.vms[at].Holder, s.vms[at].MovedAt = move.Target, s.At
	}
}

// told puts moves in words.
func told(moves []model.Move) []string {
	var all []string
	for _, m := range moves {
		one := fmt.Sprintf("%s %s>%s", m.VMName, m.SourceName, m.TargetName)
		if m.Stays {
			one = fmt.Sprintf("%s stays: %s", m.VMName, m.Reason)
		}
		all = append(all, one)
	}
	return all
}

func expect[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s is\n\t%s\nwant\n\t%s", what, g, w)
	}
}
