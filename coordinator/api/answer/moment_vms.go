package answer

import (
	"fmt"
	"strings"

	"berth/coordinator/api/refusal"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/shared/rpc"
)

// Living are the names of the nodes that show a domain of a VM which runs, or stands still and runs on as soon as somebody lets it. The
// half of a migration is none. What a node showed before it fell silent does not count.
func (p *Moment) Living(vm string) []string {
	var names []string
	for _, node := range p.View().ShownOn(vm, lives) {
		names = append(names, node.Node.Name)
	}
	return names
}

func lives(state model.DomainState) bool {
	return state == model.DomainRunning || state == model.DomainPaused
}

// LivingOn is Living as of now, and not of the view: for who waits for an end.
func (p *Moment) LivingOn(uuid string) []string {
	var found []string
	for _, id := range p.Soft.MayShow(uuid) {
		node, known := p.Node(id)
		facts := p.Soft.Facts(id, p.At)
		if !known || facts.Liveness == model.Unreachable || !facts.DomainsKnown {
			continue
		}
		if domain := facts.Domain(uuid); domain != nil && lives(domain.State) {
			found = append(found, node.Name)
		}
	}
	return found
}

// Deletable refuses to forget a VM that runs or may run.
func Deletable(p *Moment, vm model.VM) error {
	subject := "vm/" + vm.Name
	if op, live := p.LiveOperationOf(vm.ID); live {
		return refusal.New(rpc.Busy, subject, fmt.Sprintf("wait for it with 'berth operation watch %s'", op.ID),
			"operation %s (%s, %s) works on VM %q", op.ID, op.Kind, op.Phase, vm.Name)
	}
	if vm.Holder != "" {
		return refusal.New(rpc.Conflict, subject, fmt.Sprintf("stop it first: 'berth vm stop %s'", vm.Name),
			"VM %q is not stopped: node %s holds it", vm.Name, p.NodeName(vm.Holder))
	}
	if nodes := p.LivingOn(vm.ID); len(nodes) > 0 {
		return refusal.New(rpc.Conflict, subject, fmt.Sprintf("shut it down there with 'virsh shutdown %s'", vm.Name),
			"a domain with the UUID of VM %q runs on %s", vm.Name, strings.Join(nodes, ", "))
	}
	return nil
}

// ClusterOf is the cluster that a VM is in, by name; empty while more than one may take it.
func (p *Moment) ClusterOf(vm *model.VM) string {
	if p.clusters == nil {
		p.clusters = estate.ClusterOf(p)
	}
	return p.clusters(vm)
}
