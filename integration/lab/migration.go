package lab

import (
	"errors"
	"fmt"
	"time"

	"berth/shared/units"
)

// Migration is what a guest's QEMU says about sending or receiving the guest, whatever libvirtd knows of it.
type Migration struct {
	Status string // QEMU's word: setup, active, pre-switchover, device, completed, failed ...; empty: there was none
	Total, Remaining,
	Sent units.Bytes // of the guest's memory; known on the source only
}

// Done is the share of the guest's memory that needs no copying any more, 0 to 1.
func (m Migration) Done() float64 {
	if m.Total == 0 {
		return 0
	}
	return 1 - float64(m.Remaining)/float64(m.Total)
}

// Migration asks the QEMU of a guest on this host, which has to be there.
func (h *Host) Migration(guest string) (Migration, error) {
	var found Migration
	for _, process := range h.QEMUs() {
		if process.Name != guest && process.UUID != guest {
			continue
		}
		answer, err := ask(h.Path(monitorDir+"/"+process.UUID+"."+askSocket), "query-migrate")
		if err != nil {
			return found, fmt.Errorf("ask the QEMU of %s on %s: %w", guest, h.Name, err)
		}
		bytes := func(n int64) units.Bytes { return units.Bytes(n) }
		return Migration{answer.Status, bytes(answer.RAM.Total), bytes(answer.RAM.Remaining), bytes(answer.RAM.Transferred)}, nil
	}
	return found, fmt.Errorf("%s has no process of %s", h.Name, guest)
}

// ask puts one question to a monitor.
func ask(socket, command string) (qmpReturn, error) {
	m, err := dialMonitor(socket)
	if err != nil {
		return qmpReturn{}, err
	}
	defer m.conn.Close()
	if err := m.conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return qmpReturn{}, err
	}
	if err := m.send(command); err != nil {
		return qmpReturn{}, err
	}
	for answers := 0; ; {
		message, err := m.read()
		switch {
		case err != nil:
			return qmpReturn{}, err
		case message.Error != nil:
			return qmpReturn{}, errors.New(message.Error.Desc)
		case message.Return == nil: // an event
		case answers == 1: // the first answer is to the command that opens the monitor
			return *message.Return, nil
		default:
			answers++
		}
	}
}
