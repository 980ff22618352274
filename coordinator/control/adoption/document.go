package adoption

import (
	"context"
	"fmt"
	"sync"

	"berth/coordinator/control/drifts"
	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
)

// Document is the libvirt document that a VM runs with, as its node has it, and the name of that node. Refusals are of type *lead.Error.
func (a *Adoption) Document(ctx context.Context, vm model.VM) (text, node string, err error) {
	node = lead.NodeName(a.Store.Snapshot(), vm.Holder)
	limited, cancel := context.WithTimeout(ctx, lead.AskLimit)
	defer cancel()
	done, err := a.Agents.Perform(limited, vm.Holder, lead.Task{Document: vm.ID})
	if err != nil {
		return "", node, &lead.Error{
			Code: lead.Unavailable, Subject: "vm/" + vm.Name,
			Message:  fmt.Sprintf("node %s does not tell what VM %q runs with: %v", node, vm.Name, err),
			NextStep: fmt.Sprintf("'berth vm xml %s --next' tells what its next start has", vm.Name),
		}
	}
	return done.DomainXML, node, nil
}

// DocumentUnused refuses another document of a VM with a disk that somebody else has. Refusals are of type *lead.Error.
func (a *Adoption) DocumentUnused(before, after *model.VM) error {
	snapshot := a.Store.Snapshot()
	return drifts.UnusedBy(snapshot, sync.OnceValue(func() *evidence.Survey { return a.fencing.Survey(snapshot) }), before, after)
}
