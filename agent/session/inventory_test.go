package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/fake"
	"berth/agent/telemetry"
	berthv1 "berth/shared/gen/berth/v1"
)

// A leader that takes digests is told the whole inventory only when it asks. A digest is of what lasts: as long as nothing
// changes it is the same, and after a change another one.
func TestTheDigestGoesFirst(t *testing.T) {
	told := make(chan *berthv1.SessionRequest, 64)
	orders := make(chan *berthv1.SessionResponse, 4)
	address, client := listen(t, &leader{serve: func(
		ctx context.Context, stream *connect.BidiStream[berthv1.SessionRequest, berthv1.SessionResponse],
	) error {
		if _, err := stream.Receive(); err != nil {
			return err
		}
		first := welcome()
		first.GetWelcome().Digests = true
		if err := stream.Send(first); err != nil {
			return err
		}
		// The next message does not come when one could not be sent, and the test says so.
		defer relay(ctx, orders, func(order *berthv1.SessionResponse) { _ = stream.Send(order) })()
		for {
			message, err := stream.Receive()
			if err != nil {
				return nil
			}
			if message.GetInventory() != nil || message.GetInventoryDigest() != nil {
				told <- message
			}
		}
	}})
	a := run(t, client, nil, address)
	resync := func() *berthv1.InventoryReport {
		orders <- &berthv1.SessionResponse{Message: &berthv1.SessionResponse_Resync{Resync: &berthv1.ResyncRequest{Reason: "test"}}}
		return wait(t, "the whole inventory", told).GetInventory()
	}
	digest := wait(t, "the first word", told).GetInventoryDigest()
	if digest == nil || len(digest.GetDigest()) != sha256.Size || !digest.GetCollectedAt().IsValid() {
		t.Fatalf("it begins with %v", digest)
	}
	for range 2 {
		whole := resync()
		if whole == nil || !bytes.Equal(whole.GetDigest(), digest.GetDigest()) || whole.GetNode().GetMemoryBytes() == 0 {
			t.Fatalf("asked for everything, it told %v", whole)
		}
	}
	const xml = `<domain type="kvm"><name>web1</name><uuid>11111111-2222-4333-8444-555555555555</uuid>` +
		`<memory>65536</memory><vcpu>1</vcpu><os><type>hvm</type></os><devices>` +
		`<disk type="file" device="disk"><source file="/srv/web1.raw"/><target dev="vda" bus="virtio"/></disk>` +
		`<hostdev mode="subsystem" type="usb"><source><address bus="1" device="2"/></source></hostdev></devices></domain>`
	if err := a.node.Start(t.Context(), xml); err != nil {
		t.Fatal(err)
	}
	whole := resync()
	if len(whole.GetDomains()) != 1 || bytes.Equal(whole.GetDigest(), digest.GetDigest()) {
		t.Errorf("another domain made no other digest: %v", whole)
	}
	if one := whole.GetDomains()[0]; len(one.GetDevices().GetDevices()) != 1 || len(one.GetBindings().GetBindings()) != 1 {
		t.Errorf("of its devices it tells %v", one)
	}
	for range 3 { // while nothing changes a guest's devices and bindings are not sent
		a.askInventory()
		again := wait(t, "a digest", told)
		again.GetInventoryDigest().StoragePools = nil
		if !bytes.Equal(again.GetInventoryDigest().GetDigest(), whole.GetDigest()) || proto.Size(again) > 100 {
			t.Errorf("with nothing changed it sent %v", again)
		}
	}
	a.work.ended.Store(&[]telemetry.Ending{{UUID: "gone", Watched: time.Minute, Whole: true}})
	if whole := resync(); len(whole.GetDomains()) != 2 || whole.GetDomains()[1].GetEnding().GetWatchedSeconds() != 60 {
		t.Errorf("how a guest has ended is not told: %v", whole.GetDomains())
	}
	a.askInventory()
	if digest := wait(t, "the next digest", told).GetInventoryDigest(); digest == nil {
		t.Error("it told everything without being asked")
	}
}

// What changes by itself is not in a digest, and the order of a list is not either.
func TestADigestIsOfWhatLasts(t *testing.T) {
	report := func(change func(*berthv1.InventoryReport)) []byte {
		r := &berthv1.InventoryReport{
			Node: &berthv1.NodeInventory{
				MemoryBytes: 1 << 30, CollectedAt: timestamppb.New(time.Unix(1, 0)),
				StoragePools: []*berthv1.StoragePool{{Name: "a", AvailableBytes: 1}, {Name: "b", AvailableBytes: 2}},
			},
			Domains: []*berthv1.Domain{
				{Uuid: "1", State: berthv1.DomainState_DOMAIN_STATE_RUNNING}, {Uuid: "2", Ending: &berthv1.Ending{WatchedSeconds: 5, EndedSeconds: 1}},
			},
		}
		change(r)
		return DigestOf(r)
	}
	was := report(func(*berthv1.InventoryReport) {})
	for what, change := range map[string]func(*berthv1.InventoryReport){
		"time":             func(r *berthv1.InventoryReport) { r.Node.CollectedAt = timestamppb.Now() },
		"free space":       func(r *berthv1.InventoryReport) { r.Node.StoragePools[0].AvailableBytes = 9 },
		"order of domains": func(r *berthv1.InventoryReport) { slices.Reverse(r.Domains) },
		"age of an ending": func(r *berthv1.InventoryReport) {
			r.Domains[1].Ending.EndedSeconds, r.Domains[1].Ending.WatchedSeconds = 7, 9
		},
		"order of pools": func(r *berthv1.InventoryReport) { slices.Reverse(r.Node.StoragePools) },
	} {
		if !bytes.Equal(report(change), was) {
			t.Errorf("another %s makes another digest", what)
		}
	}
	for what, change := range map[string]func(*berthv1.InventoryReport){
		"ending":  func(r *berthv1.InventoryReport) { r.Domains[1].Ending = nil },
		"memory":  func(r *berthv1.InventoryReport) { r.Node.MemoryBytes++ },
		"pool":    func(r *berthv1.InventoryReport) { r.Node.StoragePools[0].Active = true },
		"domain":  func(r *berthv1.InventoryReport) { r.Domains = r.Domains[:1] },
		"epoch":   func(r *berthv1.InventoryReport) { r.Domains[0].Epoch = 4 },
		"state":   func(r *berthv1.InventoryReport) { r.Domains[0].State = berthv1.DomainState_DOMAIN_STATE_PAUSED },
		"listing": func(r *berthv1.InventoryReport) { r.DomainsUnknown = true },
	} {
		if bytes.Equal(report(change), was) {
			t.Errorf("another %s makes no other digest", what)
		}
	}
}

// A listing that fails is made again soon, also when nothing happens on the node: until one succeeds it gets no VMs.
func TestAListingThatFailedIsMadeAgainSoon(t *testing.T) {
	told := make(chan *berthv1.SessionRequest, 64)
	address, client := listen(t, &leader{serve: func(
		_ context.Context, stream *connect.BidiStream[berthv1.SessionRequest, berthv1.SessionResponse],
	) error {
		if _, err := stream.Receive(); err != nil {
			return err
		}
		first := welcome()
		first.GetWelcome().InventoryIntervalSeconds = 10
		if err := stream.Send(first); err != nil {
			return err
		}
		for {
			message, err := stream.Receive()
			if err != nil {
				return nil
			}
			if message.GetInventory() != nil || message.GetLibvirt() != nil {
				told <- message
			}
		}
	}})
	a := run(t, client, nil, address)
	for wait(t, "the first listing", told).GetInventory() == nil {
	}
	a.node.Inject("domains", fake.Fault{Err: hypervisor.ErrInvalidState, Times: 1})
	a.askInventory()
	if report := wait(t, "the listing that fails", told).GetInventory(); !report.GetDomainsUnknown() {
		t.Fatalf("it is told: %v", report)
	}
	// When the interval is over, the state of the connection to libvirt is told before the inventory.
	if next := wait(t, "the next listing", told); next.GetInventory() == nil || next.GetInventory().GetDomainsUnknown() {
		t.Errorf("the next is %v", next)
	}
}
