package libvirt

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/processes"
)

// Stats implements hypervisor.Hypervisor. CPU time, resident memory, delay and pressure come from the guests' processes, where
// libvirtd itself would read them: asking it takes a round trip a guest, also in bulk as the Go binding does it, and for
// resident memory one to QEMU. Sizes are asked for when a guest appears and when libvirt tells that they changed. So a
// sample costs libvirtd one call, however many guests there are, and none of them can hold it up.
func (h *domains) Stats(ctx context.Context) ([]hypervisor.DomainStats, []hypervisor.ReadingError, error) {
	stats, err := query(ctx, h.connection, h.readStats)
	if err != nil {
		return nil, nil, fmt.Errorf("read domain statistics: %w", err)
	}
	slices.SortFunc(stats, func(a, b hypervisor.DomainStats) int { return cmp.Compare(a.UUID, b.UUID) })
	var failed []hypervisor.ReadingError
	unseen := 0
	for _, one := range stats {
		if one.RSSBytes == nil {
			unseen++
		}
	}
	if unseen > 0 {
		failed = append(failed, hypervisor.ReadingError{Reading: "domain.process", Err: fmt.Errorf(
			"the processes of %d guests are not to be seen: their resident memory is not known", unseen)})
	}
	return stats, failed, nil
}

func (h *domains) readStats(conn *libvirtgo.Connect) ([]hypervisor.DomainStats, error) {
	list, err := conn.ListAllDomains(libvirtgo.CONNECT_LIST_DOMAINS_ACTIVE)
	if err != nil {
		return nil, err
	}
	defer freeAll(list)
	h.guests.mu.Lock()
	defer h.guests.mu.Unlock()
	stats := make([]hypervisor.DomainStats, 0, len(list))
	present := make(map[string]bool, len(list))
	var buffer [1024]byte
	for i := range list {
		one, err := h.readGuest(&list[i], buffer[:])
		if is(err, libvirtgo.ERR_NO_DOMAIN) {
			continue
		}
		if err != nil {
			return nil, err
		}
		present[one.UUID] = true
		stats = append(stats, one)
	}
	h.guests.keep(present)
	return stats, nil
}

// readGuest reads one domain. The guests are locked.
func (h *domains) readGuest(d *libvirtgo.Domain, buffer []byte) (hypervisor.DomainStats, error) {
	uuid, err := d.GetUUIDString()
	if err != nil {
		return hypervisor.DomainStats{}, err
	}
	one, err := h.guest(d, uuid)
	if err != nil {
		return hypervisor.DomainStats{}, err
	}
	now := time.Now()
	if err := one.ask(d, now); err != nil {
		return hypervisor.DomainStats{}, err
	}
	memory, balloon, vcpus := one.memory, one.balloon, one.vcpus
	stats := hypervisor.DomainStats{UUID: uuid, At: now, MaximumBytes: &memory, BalloonBytes: &balloon, VCPUs: &vcpus}
	if one.process != nil {
		if cpu, rss, err := one.process.Usage(buffer); err == nil {
			stats.CPUTime, stats.RSSBytes = &cpu, &rss
			one.waits.Read(one.process, one.vcpus, now)
			stats.DelayAt, stats.VCPUDelay, stats.Pressure = one.waits.At, one.waits.Delay, one.waits.Pressure
			return stats, nil
		}
		one.drop()
	}
	info, err := d.GetInfo()
	if err != nil {
		return hypervisor.DomainStats{}, err
	}
	cpu := time.Duration(info.CpuTime)
	stats.CPUTime = &cpu
	return stats, nil
}

// guest finds what is kept of a domain. The guests are locked.
func (h *domains) guest(d *libvirtgo.Domain, uuid string) (*guest, error) {
	id, err := d.GetID()
	if err != nil {
		return nil, err
	}
	return h.guests.of(uuid, id, func() *processes.Process {
		name, err := d.GetName()
		if err != nil {
			return nil
		}
		process, _ := processes.Find(h.runDir, name, uuid) // without it libvirt is asked
		return process
	}), nil
}
