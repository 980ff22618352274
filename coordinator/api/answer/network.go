package answer

import (
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/schema"
	"berth/coordinator/view"
)

// NetworkWarnings say of each network that a VM is connected to and that no node of its cluster has now that it is so: the VM is kept
// all the same, because nodes may come, or have it later.
func (p *Moment) NetworkWarnings(vm *model.VM) []string {
	var networks []string
	if devices, err := operation.Devices(&vm.Spec, vm.ID); err == nil {
		for i := range devices {
			networks = append(networks, devices[i].Network)
		}
	}
	for _, id := range vm.NICs {
		nic, _ := p.Resource(id)
		network, _ := p.Resource(nic.Links[schema.LinkNetwork])
		networks = append(networks, network.Settings[schema.SettingSource])
	}
	return p.NetworksNowhere(p.ClusterOf(vm), networks...)
}

// NetworksNowhere says of each of some networks that no node has it now, if any node has told what it has. Cluster narrows the nodes to
// those of one; empty: all.
func (p *Moment) NetworksNowhere(cluster string, networks ...string) []string {
	var told []model.NodeFacts
	for _, node := range p.Nodes() {
		if facts := p.Soft.Facts(node.ID, p.At); facts.NetworksKnown && (cluster == "" || node.Cluster == cluster) {
			told = append(told, facts)
		}
	}
	var warnings []string
	slices.Sort(networks)
	for _, network := range slices.Compact(networks) {
		has := func(facts model.NodeFacts) bool { return HasNetwork(&facts, network) }
		if len(told) > 0 && isNetwork(network) && !slices.ContainsFunc(told, has) {
			where := "no node"
			if cluster != "" {
				where += " of cluster " + cluster
			}
			warnings = append(warnings, fmt.Sprintf("%s has %s: %s", where, NetworkText(network), NetworkStep(network)))
		}
	}
	return warnings
}

// isNetwork tells a network from what else a device may be connected to: a disk of Ceph for instance.
func isNetwork(name string) bool {
	return name != "" && (strings.HasPrefix(name, view.BridgePrefix) || !strings.Contains(name, ":"))
}

// HasNetwork tells whether a node that tells its networks has one: an active one of libvirt, or a bridge.
func HasNetwork(facts *model.NodeFacts, network string) bool {
	if bridge, is := strings.CutPrefix(network, view.BridgePrefix); is {
		return slices.Contains(facts.Bridges, bridge)
	}
	return slices.Contains(facts.Networks, network)
}

// NetworkText names what a node lacks.
func NetworkText(network string) string {
	if bridge, is := strings.CutPrefix(network, view.BridgePrefix); is {
		return "a bridge " + bridge
	}
	return "an active network " + network
}

// NetworkStep says how a node comes to have a network.
func NetworkStep(network string) string {
	if bridge, is := strings.CutPrefix(network, view.BridgePrefix); is {
		return "make the bridge " + bridge + " there, or name another one"
	}
	return fmt.Sprintf("define it there and start it with `virsh net-start %s`, or name another one", network)
}
