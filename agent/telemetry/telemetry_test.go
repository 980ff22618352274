package telemetry

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"berth/agent/hoststat"
	"berth/agent/hypervisor"
	"berth/agent/hypervisor/fake"
	"berth/agent/psi"
	"berth/shared/domxml"
	berthv1 "berth/shared/gen/berth/v1"
)

const uuid = "11111111-2222-4333-8444-555555555555"

// host is an operating system that says what the test wants.
type host struct{ sample hoststat.Sample }

func (h *host) Read(context.Context) hoststat.Sample { return h.sample }

func amount(n int64) *int64 { return &n }

func share(f float64) *float64 { return &f }

func healthy() *host {
	return &host{hoststat.Sample{
		TotalBytes: amount(16 << 30), FreeBytes: amount(2 << 30), AvailableBytes: amount(9 << 30), KSMSavedBytes: amount(1 << 20),
		Load1: share(1), Load5: share(2), Load15: share(3), CPU: &hoststat.CPUTimes{Total: 100, Idle: 50, Steal: 1},
		CPUPressure: &psi.Pressure{SomeAvg10: 7},
	}}
}

func boot(t *testing.T, h *fake.Hypervisor, id, name string, epoch uint64) {
	t.Helper()
	xml, err := domxml.Render(domxml.Spec{MemoryBytes: 1 << 30, VCPUs: 2},
		domxml.Identity{UUID: id, Name: name, Mark: domxml.Mark{Epoch: epoch, Operation: "op-" + name, Node: "n1"}},
		domxml.Machine{DomainType: domxml.VirtKVM, Arch: "x86_64", Type: "q35"})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(t.Context(), xml); err != nil {
		t.Fatal(err)
	}
}

func readings(errs []*berthv1.ReadingError) (names []string) {
	for _, e := range errs {
		names = append(names, e.GetReading())
	}
	return names
}

func TestSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, os := fake.NewWire().Host("n1"), healthy()
		boot(t, node, uuid, "web-1", 5)
		node.SetGuest(uuid, fake.Guest{CPUShare: 0.5, Pressure: &psi.All{
			CPU: psi.Pressure{SomeAvg10: 1, FullAvg10: 2}, Memory: psi.Pressure{SomeAvg10: 3, FullAvg10: 4},
			IO: psi.Pressure{SomeAvg10: 5, FullAvg10: 6},
		}})
		s := NewSampler(node, os)
		first := s.Sample(t.Context())
		if first.CpuBusyRatio != nil || first.GetDomains()[0].CpuRatio != nil {
			t.Error("a share after one look at growing counters")
		}
		time.Sleep(2 * time.Second)
		os.sample.CPU = &hoststat.CPUTimes{Total: 110, Idle: 54, Steal: 2}
		got := s.Sample(t.Context())
		want := &berthv1.NodeTelemetry{
			SampledAt: got.GetSampledAt(), Sequence: 2,
			MemoryTotalBytes: amount(16 << 30), MemoryFreeBytes: amount(2 << 30), MemoryAvailableBytes: amount(9 << 30),
			AllocatedMemoryBytes: amount(1 << 30), AllocatedVcpus: new(int32(2)), RunningDomains: new(int32(1)),
			KsmSavedBytes: amount(1 << 20), Load1: share(1), Load5: share(2), Load15: share(3),
			CpuBusyRatio: share(0.5), CpuStealRatio: share(0.1), CpuPressure: &berthv1.Pressure{SomeAvg10: 7},
			Domains: []*berthv1.DomainTelemetry{{
				Uuid: uuid, CpuRatio: share(0.5), RssBytes: amount(1 << 30), BalloonBytes: amount(1 << 30),
				MaximumMemoryBytes: amount(1 << 30), Vcpus: new(int32(2)), VcpuDelayRatio: share(0),
				Pressure: &berthv1.DomainPressure{CpuSome: 1, CpuFull: 2, MemorySome: 3, MemoryFull: 4, IoSome: 5, IoFull: 6},
			}},
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// What could not be read is absent and named. It is never zero, because zero is a reading.
func TestSampleWithHoles(t *testing.T) {
	blind := &host{hoststat.Sample{Errors: []hoststat.ReadingError{{Reading: "memory", Err: errors.New("no meminfo")}}}}
	for name, c := range map[string]struct {
		prepare func(*fake.Hypervisor)
		os      *host
		errors  []string
		check   func(*berthv1.NodeTelemetry) bool
	}{
		"libvirt away": {
			(*fake.Hypervisor).Stop, healthy(),
			[]string{"hypervisor.memory", "domain.stats"},
			func(s *berthv1.NodeTelemetry) bool {
				return s.AllocatedMemoryBytes == nil && s.AllocatedVcpus == nil && s.RunningDomains == nil && s.GetMemoryAvailableBytes() == 9<<30
			},
		},
		"operating system blind": {
			func(*fake.Hypervisor) {}, blind,
			[]string{"memory"},
			func(s *berthv1.NodeTelemetry) bool {
				return s.GetMemoryTotalBytes() == 16<<30 && s.MemoryAvailableBytes == nil && s.Load1 == nil && s.KsmSavedBytes == nil &&
					s.CpuPressure == nil && s.GetRunningDomains() == 1
			},
		},
		"both": {
			(*fake.Hypervisor).Stop, blind,
			[]string{"memory", "hypervisor.memory", "domain.stats"},
			func(s *berthv1.NodeTelemetry) bool { return s.MemoryTotalBytes == nil && s.MemoryFreeBytes == nil },
		},
		"two nodes' memory": {
			func(h *fake.Hypervisor) { h.MemoryBytes = 64 << 30 }, healthy(),
			[]string{"memory.total"},
			func(s *berthv1.NodeTelemetry) bool { return s.GetMemoryTotalBytes() == 16<<30 },
		},
		"libvirt hangs": {
			func(h *fake.Hypervisor) {
				h.Inject("memory", fake.Fault{Hang: true})
				h.Inject("stats", fake.Fault{Hang: true})
			}, healthy(),
			[]string{"hypervisor.memory", "domain.stats"},
			func(s *berthv1.NodeTelemetry) bool {
				return s.GetCollectSeconds() <= 1.1 && s.GetMemoryAvailableBytes() == 9<<30
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := fake.NewWire().Host("n1")
				boot(t, node, uuid, "web-1", 5)
				c.prepare(node)
				got := NewSampler(node, c.os).Sample(t.Context())
				if diff := cmp.Diff(c.errors, readings(got.GetErrors())); diff != "" {
					t.Errorf("errors (-want +got):\n%s", diff)
				}
				if !c.check(got) {
					t.Errorf("got %+v", got)
				}
			})
		})
	}
}

// half is a hypervisor that cannot read everything of every guest.
type half struct {
	hypervisor.Hypervisor
	stats []hypervisor.DomainStats
}

func (h *half) Stats(context.Context) ([]hypervisor.DomainStats, []hypervisor.ReadingError, error) {
	return h.stats, []hypervisor.ReadingError{{Reading: "domain.memory", Err: errors.New("it hangs")}}, nil
}

func TestSumsWithAHoleAreNotSums(t *testing.T) {
	vcpus := 2
	node := &half{
		fake.NewWire().Host("n1"),
		[]hypervisor.DomainStats{{UUID: "a", MaximumBytes: amount(1), VCPUs: &vcpus}, {UUID: "b", VCPUs: &vcpus}},
	}
	got := NewSampler(node, healthy()).Sample(t.Context())
	if got.AllocatedMemoryBytes != nil || got.AllocatedVcpus != nil || got.GetRunningDomains() != 2 || !slices.Contains(
		readings(got.GetErrors()), "domain.memory",
	) {
		t.Errorf("got %+v", got)
	}
}

func TestShares(t *testing.T) {
	at := time.Unix(1000, 0)
	seconds := func(n float64) *time.Duration { d := time.Duration(n * float64(time.Second)); return &d }
	vcpus := 2
	node := &half{Hypervisor: fake.NewWire().Host("n1")}
	s := NewSampler(node, healthy())
	sample := func(after, delayAfter time.Duration, cpu, delay *time.Duration) *berthv1.DomainTelemetry {
		node.stats = []hypervisor.DomainStats{{
			UUID: "a", At: at.Add(after), CPUTime: cpu, VCPUs: &vcpus, DelayAt: at.Add(delayAfter), VCPUDelay: delay,
		}}
		return s.Sample(t.Context()).GetDomains()[0]
	}
	check := func(what string, got *float64, want float64) {
		t.Helper()
		if got == nil || *got != want {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	sample(0, 0, seconds(10), seconds(4))
	check("CPUs used", sample(2*time.Second, 0, seconds(13), seconds(4)).CpuRatio, 1.5)
	// Delay is read less often: its share holds until the next reading.
	later := sample(10*time.Second, 10*time.Second, seconds(13), seconds(9))
	check("idle", later.CpuRatio, 0)
	check("delay of each vCPU", later.VcpuDelayRatio, 0.25)
	check("delay, still", sample(12*time.Second, 10*time.Second, seconds(14), seconds(9)).VcpuDelayRatio, 0.25)
	// A counter that went back belongs to a new process.
	if again := sample(14*time.Second, 10*time.Second, seconds(1), seconds(9)); again.CpuRatio != nil {
		t.Errorf("after a restart: %v", *again.CpuRatio)
	}
	if blind := sample(16*time.Second, 10*time.Second, nil, seconds(9)); blind.CpuRatio != nil {
		t.Errorf("without a reading: %v", *blind.CpuRatio)
	}
}

func TestInventory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := fake.NewWire().Host("n1")
		boot(t, node, uuid, "web-1", 5)
		c := &Collector{
			Hypervisor: node, Identity: hoststat.Identity{HostName: "n1", MachineID: "m", BootID: "b"},
			MigrationURI: "qemu+tls://n1/system", DomainTypes: []string{"qemu"},
		}
		got := c.Inventory(t.Context())
		n := got.GetNode()
		if n.GetHostUuid() == "" || n.GetMemoryBytes() != 16<<30 || n.GetCpus() != 8 || n.GetArch() != "x86_64" || n.GetCpuModel() != "EPYC" ||
			n.GetMachineId() != "m" || n.GetBootId() != "b" || n.GetMigrationUri() != c.MigrationURI || len(n.GetStoragePools()) != 1 ||
			len(n.GetNetworks()) != 1 || !slices.Equal(
			n.GetBridges(), []string{"br0"},
		) || len(n.GetCpuModels()) != 3 || n.GetHostCpu() == "" || !slices.Equal(
			n.GetDomainTypes(), []string{"qemu"},
		) || len(n.GetErrors()) > 0 {
			t.Errorf("node: %+v", n)
		}
		want := []*berthv1.Domain{{
			Uuid: uuid, Name: "web-1", State: berthv1.DomainState_DOMAIN_STATE_RUNNING, StateReason: "booted", MemoryBytes: 1 << 30, Vcpus: 2,
			Managed: true, Epoch: 5, OperationId: "op-web-1", Devices: &berthv1.Devices{},
			Bindings: &berthv1.Bindings{},
		}}
		if diff := cmp.Diff(want, got.GetDomains(), protocmp.Transform()); diff != "" || got.GetDomainsUnknown() {
			t.Errorf("domains (-want +got):\n%s", diff)
		}

		// Without libvirt nothing is known of the domains, and the node is what it was.
		node.Stop()
		got = c.Inventory(t.Context())
		if !got.GetDomainsUnknown() || got.GetDomainsError() == "" || len(got.GetDomains()) > 0 {
			t.Errorf("domains: %+v", got)
		}
		if n := got.GetNode(); n.GetMemoryBytes() != 16<<30 || !slices.Contains(readings(n.GetErrors()), "host") {
			t.Errorf("node: %+v", n)
		}
		// An agent that has never reached libvirt does not know it.
		fresh := &Collector{Hypervisor: node, Identity: c.Identity}
		if n := fresh.Inventory(t.Context()).GetNode(); n.GetMemoryBytes() != 0 || n.GetHostName() != "n1" || !slices.Contains(
			readings(n.GetErrors()), "host",
		) {
			t.Errorf("node: %+v", n)
		}
	})
}

func TestStatesHaveWords(t *testing.T) {
	for state, want := range map[hypervisor.State]string{
		hypervisor.Absent: "ABSENT", hypervisor.Running: "RUNNING", hypervisor.Paused: "PAUSED", hypervisor.PausedMigration: "PAUSED_MIGRATION",
		hypervisor.Shutoff: "SHUTOFF", hypervisor.Crashed: "CRASHED", hypervisor.Starting: "UNKNOWN", "": "UNKNOWN", "new": "UNKNOWN",
	} {
		if got := strings.TrimPrefix(State(state).String(), "DOMAIN_STATE_"); got != want {
			t.Errorf("%q is %s, want %s", state, got, want)
		}
	}
}

// Two memories that agree are not compared at each sample. One that comes to differ is named in half a minute, and as long as it does.
func TestMemoriesThatAgreeAreComparedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := fake.NewWire().Host("n1")
		h.MemoryBytes = 16 << 30
		s := NewSampler(h, healthy())
		for second := range 90 {
			switch second {
			case 15:
				h.MemoryBytes = 64 << 30
			case 60:
				h.MemoryBytes = 16 << 30
			}
			differs := slices.Contains(readings(s.Sample(t.Context()).GetErrors()), "memory.total")
			if want := second >= 30 && second < 60; differs != want {
				t.Errorf("in second %d: named as different: %t, want %t", second, differs, want)
			}
			time.Sleep(time.Second)
		}
	})
}
