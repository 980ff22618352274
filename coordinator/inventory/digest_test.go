package inventory

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

func (a *agent) whole(digest string, domains ...*berthv1.Domain) {
	a.t.Helper()
	if !a.report(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Inventory{Inventory: &berthv1.InventoryReport{
		Node: &berthv1.NodeInventory{
			MemoryBytes: 64 << 30, Cpus: 16, CollectedAt: timestamppb.Now(),
			StoragePools: []*berthv1.StoragePool{{Name: "fast", Active: true, CapacityBytes: 100 << 30, AvailableBytes: 50 << 30}},
		},
		Domains: domains, Digest: []byte(digest),
	}}}) {
		a.t.Fatal("the inventory was not taken")
	}
}

// digest tells whether it stands for what is known; if it does, available bytes are in the pool.
func (a *agent) digest(text string, available units.Bytes) bool {
	a.t.Helper()
	if !a.report(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_InventoryDigest{InventoryDigest: &berthv1.InventoryDigest{
		Digest: []byte(text), CollectedAt: timestamppb.Now(),
		StoragePools: []*berthv1.StoragePool{{Name: "fast", Active: true, CapacityBytes: 100 << 30, AvailableBytes: int64(available)}},
	}}}) {
		a.t.Fatal("the digest was not taken")
	}
	return a.session.Has([]byte(text))
}

// A digest that is known is as good as the whole inventory: the node's domains count as listed now, in this session too.
func TestADigestStandsForTheInventory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		a := connect(t, store, "n1")
		if a.digest("one", 0) {
			t.Fatal("a new leader has an inventory")
		}
		a.whole("one", running("a"), running("b"))
		began := store.Facts("n1", time.Now()).Domains[0].Since
		time.Sleep(time.Minute)
		a.boot = "boot-1/2"
		a.reconnect()
		if facts := store.Facts("n1", time.Now()); facts.DomainsKnown {
			t.Fatal("the domains are known before the session has told any")
		}
		if !a.digest("one", 7*units.GiB) {
			t.Fatal("the same inventory would be sent again")
		}
		facts := store.Facts("n1", time.Now())
		if !facts.DomainsKnown || len(facts.Domains) != 2 || facts.Domains[0].Since != began ||
			!facts.InventoryAt.Equal(time.Now()) || facts.InventoryFrom != "boot-1/2" {
			t.Errorf("after the digest: %+v", facts)
		}
		if len(facts.Pools) != 1 || facts.Pools[0].Available != 7*units.GiB || facts.Memory != 64*units.GiB {
			t.Errorf("around the domains: %+v", facts.Pools)
		}
	})
}

// What the leader has been told of since is no longer what the digest was made of, even if it is so again.
func TestADigestIsVoidAfterAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		a := connect(t, store, "n1")
		a.whole("one", running("a"))
		a.change("started", running("b"))
		a.change("stopped", inState("b", berthv1.DomainState_DOMAIN_STATE_ABSENT))
		if a.digest("one", 0) {
			t.Error("a digest from before two changes counted")
		}
		a.whole("one", running("a"))
		if !a.digest("one", 0) || a.digest("two", 0) || !a.digest("one", 0) {
			t.Error("an inventory that was told anew did not count, or another one did")
		}
		a.report(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Inventory{Inventory: &berthv1.InventoryReport{
			Node: &berthv1.NodeInventory{MemoryBytes: 1}, DomainsUnknown: true, DomainsError: "libvirtd hangs", Digest: []byte("none"),
		}}})
		if a.digest("one", 0) || a.digest("none", 0) || store.Facts("n1", time.Now()).DomainsKnown {
			t.Error("a listing that failed is taken for one")
		}
		a.inventory(running("a")) // of an agent that makes no digests
		if a.digest("", 0) {
			t.Error("no digest counted as one")
		}
		a.whole("one", running("a"))
		store.Reset()
		a = connect(t, store, "n1")
		if a.digest("one", 0) || store.Facts("n1", time.Now()).Liveness != model.Up {
			t.Error("a new leadership believes what an earlier one was told")
		}
	})
}
