// Package fake is a hypervisor in memory. It keeps the promises of package hypervisortest, and on top of them it can be
// made to fail the way libvirt does: calls that get lost before or after their effect, a daemon that goes away while its
// guests live on, a host that dies, a migration whose last message never arrives. All of its time is the runtime's, so it
// works in a synctest bubble.
package fake

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"berth/agent/hypervisor"
	"berth/agent/psi"
	"berth/shared/domxml"
)

// Wire is what hypervisors that can reach each other share.
type Wire struct {
	mu    sync.Mutex // guards everything of all its hosts, so that a hand-over is one step
	hosts map[string]*Hypervisor
	cut   map[[2]string]bool
	// writes are what was written to volumes so far, which is also their time.
	writes int64
}

// NewWire makes a wire with nobody on it.
func NewWire() *Wire {
	return &Wire{hosts: map[string]*Hypervisor{}, cut: map[[2]string]bool{}}
}

// Cut takes the link between two hosts away, or brings it back.
func (w *Wire) Cut(a, b string, cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut[[2]string{a, b}], w.cut[[2]string{b, a}] = cut, cut
}

// Guest is how a guest behaves. The zero value powers off when asked, writes no memory and needs no CPU.
type Guest struct {
	IgnoresShutdown bool
	DirtyBPS        int64 // bytes written a second, all of them to be copied again
	CPUShare        float64
	Pressure        *psi.All // what it waits for; nil: nothing tells
	Agent           bool     // there is one in it that freezes its file systems
}

// Hypervisor is one host. Its fields are set before it is used.
type Hypervisor struct {
	*daemon
	*domains
	*storage

	Name    string
	CPUs    int
	LinkBPS int64 // of a migration without a bandwidth of its own, bytes a second

	bridges  []string
	networks []hypervisor.Network
	models   []string
	hostCPU  string
}

var _ hypervisor.Hypervisor = (*Hypervisor)(nil)

// domains are the guests of a host, running or defined.
type domains struct {
	*daemon
	MemoryBytes int64 // of the host

	storage  *storage
	all      map[string]*domain
	orphans  map[string]*domain // whose process runs, and that the daemon has forgotten
	done     map[string]hypervisor.Job
	left     map[string]bool // whether what is gone has gone to another host
	guests   map[string]Guest
	consoles map[string]*console
}

type domain struct {
	hypervisor.Domain
	xml     string
	disks   []hypervisor.Disk
	started time.Time
	job     *job

	balloon   int64 // memory that it leaves the guest
	mostVCPUs int
	frozen    bool // its file systems stand still

	restarted chan struct{} // closed when the guest restarts
}

// Host puts a hypervisor on the wire, reachable as qemu+tls://NAME/system, with 16 GiB, 8 CPUs and a 1 GiB/s link.
func (w *Wire) Host(name string) *Hypervisor {
	d := &daemon{wire: w, lost: make(chan struct{}), faults: map[string]*Fault{}}
	s := &storage{daemon: d, pools: map[string]*pool{}}
	s.domains = &domains{
		daemon: d, storage: s, MemoryBytes: 16 << 30,
		all: map[string]*domain{}, orphans: map[string]*domain{}, left: map[string]bool{},
		done: map[string]hypervisor.Job{}, guests: map[string]Guest{}, consoles: map[string]*console{},
	}
	h := &Hypervisor{
		daemon: d, domains: s.domains, storage: s, Name: name, CPUs: 8, LinkBPS: 1 << 30,
		networks: []hypervisor.Network{{Name: "default", UUID: uuidOf("network"), Bridge: "virbr0", ForwardMode: "nat", Active: true}},
		bridges:  []string{"br0"}, models: []string{"EPYC", "Nehalem", "qemu64"}, hostCPU: "EPYC-00000001",
	}
	h.AddPool("default", 1<<40)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hosts[name] = h
	return h
}

// URI is how other hosts reach this one.
func (h *Hypervisor) URI() string { return "qemu+tls://" + h.Name + "/system" }

// Connected implements hypervisor.Hypervisor.
func (h *daemon) Connected() (bool, error) {
	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	return h.down == nil, h.down
}

// Close implements hypervisor.Hypervisor.
func (h *Hypervisor) Close() error { return nil }

// Host implements hypervisor.Hypervisor.
func (h *Hypervisor) Host(ctx context.Context) (hypervisor.HostInfo, error) {
	end, err := h.enter(ctx, "host")
	if err != nil {
		return hypervisor.HostInfo{}, err
	}
	defer end()
	uuid := uuidOf(h.Name)
	return hypervisor.HostInfo{
		HostUUID: uuid, HostName: h.Name, LibVersion: "9.0.0", HypervisorVersion: "7.2.0",
		CapabilitiesXML: fmt.Sprintf(`<capabilities><host><uuid>%s</uuid><cpu><arch>x86_64</arch><model>EPYC</model><vendor>AMD</vendor>`+
			`<topology sockets='1' cores='%d' threads='1'/></cpu></host><guest><os_type>hvm</os_type><arch name='x86_64'>`+
			`<machine>pc</machine><machine>q35</machine><domain type='kvm'/><domain type='qemu'/></arch></guest></capabilities>`, uuid, h.CPUs),
		MemoryBytes: h.MemoryBytes, CPUs: h.CPUs,
		Pools: h.listPools(), Networks: slices.Clone(h.networks), Bridges: slices.Clone(h.bridges),
		CPUModels: slices.Clone(h.models), HostCPU: h.hostCPU,
	}, nil
}

func uuidOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// Memory implements hypervisor.Hypervisor.
func (h *domains) Memory(ctx context.Context) (hypervisor.MemoryStats, error) {
	end, err := h.enter(ctx, "memory")
	if err != nil {
		return hypervisor.MemoryStats{}, err
	}
	defer end()
	return hypervisor.MemoryStats{TotalBytes: h.MemoryBytes, FreeBytes: h.free()}, nil
}

func (h *domains) free() int64 {
	free := h.MemoryBytes
	for _, d := range h.all {
		if d.State != hypervisor.Shutoff {
			free -= d.MemoryBytes
		}
	}
	return free
}

// Domains implements hypervisor.Hypervisor.
func (h *domains) Domains(ctx context.Context) ([]hypervisor.Domain, error) {
	end, err := h.enter(ctx, "domains")
	if err != nil {
		return nil, err
	}
	defer end()
	list := make([]hypervisor.Domain, 0, len(h.all))
	for _, uuid := range slices.Sorted(maps.Keys(h.all)) {
		list = append(list, h.shown(h.all[uuid]))
	}
	return list, nil
}

// Processes implements hypervisor.Hypervisor. The operating system tells of them, so they are seen without the daemon, too.
func (h *domains) Processes(context.Context) ([]hypervisor.Process, error) {
	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	if f, faulty := h.fault("processes"); faulty {
		return nil, f.Err
	}
	var found []hypervisor.Process
	for _, of := range []map[string]*domain{h.all, h.orphans} {
		for uuid, d := range of {
			if d.State != hypervisor.Shutoff {
				found = append(found, hypervisor.Process{PID: pidOf(uuid), UUID: uuid, Name: d.Name})
			}
		}
	}
	return found, nil
}

// pidOf is the number of a guest's process: always the same.
func pidOf(uuid string) int { return 1000 + int(sha256.Sum256([]byte(uuid))[0]) }

// Stats implements hypervisor.Hypervisor.
func (h *domains) Stats(ctx context.Context) ([]hypervisor.DomainStats, []hypervisor.ReadingError, error) {
	end, err := h.enter(ctx, "stats")
	if err != nil {
		return nil, nil, err
	}
	defer end()
	var stats []hypervisor.DomainStats
	now := time.Now()
	for uuid, d := range h.all {
		if d.State == hypervisor.Shutoff {
			continue
		}
		cpu := time.Duration(float64(now.Sub(d.started)) * h.guests[uuid].CPUShare)
		memory, balloon, vcpus, delay := d.MemoryBytes, d.balloon, d.VCPUs, time.Duration(0)
		stats = append(stats, hypervisor.DomainStats{
			UUID: uuid, At: now, CPUTime: &cpu, RSSBytes: &balloon, BalloonBytes: &balloon, MaximumBytes: &memory, VCPUs: &vcpus,
			DelayAt: now, VCPUDelay: &delay, Pressure: h.guests[uuid].Pressure,
		})
	}
	slices.SortFunc(stats, func(a, b hypervisor.DomainStats) int { return cmp.Compare(a.UUID, b.UUID) })
	return stats, nil, nil
}

// Left implements hypervisor.Hypervisor.
func (h *domains) Left(_ context.Context, uuid, _ string) bool {
	h.wire.mu.Lock()
	defer h.wire.mu.Unlock()
	return h.all[uuid] == nil && h.left[uuid]
}

// Lookup implements hypervisor.Hypervisor.
func (h *domains) Lookup(ctx context.Context, uuid string) (hypervisor.Domain, error) {
	end, err := h.enter(ctx, "lookup")
	if err != nil {
		return hypervisor.Domain{}, err
	}
	defer end()
	d, err := h.find(uuid)
	if err != nil {
		return hypervisor.Domain{}, err
	}
	return h.shown(d), nil
}

// shown is the domain as it is told: of one that is off nothing says what it runs with. The wire is locked.
func (h *domains) shown(d *domain) hypervisor.Domain {
	shown := d.Domain
	switch {
	case shown.State == hypervisor.Shutoff:
		shown.Sources, shown.Devices, shown.Bindings = nil, nil, nil
	case shown.Managed:
		shown.DiskSizes = h.diskSizes(d)
	}
	return shown
}

func (h *domains) find(uuid string) (*domain, error) {
	d, found := h.all[uuid]
	if !found {
		return nil, fmt.Errorf("%w: %s", hypervisor.ErrNotFound, uuid)
	}
	return d, nil
}

// XML implements hypervisor.Hypervisor.
func (h *domains) XML(ctx context.Context, uuid string) (string, error) {
	end, err := h.enter(ctx, "xml")
	if err != nil {
		return "", err
	}
	defer end()
	d, err := h.find(uuid)
	if err != nil {
		return "", err
	}
	return d.xml, nil
}

// read makes a domain of its XML.
func read(xml string) (*domain, error) {
	info, err := domxml.Parse(xml)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", hypervisor.ErrInvalidXML, err)
	}
	if strings.Contains(xml, "<frobnicate/>") { // libvirt knows its own elements; this one it does not
		return nil, fmt.Errorf("%w: unknown element frobnicate", hypervisor.ErrInvalidXML)
	}
	disks, err := hypervisor.Disks(xml)
	if err != nil {
		return nil, err
	}
	attached, err := hypervisor.AttachedIn(xml)
	if err != nil {
		return nil, err
	}
	mark, managed := domxml.Metadata(xml)
	return &domain{
		disks: disks, balloon: info.MemoryBytes, mostVCPUs: info.VCPUs,
		Domain: hypervisor.Domain{
			UUID: info.UUID, Name: info.Name, MemoryBytes: info.MemoryBytes, VCPUs: info.VCPUs,
			Managed: managed, Epoch: mark.Epoch, OperationID: mark.Operation, Sources: attached.Written, Devices: attached.Devices,
			Bindings: attached.Bindings,
		},
		xml: xml, started: time.Now(), restarted: make(chan struct{}),
	}, nil
}

func (h *daemon) publish(d *domain, kind, detail string) {
	if d.Managed && (kind == hypervisor.EventStarted || kind == hypervisor.EventResumed || kind == hypervisor.EventDevices) {
		h.Publish(hypervisor.Event{
			UUID: d.UUID, Name: d.Name, Kind: hypervisor.EventRan, Ran: &hypervisor.Ran{Epoch: d.Epoch, Devices: slices.Clone(d.Devices)},
		})
	}
	h.Publish(hypervisor.Event{UUID: d.UUID, Name: d.Name, Kind: kind, Detail: detail})
}
