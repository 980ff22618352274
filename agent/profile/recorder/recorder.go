// Package recorder feeds weekly profiles with the samples that an agent takes anyhow, and keeps them across its restarts in a small file.
// The file is written when an hour has ended and when the agent ends: an agent that is killed loses the hour that ran.
package recorder

import (
	"context"
	"errors"
	"math"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/agent/profile"
	"berth/shared/config"
	berthv1 "berth/shared/gen/berth/v1"
)

// Sampler makes samples. Package telemetry implements it.
type Sampler interface {
	Sample(ctx context.Context) *berthv1.NodeTelemetry
}

// Recorder is a sampler whose samples become weekly profiles. It is safe for concurrent use.
type Recorder struct {
	sampler Sampler
	path    string
	node    string // ID
	log     hclog.Logger

	mu     sync.Mutex
	keeper *profile.Keeper
	turned chan struct{} // gets one when an hour has ended
}

// Open goes on with what is in a node's file. A file that is damaged, or another node's, is begun anew: profiles are not worth a refusal.
func Open(sampler Sampler, path, node string, log hclog.Logger) *Recorder {
	r := &Recorder{sampler: sampler, path: path, node: node, log: log, keeper: profile.New(), turned: make(chan struct{}, 1)}
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return r
	}
	var kept *profile.Keeper
	if err == nil {
		kept, err = profile.Decode(data, node)
	}
	if err != nil {
		log.Warn("weekly profiles are begun anew, because those of before cannot be used", "file", path, "error", err)
		return r
	}
	r.keeper = kept
	return r
}

// Sample takes a sample, and puts what it says into the profiles.
func (r *Recorder) Sample(ctx context.Context) *berthv1.NodeTelemetry {
	sample := r.sampler.Sample(ctx)
	guests := make(map[string]profile.Reading, len(sample.GetDomains()))
	for _, guest := range sample.GetDomains() {
		guests[guest.GetUuid()] = profile.Reading{
			profile.CPU: guest.CpuRatio, profile.Memory: float(guest.RssBytes), profile.Delay: guest.VcpuDelayRatio,
		}
	}
	node := profile.Reading{profile.CPU: sample.CpuBusyRatio, profile.Memory: used(sample), profile.Delay: delay(sample.GetDomains())}
	r.mu.Lock()
	turned := r.keeper.Add(sample.GetSampledAt().AsTime(), node, guests)
	r.mu.Unlock()
	if turned {
		select {
		case r.turned <- struct{}{}:
		default:
		}
	}
	return sample
}

func float(bytes *int64) *float64 {
	if bytes == nil {
		return nil
	}
	return new(float64(*bytes))
}

// used is what a host uses of its memory: all but what is free or could be at once.
func used(sample *berthv1.NodeTelemetry) *float64 {
	if sample.MemoryTotalBytes == nil || sample.MemoryAvailableBytes == nil {
		return nil
	}
	return new(float64(*sample.MemoryTotalBytes - *sample.MemoryAvailableBytes))
}

// delay is the part of the time that the vCPUs of a host waited for a CPU, on average. Guests of which nothing tells do not count.
func delay(guests []*berthv1.DomainTelemetry) *float64 {
	var waited, vcpus float64
	for _, guest := range guests {
		if guest.VcpuDelayRatio != nil && guest.GetVcpus() > 0 {
			waited, vcpus = waited+*guest.VcpuDelayRatio*float64(guest.GetVcpus()), vcpus+float64(guest.GetVcpus())
		}
	}
	if vcpus == 0 {
		return nil
	}
	return new(waited / vcpus)
}

// Week is what is known of a guest by its UUID, or without one of the node itself.
func (r *Recorder) Week(guest string, now time.Time) []*berthv1.ProfileHour {
	r.mu.Lock()
	known := r.keeper.Week(guest, now)
	r.mu.Unlock()
	return told(known)
}

// Minutes is what is known of the last hour minute by minute, likewise.
func (r *Recorder) Minutes(guest string, now time.Time) []*berthv1.ProfileHour {
	r.mu.Lock()
	known := r.keeper.Minutes(guest, now)
	r.mu.Unlock()
	return told(known)
}

func told(known []profile.Hour) []*berthv1.ProfileHour {
	hours := make([]*berthv1.ProfileHour, 0, len(known))
	for _, hour := range known {
		told := &berthv1.ProfileHour{
			BeganAt: timestamppb.New(hour.Began), CpuRatio: hour.Figures[profile.CPU], VcpuDelayRatio: hour.Figures[profile.Delay],
		}
		if bytes := hour.Figures[profile.Memory]; bytes != nil {
			told.MemoryBytes = new(int64(math.Round(*bytes)))
		}
		hours = append(hours, told)
	}
	return hours
}

// Run writes the file whenever an hour has ended, and once more when the context ends. A disk that hangs holds up no sample.
func (r *Recorder) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			r.save()
			return
		case <-r.turned:
			r.save()
		}
	}
}

func (r *Recorder) save() {
	r.mu.Lock()
	kept := r.keeper.Copy(r.node)
	r.mu.Unlock()
	data, err := kept.Encode()
	if err == nil {
		err = config.WriteFile(r.path, data, 0o600)
	}
	if err != nil {
		r.log.Warn("the weekly profiles could not be saved: they are tried again in an hour", "file", r.path, "error", err)
	}
}
