// Package telemetry turns what the hypervisor and the operating system say into the reports that an agent sends: a
// sample every few seconds, and the whole inventory now and then. What could not be read is named, never zero.
package telemetry

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/agent/hoststat"
	"berth/agent/hypervisor"
	"berth/agent/psi"
	berthv1 "berth/shared/gen/berth/v1"
)

// Host reads the operating system. Package hoststat implements it.
type Host interface {
	Read(ctx context.Context) hoststat.Sample
}

// Sampler makes samples. It remembers the last one, because CPU shares are differences. Not safe for concurrent use.
type Sampler struct {
	hypervisor hypervisor.Hypervisor
	host       Host
	sequence   uint64
	agreed     time.Time // when the two memories were last compared and were the same
	cpu        *hoststat.CPUTimes
	guests     map[string]guestTimes // by UUID
}

// guestTimes are a guest's growing counters at the last sample.
type guestTimes struct {
	at      time.Time
	cpu     *time.Duration
	delayAt time.Time
	delay   *time.Duration
	delayed *float64 // last known delay ratio; the counter is read less often than samples are taken
}

// NewSampler makes a sampler that has seen nothing yet: its first sample has no CPU shares.
func NewSampler(h hypervisor.Hypervisor, host Host) *Sampler {
	return &Sampler{hypervisor: h, host: host, guests: map[string]guestTimes{}}
}

// hypervisorLimit is how long a sample waits for the hypervisor. One that hangs must not make the node look silent.
const hypervisorLimit = time.Second

// Sample reads everything once.
func (s *Sampler) Sample(ctx context.Context) *berthv1.NodeTelemetry {
	begun := time.Now()
	s.sequence++
	out := &berthv1.NodeTelemetry{SampledAt: timestamppb.New(begun), Sequence: s.sequence}
	s.readHost(ctx, out)
	limited, cancel := context.WithTimeout(ctx, hypervisorLimit)
	defer cancel()
	s.readMemory(limited, out)
	s.readGuests(limited, out)
	out.CollectSeconds = time.Since(begun).Seconds()
	return out
}

func failed(out *berthv1.NodeTelemetry, reading string, err error) {
	out.Errors = append(out.Errors, &berthv1.ReadingError{Reading: reading, Message: err.Error()})
}

func (s *Sampler) readHost(ctx context.Context, out *berthv1.NodeTelemetry) {
	sample := s.host.Read(ctx)
	out.MemoryTotalBytes, out.MemoryFreeBytes, out.MemoryAvailableBytes = sample.TotalBytes, sample.FreeBytes, sample.AvailableBytes
	out.KsmSavedBytes = sample.KSMSavedBytes
	out.Load1, out.Load5, out.Load15 = sample.Load1, sample.Load5, sample.Load15
	out.CpuPressure, out.MemoryPressure, out.IoPressure = pressure(sample.CPUPressure), pressure(sample.MemoryPressure),
		pressure(sample.IOPressure)
	if s.cpu != nil && sample.CPU != nil {
		if busy, steal, ok := hoststat.Busy(*s.cpu, *sample.CPU); ok {
			out.CpuBusyRatio, out.CpuStealRatio = &busy, &steal
		}
	}
	s.cpu = sample.CPU
	for _, failure := range sample.Errors {
		failed(out, failure.Reading, failure.Err)
	}
}

// agreedFor is how long the hypervisor is not asked for memory of which it had said the same as the operating system.
const agreedFor = 30 * time.Second

// readMemory holds the hypervisor's view against the operating system's, which also knows what can be reclaimed, and
// fills in where that is missing. Both come from the same kernel: two that differ mean that one of them is not this node's. Two that agree
// are not compared again for a while.
func (s *Sampler) readMemory(ctx context.Context, out *berthv1.NodeTelemetry) {
	if out.MemoryTotalBytes != nil && time.Since(s.agreed) < agreedFor {
		return
	}
	memory, err := s.hypervisor.Memory(ctx)
	s.agreed = time.Time{}
	switch {
	case err != nil:
		failed(out, "hypervisor.memory", err)
	case out.MemoryTotalBytes == nil:
		out.MemoryTotalBytes, out.MemoryFreeBytes, out.MemoryAvailableBytes = &memory.TotalBytes, &memory.FreeBytes, memory.AvailableBytes
	case differ(memory.TotalBytes, *out.MemoryTotalBytes):
		failed(out, "memory.total", fmt.Errorf("the operating system has %d bytes, the hypervisor %d: does the agent run on the node itself?",
			*out.MemoryTotalBytes, memory.TotalBytes))
	default:
		s.agreed = time.Now()
	}
}

// differ tolerates rounding and a node that gains or loses a little between two readings.
func differ(a, b int64) bool { return max(a, b)-min(a, b) > max(a, b)/64 }

func (s *Sampler) readGuests(ctx context.Context, out *berthv1.NodeTelemetry) {
	stats, errs, err := s.hypervisor.Stats(ctx)
	if err != nil {
		failed(out, "domain.stats", err)
		return
	}
	for _, failure := range errs {
		failed(out, failure.Reading, failure.Err)
	}
	before := s.guests
	s.guests = make(map[string]guestTimes, len(stats))
	var memory int64
	var vcpus, running int32
	whole := true
	for _, guest := range stats {
		one := s.guest(guest, before[guest.UUID])
		out.Domains = append(out.Domains, one)
		running++
		if one.MaximumMemoryBytes == nil || one.Vcpus == nil {
			whole = false
			continue
		}
		memory += *one.MaximumMemoryBytes
		vcpus += *one.Vcpus
	}
	out.RunningDomains = &running
	if whole { // a sum with a hole would read as more room than there is
		out.AllocatedMemoryBytes, out.AllocatedVcpus = &memory, &vcpus
	}
}

func (s *Sampler) guest(now hypervisor.DomainStats, before guestTimes) *berthv1.DomainTelemetry {
	out := &berthv1.DomainTelemetry{
		Uuid: now.UUID, RssBytes: now.RSSBytes, BalloonBytes: now.BalloonBytes, MaximumMemoryBytes: now.MaximumBytes,
		Pressure: groupPressure(now.Pressure),
	}
	if now.VCPUs != nil {
		vcpus := int32(*now.VCPUs)
		out.Vcpus = &vcpus
	}
	out.CpuRatio = rate(before.cpu, now.CPUTime, now.At.Sub(before.at), 1)
	times := guestTimes{at: now.At, cpu: now.CPUTime, delayAt: now.DelayAt, delay: now.VCPUDelay, delayed: before.delayed}
	if now.VCPUs != nil && now.DelayAt.After(before.delayAt) {
		times.delayed = rate(before.delay, now.VCPUDelay, now.DelayAt.Sub(before.delayAt), *now.VCPUs)
	}
	out.VcpuDelayRatio = times.delayed
	s.guests[now.UUID] = times
	return out
}

// rate is how fast a growing counter grew, per second and part. Nil when either end is unknown or the counter went back,
// as it does when the guest was restarted.
func rate(before, after *time.Duration, over time.Duration, parts int) *float64 {
	if before == nil || after == nil || over <= 0 || parts <= 0 || *after < *before {
		return nil
	}
	value := (*after - *before).Seconds() / over.Seconds() / float64(parts)
	return &value
}

func pressure(p *psi.Pressure) *berthv1.Pressure {
	if p == nil {
		return nil
	}
	return &berthv1.Pressure{SomeAvg10: p.SomeAvg10, FullAvg10: p.FullAvg10}
}

func groupPressure(p *psi.All) *berthv1.DomainPressure {
	if p == nil {
		return nil
	}
	return &berthv1.DomainPressure{
		CpuSome: p.CPU.SomeAvg10, CpuFull: p.CPU.FullAvg10, MemorySome: p.Memory.SomeAvg10, MemoryFull: p.Memory.FullAvg10,
		IoSome: p.IO.SomeAvg10, IoFull: p.IO.FullAvg10,
	}
}
