package answer

import (
	"fmt"
	"slices"

	"berth/coordinator/admission"
	"berth/coordinator/api/refusal"
	"berth/coordinator/model"
	"berth/shared/domxml/guard"
	"berth/shared/rpc"
	"berth/shared/units"
)

// Permitted is what may be put onto the hosts of a cluster; empty: of every one.
func (p *Moment) Permitted(cluster string) guard.Permitted {
	return admission.Permitted(p.Snapshot, func(node string) model.NodeFacts { return p.Soft.Facts(node, p.At) }, cluster)
}

// AdmitVM refuses a VM whose description puts something onto a host that its cluster does not permit. Before is how it was described; nil:
// it is new. What it had then was let through, or binds it to its node.
func (p *Moment) AdmitVM(vm *model.VM, before *model.VMSpec) error {
	cluster := p.ClusterOf(vm)
	permitted := p.Permitted(cluster)
	found, err := admission.Spec(&vm.Spec, permitted)
	if err != nil {
		return refusal.Invalid("vm/"+vm.Name, "mend the document", err)
	}
	if before != nil && len(found) > 0 {
		old, err := admission.Spec(before, permitted)
		if err == nil {
			found = admission.New(old, found)
		}
	}
	return p.Unpermitted("vm/"+vm.Name, cluster, found)
}

// AdmitResource refuses a declaration of something on the hosts that not all clusters permit.
func (p *Moment) AdmitResource(before, after *model.Resource) error {
	permitted := p.Permitted("")
	found := admission.Resource(after, permitted)
	if before != nil {
		found = admission.New(admission.Resource(before, permitted), found)
	}
	return p.Unpermitted(string(after.Kind)+"/"+after.Name, "", found)
}

// AdmitDevice refuses a device that is attached to a VM, or put into a drive of it.
func (p *Moment) AdmitDevice(vm *model.VM, element string) error {
	cluster := p.ClusterOf(vm)
	found, err := admission.Device(element, nil, p.Permitted(cluster))
	if err != nil {
		return refusal.Invalid("vm/"+vm.Name, "name it otherwise", err)
	}
	return p.Unpermitted("vm/"+vm.Name, cluster, found)
}

// mostTold is how many findings one refusal tells.
const mostTold = 16

// Unpermitted is the refusal of findings; nil: there are none.
func (p *Moment) Unpermitted(subject, cluster string, found []guard.Finding) error {
	if len(found) == 0 {
		return nil
	}
	texts := make([]string, 0, len(found))
	for i := range found {
		texts = append(texts, found[i].Text())
	}
	clusters := cluster
	if cluster == "" {
		cluster, clusters = "CLUSTER", "any cluster"
	}
	needs := guard.Needs(found)
	record := p.Cluster(cluster)
	given := slices.Concat(admission.Permissions(p.Snapshot, &record), needs)
	next := fmt.Sprintf("leave it out, or let everybody who operates %s do that: 'berth cluster set %s --permit %s'", clusters, cluster,
		guard.Join(given))
	if slices.Equal(needs, []guard.Permission{guard.HostPaths}) {
		next += fmt.Sprintf("; files in the folders of 'berth cluster set %s --image-folders LIST' and of declared pools need none", cluster)
	}
	return refusal.New(rpc.Denied, subject, next, "not permitted: %s", units.Some(texts, mostTold, "; "))
}
