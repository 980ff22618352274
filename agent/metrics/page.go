package metrics

import (
	"slices"
	"time"

	"berth/shared/exposition"
	berthv1 "berth/shared/gen/berth/v1"
)

var (
	connected = gauge("berth_agent_libvirt_connected", "Whether libvirt can be used (1) or not (0)")
	orders    = gauge("berth_agent_orders", "Orders that are in work")
	contact   = gauge("berth_agent_leader_contact_seconds", "Time since the agent and the leader last spoke")
	sampleAge = gauge("berth_host_sample_age_seconds", "Age of the other figures of the host and its guests; none are taken without a leader")
	pressures = gauge("berth_host_pressure_ratio",
		"Share of the last ten seconds in which some or all work waited for a CPU, for memory or for disks (PSI)", "resource", "kind")

	guestPressures = gauge("berth_guest_pressure_ratio",
		"Share of the last ten seconds in which some or all of a guest's threads waited for a CPU, for memory or for disks (PSI)",
		"uuid", "resource", "kind")

	guestInfo = gauge("berth_guest_info", "1; what a guest is called. The other figures of guests have the UUID alone", "uuid", "guest")
)

// hostFigure is one figure of the host. It is nil where it could not be read.
type hostFigure struct {
	family exposition.Family
	of     func(*berthv1.NodeTelemetry) *float64
}

var hostFigures = []hostFigure{
	{
		gauge("berth_host_cpu_steal_ratio", "Share of the host's CPU time that a hypervisor below it has taken"),
		func(s *berthv1.NodeTelemetry) *float64 { return s.CpuStealRatio },
	},
	{
		gauge("berth_host_cpu_busy_ratio", "Share of the host's CPU time that was used"),
		func(s *berthv1.NodeTelemetry) *float64 { return s.CpuBusyRatio },
	},
	{gauge("berth_host_load1", "Load average over one minute"), func(s *berthv1.NodeTelemetry) *float64 { return s.Load1 }},
	{
		gauge("berth_host_memory_bytes", "Physical memory"),
		func(s *berthv1.NodeTelemetry) *float64 { return number(s.MemoryTotalBytes) },
	},
	{
		gauge("berth_host_memory_available_bytes", "Memory that is free or could be at once"),
		func(s *berthv1.NodeTelemetry) *float64 { return number(s.MemoryAvailableBytes) },
	},
	{
		gauge("berth_host_memory_promised_bytes", "Memory that all running guests were promised"),
		func(s *berthv1.NodeTelemetry) *float64 { return number(s.AllocatedMemoryBytes) },
	},
	{
		gauge("berth_host_memory_ksm_saved_bytes", "Memory that KSM saves now"),
		func(s *berthv1.NodeTelemetry) *float64 { return number(s.KsmSavedBytes) },
	},
	{
		gauge("berth_host_vcpus_promised", "vCPUs of all running guests"),
		func(s *berthv1.NodeTelemetry) *float64 { return number(s.AllocatedVcpus) },
	},
	{gauge("berth_host_guests", "Guests that run"), func(s *berthv1.NodeTelemetry) *float64 { return number(s.RunningDomains) }},
	{
		gauge("berth_host_sample_seconds", "Time that the last sample took"),
		func(s *berthv1.NodeTelemetry) *float64 { return &s.CollectSeconds },
	},
}

// guestFigure is one figure of each guest.
type guestFigure struct {
	family exposition.Family
	of     func(*berthv1.DomainTelemetry) *float64
}

var guestFigures = []guestFigure{
	{
		gauge("berth_guest_vcpu_delay_ratio", "Share of the time in which a vCPU of the guest waited for a CPU", "uuid"),
		func(g *berthv1.DomainTelemetry) *float64 { return g.VcpuDelayRatio },
	},
	{
		gauge("berth_guest_cpus_used", "CPUs that the guest used over the last interval; 1 is one whole CPU", "uuid"),
		func(g *berthv1.DomainTelemetry) *float64 { return g.CpuRatio },
	},
	{
		gauge("berth_guest_vcpus", "vCPUs of the guest", "uuid"),
		func(g *berthv1.DomainTelemetry) *float64 { return number(g.Vcpus) },
	},
	{
		gauge("berth_guest_memory_resident_bytes", "Memory of the host that the guest has now", "uuid"),
		func(g *berthv1.DomainTelemetry) *float64 { return number(g.RssBytes) },
	},
	{
		gauge("berth_guest_memory_balloon_bytes", "Memory that its balloon leaves the guest", "uuid"),
		func(g *berthv1.DomainTelemetry) *float64 { return number(g.BalloonBytes) },
	},
	{
		gauge("berth_guest_memory_promised_bytes", "Memory that the guest was promised", "uuid"),
		func(g *berthv1.DomainTelemetry) *float64 { return number(g.MaximumMemoryBytes) },
	},
}

// Families are all that Collect may write.
func Families() []*exposition.Family {
	families := []*exposition.Family{&connected, &orders, &contact, &sampleAge, &pressures, &guestPressures, &guestInfo}
	for i := range hostFigures {
		families = append(families, &hostFigures[i].family)
	}
	for i := range guestFigures {
		families = append(families, &guestFigures[i].family)
	}
	return families
}

// kept is what a page is made of.
type kept struct {
	sample         *berthv1.NodeTelemetry
	sampled, heard time.Time
	names          []named
}

func (h *Host) kept() kept {
	h.mu.Lock()
	defer h.mu.Unlock()
	return kept{h.sample, h.sampled, h.heard, h.names}
}

// Collect writes a page.
func (h *Host) Collect(page *exposition.Page) {
	now, k := time.Now(), h.kept()
	page.Flag(&connected, h.Connected())
	page.Sample(&orders, float64(h.Orders()))
	if !k.heard.IsZero() {
		page.Sample(&contact, now.Sub(k.heard).Seconds())
	}
	if k.sample == nil {
		return
	}
	page.Sample(&sampleAge, now.Sub(k.sampled).Seconds())
	for _, one := range []struct {
		resource string
		pressure *berthv1.Pressure
	}{
		{"cpu", k.sample.GetCpuPressure()}, {"memory", k.sample.GetMemoryPressure()}, {"io", k.sample.GetIoPressure()},
	} {
		if one.pressure != nil {
			writePressure(page, &pressures, one.pressure.GetSomeAvg10(), one.pressure.GetFullAvg10(), one.resource)
		}
	}
	for i := range hostFigures {
		page.Known(&hostFigures[i].family, hostFigures[i].of(k.sample))
	}
	for _, guest := range k.names {
		if slices.ContainsFunc(k.sample.GetDomains(), func(g *berthv1.DomainTelemetry) bool { return g.GetUuid() == guest.uuid }) {
			page.Sample(&guestInfo, 1, guest.uuid, guest.name)
		}
	}
	for i := range guestFigures {
		for _, guest := range k.sample.GetDomains() {
			page.Known(&guestFigures[i].family, guestFigures[i].of(guest), guest.GetUuid())
		}
	}
	writeGuestPressures(page, k.sample.GetDomains())
}

func writeGuestPressures(page *exposition.Page, guests []*berthv1.DomainTelemetry) {
	for _, guest := range guests {
		of := guest.GetPressure()
		if of == nil {
			continue
		}
		writePressure(page, &guestPressures, of.CpuSome, of.CpuFull, guest.GetUuid(), "cpu")
		writePressure(page, &guestPressures, of.MemorySome, of.MemoryFull, guest.GetUuid(), "memory")
		writePressure(page, &guestPressures, of.IoSome, of.IoFull, guest.GetUuid(), "io")
	}
}

// writePressure writes the shares of time, 0 to 100, in which some and all of something stalled. The kind is the last label.
func writePressure(page *exposition.Page, of *exposition.Family, some, full float64, labels ...string) {
	page.Sample(of, some/100, append(slices.Clip(labels), "some")...)
	page.Sample(of, full/100, append(slices.Clip(labels), "full")...)
}

func gauge(name, help string, labels ...string) exposition.Family {
	return exposition.Family{Name: name, Help: help, Type: exposition.Gauge, Labels: labels}
}

func number[N int32 | int64](value *N) *float64 {
	if value == nil {
		return nil
	}
	return new(float64(*value))
}
