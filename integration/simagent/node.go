package simagent

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/agent/hypervisor"
	"berth/agent/telemetry"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// Size is what a simulated node has.
type Size struct {
	Memory units.Bytes
	CPUs   int
}

// node is the pretended host: its domains, and the reports on them. It is safe for concurrent use.
type node struct {
	// Of a hypervisor, the session asks for its state, for one domain and its process, and for events. Anything else would be a fault.
	hypervisor.Hypervisor
	identity Identity
	size     Size

	mu       sync.Mutex
	domains  map[string]hypervisor.Domain // by UUID
	sequence uint64
	deliver  func(hypervisor.Event)
}

func newNode(identity Identity, size Size) *node {
	return &node{identity: identity, size: size, domains: map[string]hypervisor.Domain{}, deliver: func(hypervisor.Event) {}}
}

// put shows a domain from now on.
func (n *node) put(domain hypervisor.Domain, event string) {
	n.mu.Lock()
	n.domains[domain.UUID] = domain
	deliver := n.deliver
	n.mu.Unlock()
	deliver(hypervisor.Event{UUID: domain.UUID, Name: domain.Name, Kind: event})
}

// remove shows a domain no more.
func (n *node) remove(domain hypervisor.Domain, event string) {
	n.mu.Lock()
	delete(n.domains, domain.UUID)
	deliver := n.deliver
	n.mu.Unlock()
	deliver(hypervisor.Event{UUID: domain.UUID, Name: domain.Name, Kind: event})
}

func (n *node) find(uuid string) (hypervisor.Domain, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	domain, there := n.domains[uuid]
	return domain, there
}

// list is all domains, by UUID.
func (n *node) list() []hypervisor.Domain {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make([]hypervisor.Domain, 0, len(n.domains))
	for _, domain := range n.domains {
		all = append(all, domain)
	}
	slices.SortFunc(all, func(a, b hypervisor.Domain) int { return strings.Compare(a.UUID, b.UUID) })
	return all
}

// Connected is what the session reports of libvirt.
func (n *node) Connected() (bool, error) { return true, nil }

// Lookup finds one domain, or hypervisor.ErrNotFound.
func (n *node) Lookup(_ context.Context, uuid string) (hypervisor.Domain, error) {
	domain, there := n.find(uuid)
	if !there {
		return hypervisor.Domain{}, fmt.Errorf("%w: %s", hypervisor.ErrNotFound, uuid)
	}
	return domain, nil
}

// Processes are those of guests that libvirt has forgotten: there is neither here.
func (n *node) Processes(context.Context) ([]hypervisor.Process, error) { return nil, nil }

// Subscribe delivers an event for every change until the context ends.
func (n *node) Subscribe(ctx context.Context, deliver func(hypervisor.Event)) error {
	n.mu.Lock()
	n.deliver = deliver
	n.mu.Unlock()
	<-ctx.Done()
	return ctx.Err()
}

// Sample is the node's telemetry: every domain has all of its memory resident and does not use a CPU.
func (n *node) Sample(context.Context) *berthv1.NodeTelemetry {
	begun := time.Now()
	var memory int64
	var vcpus, running int32
	var idle float64
	out := &berthv1.NodeTelemetry{SampledAt: timestamppb.New(begun)}
	for _, domain := range n.list() {
		one, cpus := domain.MemoryBytes, int32(domain.VCPUs)
		out.Domains = append(out.Domains, &berthv1.DomainTelemetry{
			Uuid: domain.UUID, CpuRatio: &idle, RssBytes: &one, BalloonBytes: &one, MaximumMemoryBytes: &one, Vcpus: &cpus,
			Pressure: &berthv1.DomainPressure{}, // it does nothing, and waits for nothing
		})
		memory, vcpus, running = memory+one, vcpus+cpus, running+1
	}
	total := int64(n.size.Memory)
	free := max(total-memory, 0)
	var saved int64
	out.MemoryTotalBytes, out.MemoryFreeBytes, out.MemoryAvailableBytes = &total, &free, &free
	out.AllocatedMemoryBytes, out.AllocatedVcpus, out.RunningDomains = &memory, &vcpus, &running
	out.KsmSavedBytes = &saved
	out.Load1, out.Load5, out.Load15, out.CpuBusyRatio, out.CpuStealRatio = &idle, &idle, &idle, &idle, &idle
	n.mu.Lock()
	n.sequence++
	out.Sequence = n.sequence
	n.mu.Unlock()
	out.CollectSeconds = time.Since(begun).Seconds()
	return out
}

func (n *node) samples() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return int(n.sequence)
}

// Inventory is the whole node.
func (n *node) Inventory(context.Context) *berthv1.InventoryReport {
	report := &berthv1.InventoryReport{Node: &berthv1.NodeInventory{
		HostName: n.identity.Name, HostUuid: n.identity.HostUUID, MachineId: n.identity.HostUUID, BootId: n.identity.HostUUID,
		AgentVersion: version, LibvirtVersion: version, HypervisorVersion: version,
		MemoryBytes: int64(n.size.Memory), Cpus: int32(n.size.CPUs), Sockets: 1, CoresPerSocket: int32(n.size.CPUs),
		ThreadsPerCore: 1, NumaCells: 1, Arch: "x86_64", CpuModel: "simulated", DomainTypes: []string{"qemu"},
		MigrationUri: migrationURI(n.identity.Name), CollectedAt: timestamppb.Now(),
	}}
	for _, domain := range n.list() {
		report.Domains = append(report.Domains, telemetry.Domain(domain))
	}
	return report
}

// version is what a simulated node says wherever a release is asked for, so that nobody takes it for a real one.
const version = "simulated"

func migrationURI(node string) string { return "qemu+tls://" + node + "/system" }

// uuidOf is a UUID that follows from a name (RFC 9562, version 8).
func uuidOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
