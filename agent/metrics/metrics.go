// Package metrics tells Prometheus of a host what its agent has measured anyhow for the coordinators: nothing is read for a scrape.
//
// The names begin with berth_host_ and berth_guest_. Those of the leader, which has the same figures of all nodes, begin with
// berth_node_ and berth_vm_: who reads both counts nothing twice.
package metrics

import (
	"context"
	"sync"
	"time"

	"berth/agent/session"
	berthv1 "berth/shared/gen/berth/v1"
)

// Host keeps what was measured last. It is the session's Sampler and Collector, and passes on what they make.
type Host struct {
	Sampler   session.Sampler
	Collector session.Collector
	// Connected tells whether libvirt can be used, and Orders how many orders are in work.
	Connected func() bool
	Orders    func() int

	mu      sync.Mutex
	sample  *berthv1.NodeTelemetry // nil: none was taken yet
	sampled time.Time
	heard   time.Time // the leader; zero: never
	names   []named
}

// named is a guest's name.
type named struct{ uuid, name string }

// Sample takes a sample and keeps it.
func (h *Host) Sample(ctx context.Context) *berthv1.NodeTelemetry {
	sample := h.Sampler.Sample(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sample, h.sampled = sample, time.Now()
	return sample
}

// Inventory makes an inventory and keeps what guests are called.
func (h *Host) Inventory(ctx context.Context) *berthv1.InventoryReport {
	report := h.Collector.Inventory(ctx)
	if report.GetDomainsUnknown() {
		return report
	}
	names := make([]named, 0, len(report.GetDomains()))
	for _, domain := range report.GetDomains() {
		names = append(names, named{domain.GetUuid(), domain.GetName()})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.names = names
	return report
}

// Heard takes note that the leader was heard.
func (h *Host) Heard(bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard = time.Now()
}
