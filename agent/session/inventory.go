package session

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"

	"google.golang.org/protobuf/proto"

	berthv1 "berth/shared/gen/berth/v1"
)

// extent says how much of an inventory is sent.
type extent bool

const (
	inShort extent = false // its digest will do, for a coordinator that has it
	inFull  extent = true
)

// reportInventory looks at the node and tells what there is. After a failover a thousand agents come in the same moment, and
// most of what they have to say every half a minute has not changed: so the digest goes first. A listing that failed has to be
// told whole, because it says that nothing is known. Known tells whether it succeeded.
func (c *connection) reportInventory(ctx context.Context, how extent) (known bool) {
	report := c.Collector.Inventory(ctx)
	digest := digestOf(report)
	if how == inShort && c.digests && digest != nil {
		c.put(ctx, &berthv1.SessionRequest{Message: &berthv1.SessionRequest_InventoryDigest{InventoryDigest: &berthv1.InventoryDigest{
			Digest: digest, CollectedAt: report.GetNode().GetCollectedAt(), StoragePools: report.GetNode().GetStoragePools(),
		}}}, false)
		return true
	}
	report.Digest = digest
	c.put(ctx, &berthv1.SessionRequest{Message: &berthv1.SessionRequest_Inventory{Inventory: report}}, false)
	return !report.GetDomainsUnknown()
}

// digestOf is the SHA-256 of all that an inventory tells beside its time and how much is free in the pools. It is compared
// only with what the same agent said before, so its encoding need not last. It is nil if the domains are not known.
func digestOf(report *berthv1.InventoryReport) []byte {
	if report.GetDomainsUnknown() {
		return nil
	}
	lasting := proto.CloneOf(report)
	slices.SortFunc(lasting.GetDomains(), func(a, b *berthv1.Domain) int { return cmp.Compare(a.GetUuid(), b.GetUuid()) })
	if node := lasting.GetNode(); node != nil {
		node.CollectedAt = nil
		slices.SortFunc(node.GetStoragePools(), func(a, b *berthv1.StoragePool) int { return cmp.Compare(a.GetName(), b.GetName()) })
		for _, pool := range node.GetStoragePools() {
			pool.AvailableBytes = 0
		}
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(lasting)
	if err != nil {
		return nil // text that is not UTF-8: the whole is sent, and the transport says what is wrong
	}
	sum := sha256.Sum256(data)
	return sum[:]
}
