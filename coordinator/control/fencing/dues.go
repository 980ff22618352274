package fencing

import (
	"berth/coordinator/agenda"
	"berth/coordinator/model"
)

// dues are when the devices of nodes are to be asked although nothing is wrong, by node ID.
type dues struct {
	identity agenda.Agenda   // which machine they switch
	power    agenda.Agenda   // for the power state
	ready    agenda.Agenda   // those whose time for that has come, by when they were asked last
	again    map[string]bool // those of which something was heard meanwhile
}

func newDues() dues { return dues{again: map[string]bool{}} }

// expect takes a node in as it is, of which its devices have said and answered that.
func (d *dues) expect(node *model.Node, said identities, answered powers) {
	d.forget(node.ID)
	if node.Fence.Method != model.FenceCommand {
		return
	}
	d.identity.Set(node.ID, said.nextCheck(node, identityEvery))
	if node.Fenced() {
		return
	}
	if last := answered.of(node); last.at.IsZero() {
		d.ready.Set(node.ID, last.at)
	} else {
		d.power.Set(node.ID, last.at.Add(last.every()))
	}
}

func (d *dues) forget(node string) {
	d.identity.Remove(node)
	d.power.Remove(node)
	d.ready.Remove(node)
}
