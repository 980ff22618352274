package session

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"

	"google.golang.org/protobuf/proto"

	"berth/agent/telemetry"
	berthv1 "berth/shared/gen/berth/v1"
)

// extent says how much of an inventory is sent.
type extent bool

const (
	inShort extent = false // its digest will do, for a coordinator that has it
	inFull  extent = true
)

// reportInventory reads the node and reports it. After a failover a thousand agents reconnect at once, and most of their
// inventories have not changed: so the digest goes first. After a failed listing the whole inventory must go, because it says
// that the domains are not known. Known tells whether the listing succeeded.
func (c *connection) reportInventory(ctx context.Context, how extent) (known bool) {
	report := c.Collector.Inventory(ctx)
	telemetry.AddEndings(report, c.Jobs.Endings())
	telemetry.AddLastRuns(report, c.Jobs.LastRuns())
	c.tryPools(report)
	digest := DigestOf(report)
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

// tryPools has the folders of the pools tried that have one.
func (c *connection) tryPools(report *berthv1.InventoryReport) {
	pools := report.GetNode().GetStoragePools()
	if c.Health == nil || len(pools) == 0 {
		return // nothing is listed where libvirt hangs, and what was tried is tried on
	}
	folders := map[string]string{}
	for _, pool := range pools {
		if pool.GetActive() && (pool.GetType() == "dir" || pool.GetType() == "netfs" || pool.GetType() == "fs") && pool.GetPath() != "" {
			folders[pool.GetName()] = pool.GetPath()
		}
	}
	c.Health.Pools(folders)
}

// DigestOf is the SHA-256 of an inventory without its time, the free space in pools and how long ago guests have ended. It is
// compared only with digests of the same agent, so its encoding may change. It is nil if the domains are not known.
func DigestOf(report *berthv1.InventoryReport) []byte {
	if report.GetDomainsUnknown() {
		return nil
	}
	lasting := proto.CloneOf(report)
	for _, domain := range lasting.GetDomains() {
		if ending := domain.GetEnding(); ending != nil {
			ending.WatchedSeconds, ending.EndedSeconds = 0, 0
		}
	}
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
