package state

import (
	"slices"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state/naming"
)

// verify checks the invariants that apply keeps, over the whole of a state that came from elsewhere.
func (x *Snapshot) verify() error {
	resources := list(x.tables, string(Resources), byID, "", cloneResource)
	for _, name := range []struct {
		table Table
		twice string
	}{
		{Nodes, twice(x.Nodes(), func(n model.Node) string { return n.Name })},
		{VMs, twice(x.VMs(), func(v model.VM) string { return v.Name })},
		{Members, twice(x.Members(), func(m model.Member) string { return m.Name })},
		{Resources, twice(resources, func(r model.Resource) string { return naming.OfResource(r.Kind, r.Name) })},
	} {
		if name.twice != "" {
			return refuse("two records of section %q are named %q", name.table, name.twice)
		}
	}
	if err := x.verifyLinks(resources); err != nil {
		return err
	}
	if err := x.verifyMembers(resources); err != nil {
		return err
	}
	live := x.LiveOperations()
	if vm := twice(live, func(o operation.Operation) string { return o.VM }); vm != "" {
		return refuse("two operations work on VM %q", vm)
	}
	for _, op := range live {
		if _, exists := x.VM(op.VM); !exists {
			return refuse("operation %q works on VM %q, which does not exist", op.ID, op.VM)
		}
	}
	counted := x.applied
	counted.Decisions = x.count(string(Decisions))
	counted.Events = x.count(tableEvents)
	counted.Ended = x.count(string(Operations)) - len(live)
	counted.Keys = x.count(tableKeys)
	counted.Epochs = x.count(tableEpochs)
	counted.Plans = x.count(string(Plans)) - len(x.LivePlans())
	counted.Revoked = 0
	for identity := range each[model.Identity](x.tables, string(Identities), byEnded, "") {
		if !identity.Live() {
			counted.Revoked++
		}
	}
	if got, want := counted.counts(), x.applied.counts(); got != want {
		return refuse("it counts its history as %v, the records are %v", want, got)
	}
	return nil
}

func (x *Snapshot) verifyLinks(resources []model.Resource) error {
	known, clusters := make(map[string]bool), map[string]bool{"": true, model.DefaultCluster: true}
	for i := range resources {
		known[resources[i].ID] = true
		if resources[i].Kind == model.KindCluster {
			clusters[resources[i].Name] = true
		}
	}
	lost := func(links []string) string {
		at := slices.IndexFunc(links, func(link string) bool { return !naming.ImpliedLink(link) && !known[link] })
		if at < 0 {
			return ""
		}
		return links[at]
	}
	for i := range resources {
		if link := lost(naming.LinksOf(&resources[i])); link != "" {
			return refuse("%s %q names resource %q, which does not exist", resources[i].Kind, resources[i].Name, link)
		}
	}
	holders := make(map[string]string)
	for _, vm := range x.VMs() {
		if link := lost(naming.LinksOfVM(&vm)); link != "" {
			return refuse("VM %q names resource %q, which does not exist", vm.Name, link)
		}
		for _, part := range naming.PartsOfVM(&vm) {
			if other, taken := holders[part]; taken && other != vm.Name {
				return refuse("VMs %q and %q both have resource %q", other, vm.Name, part)
			}
			holders[part] = vm.Name
		}
	}
	for _, node := range x.Nodes() {
		if !clusters[node.Cluster] {
			return refuse("node %q is in cluster %q, which does not exist", node.Name, node.Cluster)
		}
	}
	return nil
}

func (x *Snapshot) verifyMembers(resources []model.Resource) error {
	there := func(id string) bool {
		_, vm := x.VM(id)
		_, node := x.Node(id)
		return vm || node
	}
	for i := range resources {
		for _, member := range naming.MembersOf(&resources[i]) {
			if !there(member) {
				return refuse("%s %q has the member %q, which does not exist", resources[i].Kind, resources[i].Name, member)
			}
		}
	}
	for i := range resources {
		for _, node := range naming.VolumeNodes(&resources[i]) {
			if _, exists := x.Node(node); !exists {
				return refuse("%s %q has its volume on node %q, which does not exist", resources[i].Kind, resources[i].Name, node)
			}
		}
	}
	for _, vm := range x.VMs() {
		for _, node := range vm.Preferred {
			if _, exists := x.Node(node); !exists {
				return refuse("VM %q prefers node %q, which does not exist", vm.Name, node)
			}
		}
	}
	return nil
}

func (a *appliedRow) counts() [7]int {
	return [7]int{a.Decisions, a.Events, a.Ended, a.Keys, a.Epochs, a.Plans, a.Revoked}
}

// twice is a text that two of the values give; empty if there is none.
func twice[T any](values []T, of func(T) string) string {
	seen := make(map[string]bool, len(values))
	for _, value := range values {
		key := of(value)
		if seen[key] {
			return key
		}
		seen[key] = true
	}
	return ""
}
