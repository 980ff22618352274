package libvirt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
)

const (
	// slowEvery is how many samples share one reading of what libvirtd has to ask each guest's process for: such a
	// reading costs it seven times as much as the rest of a sample.
	slowEvery = 5
	// slowFresh is how old such a reading may be before it is worth nothing.
	slowFresh = 45 * time.Second
	// slowTimeout is when the reading is given up; a guest hangs then, and holds that one call until it does not.
	slowTimeout = time.Second
	maxHung     = 4
)

// slowStats is the last slow reading of every domain.
type slowStats struct {
	mu      sync.Mutex
	sample  int
	hung    int
	reading bool
	err     error
	domains map[string]slowReading
}

type slowReading struct {
	at    time.Time
	rss   *int64
	delay *time.Duration
}

// Stats implements hypervisor.Hypervisor. CPU time and memory come from virDomainGetInfo, which libvirtd answers from
// its own books and /proc.
func (h *Hypervisor) Stats(ctx context.Context) ([]hypervisor.DomainStats, []hypervisor.ReadingError, error) {
	stats, err := query(ctx, h, readInfo)
	if err != nil {
		return nil, nil, fmt.Errorf("read domain statistics: %w", err)
	}
	slices.SortFunc(stats, func(a, b hypervisor.DomainStats) int { return cmp.Compare(a.UUID, b.UUID) })
	if h.slow.due() {
		go h.readSlow()
	}
	slowErr := h.slow.merge(stats, time.Now())
	if slowErr != nil {
		return stats, []hypervisor.ReadingError{{Reading: "domain.memory", Err: slowErr}}, nil
	}
	return stats, nil, nil
}

func readInfo(conn *libvirtgo.Connect) ([]hypervisor.DomainStats, error) {
	list, err := conn.ListAllDomains(libvirtgo.CONNECT_LIST_DOMAINS_ACTIVE)
	if err != nil {
		return nil, err
	}
	defer freeAll(list)
	stats := make([]hypervisor.DomainStats, 0, len(list))
	for i := range list {
		uuid, err := list[i].GetUUIDString()
		if err != nil {
			return nil, err
		}
		info, err := list[i].GetInfo()
		if is(err, libvirtgo.ERR_NO_DOMAIN) {
			continue
		}
		if err != nil {
			return nil, err
		}
		cpu, balloon, maximum, vcpus := time.Duration(info.CpuTime), int64(info.Memory)<<10, int64(info.MaxMem)<<10, int(info.NrVirtCpu)
		stats = append(stats, hypervisor.DomainStats{
			UUID: uuid, At: time.Now(), CPUTime: &cpu, BalloonBytes: &balloon, MaximumBytes: &maximum, VCPUs: &vcpus,
		})
	}
	return stats, nil
}

// due tells whether this sample starts a slow reading.
func (s *slowStats) due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := s.sample%slowEvery == 0
	s.sample++
	if !turn || s.reading {
		return false
	}
	if s.hung >= maxHung {
		s.err = fmt.Errorf("%d readings wait for guests that do not answer", s.hung)
		return false
	}
	s.reading = true
	return true
}

// merge adds what is known of each domain and forgets domains that are gone.
func (s *slowStats) merge(stats []hypervisor.DomainStats, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	present := make(map[string]slowReading, len(stats))
	for i := range stats {
		reading, found := s.domains[stats[i].UUID]
		if !found {
			continue
		}
		present[stats[i].UUID] = reading
		if now.Sub(reading.at) < slowFresh {
			stats[i].SlowAt, stats[i].RSSBytes, stats[i].VCPUDelay = reading.at, reading.rss, reading.delay
		}
	}
	s.domains = present
	return s.err
}

// readSlow asks for everything in one bulk call that skips busy domains. If a guest hangs the call hangs with it, holding
// that guest's job lock: so the next call skips the guest, and nobody else is held up.
func (h *Hypervisor) readSlow() {
	ctx, cancel := context.WithTimeout(context.Background(), slowTimeout)
	defer cancel()
	left := make(chan struct{})
	readings, began, err := ask(ctx, &h.calls, func(conn *libvirtgo.Connect) (map[string]slowReading, error) {
		defer close(left)
		return bulk(conn)
	})
	h.slow.mu.Lock()
	defer h.slow.mu.Unlock()
	h.slow.reading = false
	if began && errors.Is(err, errHung) {
		h.slow.hung++
		h.slow.err = errors.New("a guest's process does not answer")
		go func() {
			<-left
			h.slow.mu.Lock()
			h.slow.hung--
			h.slow.mu.Unlock()
		}()
		return
	}
	if h.slow.err = err; err != nil {
		return
	}
	if h.slow.domains == nil {
		h.slow.domains = map[string]slowReading{}
	}
	for uuid, reading := range readings {
		h.slow.domains[uuid] = reading
	}
}

func bulk(conn *libvirtgo.Connect) (map[string]slowReading, error) {
	list, err := conn.GetAllDomainStats(nil, libvirtgo.DOMAIN_STATS_BALLOON|libvirtgo.DOMAIN_STATS_VCPU,
		libvirtgo.CONNECT_GET_ALL_DOMAINS_STATS_ACTIVE|libvirtgo.CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	readings := make(map[string]slowReading, len(list))
	for i := range list {
		defer free(list[i].Domain)
		uuid, err := list[i].Domain.GetUUIDString()
		if err != nil {
			return nil, err
		}
		reading := slowReading{at: now}
		if b := list[i].Balloon; b != nil && b.RssSet {
			rss := int64(b.Rss) << 10
			reading.rss = &rss
		}
		var delay time.Duration
		var told bool
		for _, vcpu := range list[i].Vcpu {
			if vcpu.DelaySet {
				delay, told = delay+time.Duration(vcpu.Delay), true
			}
		}
		if told {
			reading.delay = &delay
		}
		if reading.rss != nil || reading.delay != nil {
			readings[uuid] = reading
		}
	}
	return readings, nil
}
