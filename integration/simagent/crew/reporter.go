package crew

import (
	"context"
	"crypto/rand"
	mathrand "math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/integration/bench/testbed"
	"berth/integration/simagent"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// SampleSize is about how large a report is that does nothing but load a coordinator, in bytes.
const SampleSize = 1000

// reporter is a node that does nothing but report, at a pace of its own: one connection, one session and one sample each interval.
type reporter struct {
	identity simagent.Identity
	address  string // of whom it reports to
	every    time.Duration

	sent atomic.Int64

	mu    sync.Mutex
	open  bool
	last  time.Time // welcome
	times int       // of welcomes
}

func (r *reporter) welcomed(open bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open = open; open {
		r.last = time.Now()
		r.times++
	}
}

func (r *reporter) state() (open bool, last time.Time, times int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open, r.last, r.times
}

// run keeps one session open as a real agent would: the pause before another try is drawn anew each time, and grows.
func (r *reporter) run(ctx context.Context) {
	secure, err := pki.ClientConfig(r.identity.Files, pki.RolePeer)
	if err != nil {
		return // whoever waits for it tells that one is missing
	}
	client := rpc.NewHTTPClient(secure)
	defer client.CloseIdleConnections()
	for tries := 0; ctx.Err() == nil; tries++ {
		began := time.Now()
		r.session(ctx, client)
		if time.Since(began) > r.every {
			tries = 0
		}
		_ = testbed.Pause(ctx, mathrand.N(500*time.Millisecond<<min(tries, 6)))
	}
}

// session reports until the session ends.
func (r *reporter) session(ctx context.Context, client *http.Client) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream := berthv1connect.NewAgentServiceClient(client, "https://"+r.address).Session(ctx)
	hangUp := context.AfterFunc(ctx, func() { _ = stream.CloseRequest() })
	defer hangUp()
	sequence := uint64(0)
	send := func(message *berthv1.SessionRequest) error {
		sequence++
		message.Sequence = sequence
		return stream.Send(message)
	}
	hello := &berthv1.Hello{NodeId: r.identity.NodeID, ClusterId: r.identity.ClusterID, Incarnation: rand.Text(), Version: "simulated"}
	if send(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Hello{Hello: hello}}) != nil {
		return
	}
	if first, err := stream.Receive(); err != nil || first.GetWelcome() == nil {
		return
	}
	r.welcomed(true)
	defer r.welcomed(false)
	go func() { // what is asked of it is not heeded
		for {
			if _, err := stream.Receive(); err != nil {
				cancel()
				return
			}
		}
	}()
	if send(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Inventory{Inventory: InventoryOf(r.identity)}}) != nil {
		return
	}
	for wait := mathrand.N(r.every); testbed.Pause(ctx, wait) == nil; wait = r.every {
		if send(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Telemetry{Telemetry: ReportOf(0)}}) != nil {
			return
		}
		r.sent.Add(1)
	}
}

// InventoryOf is the inventory of a node without domains.
func InventoryOf(identity simagent.Identity) *berthv1.InventoryReport {
	return &berthv1.InventoryReport{Node: &berthv1.NodeInventory{
		HostName: identity.Name, HostUuid: identity.HostUUID, MachineId: identity.HostUUID, BootId: identity.HostUUID,
		MemoryBytes: int64(testbed.SimulatedSize.Memory), Cpus: int32(testbed.SimulatedSize.CPUs), Arch: "x86_64", DomainTypes: []string{"qemu"},
		CollectedAt: timestamppb.Now(),
	}}
}

// ReportOf is a sample of a node with some domains, of about SampleSize bytes. Busy is what its load says.
func ReportOf(busy float64) *berthv1.NodeTelemetry {
	total, free := int64(testbed.SimulatedSize.Memory), int64(testbed.SimulatedSize.Memory)/2
	sample := &berthv1.NodeTelemetry{
		SampledAt: timestamppb.Now(), MemoryTotalBytes: &total, MemoryFreeBytes: &free, MemoryAvailableBytes: &free, Load1: &busy,
		CpuBusyRatio: &busy,
	}
	one, cpus, ratio := int64(64<<20), int32(1), 0.01
	for range (SampleSize - 80) / 72 { // each domain is about 72 bytes
		sample.Domains = append(sample.Domains, &berthv1.DomainTelemetry{
			Uuid: "00000000-0000-4000-8000-000000000000", CpuRatio: &ratio, RssBytes: &one, BalloonBytes: &one,
			MaximumMemoryBytes: &one, Vcpus: &cpus,
		})
	}
	return sample
}
