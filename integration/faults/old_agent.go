package faults

import (
	"slices"
	"time"

	"berth/coordinator/agents"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/integration/faults/plant"
	"berth/integration/faults/script"
	"berth/shared/capability"
	berthv1 "berth/shared/gen/berth/v1"
)

// An agent of the release before tells no capabilities, arms the watchdog of a virtual host, and does not say when it cannot know how
// a guest ended. FAULTS.md, W23.

// update has somebody install the present release on a host: an operation that waits for that goes on.
func (h *host) update() {
	if h.old {
		h.old = false
		h.life.Kill(time.Second)
	}
}

// knows are the capabilities that an agent tells.
func (h *host) knows() []string {
	if h.old && h.world.bug != plant.GateLeftOut {
		return nil
	}
	return capability.Names()
}

// forget takes out of what an old agent says about a domain what it does not know of.
func (h *host) forget(domain *berthv1.Domain) {
	if h.old && domain != nil {
		domain.EndUnseen = false
	}
}

// lacks tells that the agent of a session is given no such order.
func (s *session) lacks(order operation.Order) bool {
	return len(capability.Lacks(s.life.host.knows(), agents.Command(s.term, agents.For(s.life.host.knows(), order)))) > 0
}

// tellable tells whether the agents of an operation's nodes are given all orders that it may come to.
func (m *member) tellable(op operation.Operation, vm model.VM) bool {
	return !slices.ContainsFunc(operation.Ahead(op, vm), func(order operation.Order) bool {
		s := m.sessions[order.Node]
		return s != nil && s.lacks(order)
	})
}

// endCertificate lets the certificate of a host's agent end: it is out, and its guests run on, until that is renewed. FAULTS.md, W18.
func endCertificate(w *World, what script.Happening, h *host) {
	w.Draw(script.Certs)
	h.outdated = true
	h.breakSession(0)
	w.Later(what.For, func() { h.outdated = false })
}
