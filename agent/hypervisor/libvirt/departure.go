package libvirt

import (
	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor/departures"
	"berth/agent/hypervisor/processes"
)

// depart closes the departure's channel when the guest has left before libvirtd says so. It is to be called before the guest
// can stand still; end takes it back when libvirtd has answered. Where the process cannot be seen it does nothing.
func (h *migrations) depart(d *libvirtgo.Domain, uuid string, one *departures.Departure) (end func()) {
	name, err := d.GetName()
	if err != nil {
		return func() {}
	}
	life, err := processes.FindLife(h.runDir, name, uuid)
	if err != nil {
		h.log.Debug("a guest leaves whose process is not to be seen", "domain", uuid, "error", err)
		return func() {}
	}
	h.departures.Begin(uuid, one)
	go h.awaitDeparture(uuid, life)
	return func() {
		h.departures.End(uuid, one)
		life.Close()
	}
}

// awaitDeparture waits for the end of the process and reports whether the guest has left with it.
func (h *migrations) awaitDeparture(uuid string, life *processes.Life) bool {
	if life.AwaitEnd() != nil {
		return false
	}
	if err := h.watch.toldAll(); err != nil {
		h.log.Debug("a guest's process has ended and libvirt does not tell how", "domain", uuid, "error", err)
		return false
	}
	return h.departures.Conclude(uuid)
}

// stoppedForMove tells whether libvirt has stopped a guest for the switchover.
func stoppedForMove(event *libvirtgo.DomainEventLifecycle) bool {
	return event.Event == libvirtgo.DOMAIN_EVENT_SUSPENDED && event.Detail == int(libvirtgo.DOMAIN_EVENT_SUSPENDED_MIGRATED)
}
