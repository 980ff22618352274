package answer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/admission"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/refusal"
	"berth/coordinator/model"
	"berth/shared/domxml/guard"
	"berth/shared/pki"
	"berth/shared/rpc"
	"berth/shared/units"
)

// Held is what the caller may put onto hosts of clusters that permit it too, as a setting has it. It is read where the change is made, so
// what was taken from somebody is gone at the next call, whichever coordinator that goes to.
func (p *Moment) Held(ctx context.Context) string {
	caller := gate.CallerOf(ctx)
	identity, known := p.Identity(caller.ID)
	switch {
	case caller.Role == pki.RolePeer:
		return guard.All // root of a coordinator
	case caller.Role != pki.RoleOperator:
		return guard.None
	case !known: // it counts as in releases that had no records, or it would not have come here
		return guard.All
	}
	return admission.Held(&identity)
}

// clusterPermits is what may be put onto the hosts of a cluster; empty: of every one.
func (p *Moment) clusterPermits(cluster string) guard.Permitted {
	return admission.Permitted(p.Snapshot, func(node string) model.NodeFacts { return p.Soft.Facts(node, p.At) }, cluster)
}

// permitted is what the caller may put onto the hosts of a cluster: what both have.
func (p *Moment) permitted(ctx context.Context, cluster string) guard.Permitted {
	permitted := p.clusterPermits(cluster)
	held, _ := guard.Split(p.Held(ctx))
	permitted.Permissions = slices.DeleteFunc(permitted.Permissions, func(one guard.Permission) bool { return !slices.Contains(held, one) })
	return permitted
}

// AdmitVM refuses a VM whose description puts something onto a host that its cluster does not permit, or the caller may not. Before is how
// it was described; nil: it is new. What it had then was let through, or binds it to its node.
func (p *Moment) AdmitVM(ctx context.Context, vm *model.VM, before *model.VMSpec) error {
	cluster := p.ClusterOf(vm)
	permitted := p.permitted(ctx, cluster)
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
	return p.unpermitted(ctx, "vm/"+vm.Name, cluster, found)
}

// AdmitResource refuses a declaration of something on the hosts that not all clusters permit, or the caller may not, and a cluster that
// gives what the caller does not have.
func (p *Moment) AdmitResource(ctx context.Context, before, after *model.Resource) error {
	subject := string(after.Kind) + "/" + after.Name
	if after.Kind == model.KindCluster {
		return p.MayGive(ctx, subject, admission.Gives(p.Snapshot, before, after))
	}
	permitted := p.permitted(ctx, "")
	found := admission.Resource(after, permitted)
	if before != nil {
		found = admission.New(admission.Resource(before, permitted), found)
	}
	return p.unpermitted(ctx, subject, "", found)
}

// AdmitDevice refuses a device that is attached to a VM, or put into a drive of it.
func (p *Moment) AdmitDevice(ctx context.Context, vm *model.VM, element string) error {
	cluster := p.ClusterOf(vm)
	found, err := admission.Device(element, nil, p.permitted(ctx, cluster))
	if err != nil {
		return refusal.Invalid("vm/"+vm.Name, "name it otherwise", err)
	}
	return p.unpermitted(ctx, "vm/"+vm.Name, cluster, found)
}

// MayGive refuses to give permissions that the caller does not have. Otherwise two operators could have what neither has.
func (p *Moment) MayGive(ctx context.Context, subject string, given []guard.Permission) error {
	lacks := admission.Without(given, p.Held(ctx))
	if len(lacks) == 0 {
		return nil
	}
	return refusal.New(rpc.Denied, subject, "have an operator do it who has that, or have such a one run "+p.wayToHave(ctx, lacks),
		"not permitted: this gives %s, which %s does not have", guard.Listed(lacks), gate.CallerOf(ctx))
}

// HasAll refuses what only an operator may do who has all permissions, also those that later releases will have. Why ends the sentence.
func (p *Moment) HasAll(ctx context.Context, subject, why string) error {
	if p.Held(ctx) == guard.All {
		return nil
	}
	caller := gate.CallerOf(ctx)
	return refusal.New(rpc.Denied, subject, fmt.Sprintf("have an operator do it who has all, or have such a one run "+
		"'berth identity set %s --permit all'; 'berth coordinator login' on a coordinator makes one", caller),
		"not permitted: %s, and %s does not have all", why, caller)
}

// wayToHave is the command by which the caller gets permissions that it lacks. Somebody has to run it who has them.
func (p *Moment) wayToHave(ctx context.Context, lacks []guard.Permission) string {
	held, _ := guard.Split(p.Held(ctx))
	return fmt.Sprintf("'berth identity set %s --permit %s'", gate.CallerOf(ctx), guard.Join(slices.Concat(held, lacks)))
}

// mostTold is how many findings one refusal tells.
const mostTold = 16

// unpermitted is the refusal of findings; nil: there are none. It says which of the two does not permit them, and how each would.
func (p *Moment) unpermitted(ctx context.Context, subject, cluster string, found []guard.Finding) error {
	if len(found) == 0 {
		return nil
	}
	texts := make([]string, 0, len(found))
	for i := range found {
		texts = append(texts, found[i].Text())
	}
	needs := guard.Needs(found)
	site := admission.Less(needs, p.clusterPermits(cluster).Permissions)
	own := admission.Without(needs, p.Held(ctx))
	clusters := "cluster " + cluster
	if cluster == "" {
		cluster, clusters = "CLUSTER", "not every cluster"
	}
	var lacks, steps []string
	if len(site) > 0 {
		record := p.Cluster(cluster)
		given := slices.Concat(admission.Permissions(p.Snapshot, &record), site)
		says := clusters + " does not permit "
		if clusters == "not every cluster" {
			says = "not every cluster permits "
		}
		lacks = append(lacks, says+guard.Listed(site))
		steps = append(steps, fmt.Sprintf("have the cluster permit it: 'berth cluster set %s --permit %s'", cluster, guard.Join(given)))
	}
	if len(own) > 0 {
		lacks = append(lacks, fmt.Sprintf("%s does not have %s", gate.CallerOf(ctx), guard.Listed(own)))
		steps = append(steps, "have an operator who has that run "+p.wayToHave(ctx, own))
	}
	next := "leave it out, or " + strings.Join(steps, ", and ")
	if slices.Equal(needs, []guard.Permission{guard.HostPaths}) {
		next += fmt.Sprintf("; files in the folders of 'berth cluster set %s --image-folders LIST' and of declared pools need none", cluster)
	}
	return refusal.New(rpc.Denied, subject, next, "not permitted: %s: %s", units.Some(texts, mostTold, "; "), strings.Join(lacks, ", and "))
}
