package wire

import (
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/evidence"
	"berth/coordinator/view"
	berthv1 "berth/shared/gen/berth/v1"
)

var lockVerdicts = map[evidence.LockVerdict]berthv1.PoolLocksVerdict{
	evidence.LocksReach: berthv1.PoolLocksVerdict_POOL_LOCKS_VERDICT_REACH,
	evidence.LocksStay:  berthv1.PoolLocksVerdict_POOL_LOCKS_VERDICT_STAY,
	evidence.NotShared:  berthv1.PoolLocksVerdict_POOL_LOCKS_VERDICT_NOT_SHARED,
}

// PoolLocks makes the message of what is known of the locks of a shared pool.
func PoolLocks(locks evidence.Locks) *berthv1.PoolLocks {
	message := &berthv1.PoolLocks{
		Verdict: lockVerdicts[locks.Verdict], Why: locks.Why, Tried: int32(locks.Tried), Nodes: int32(locks.Nodes),
	}
	for _, side := range locks.Sides {
		message.Sides = append(message.Sides, &berthv1.PoolSide{Nodes: side})
	}
	if !locks.At.IsZero() {
		message.TriedAt = timestamppb.New(locks.At)
	}
	return message
}

// Pool makes the message of one storage pool, without what is in it. Name tells what people call a node.
func Pool(pool view.PoolView, name func(node string) string) *berthv1.Pool {
	message := &berthv1.Pool{
		Name: pool.Record.Name, Cluster: pool.Cluster, Scope: string(pool.Settings.Scope), Source: pool.Settings.Source,
		OverProvisioning: pool.Settings.OverProvisioning, HaWithoutLock: pool.Settings.HAWithoutLock,
	}
	for _, share := range pool.Shares {
		m := &berthv1.PoolShare{
			CapacityBytes: int64(share.Capacity), AvailableBytes: int64(share.Available), PromisedBytes: int64(share.Promised),
			LimitBytes: int64(share.Limit), Disks: int32(share.Disks),
		}
		for _, node := range share.Nodes {
			m.Nodes = append(m.Nodes, name(node))
		}
		for _, lacks := range share.Missing {
			m.Missing = append(m.Missing, name(lacks.Node)+": "+lacks.String())
		}
		slices.Sort(m.Nodes)
		slices.Sort(m.Missing)
		message.Shares = append(message.Shares, m)
	}
	// A share of a local pool is one node's: they come by name, as nodes do elsewhere.
	slices.SortStableFunc(message.Shares, func(a, b *berthv1.PoolShare) int {
		return slices.Compare(slices.Concat(a.GetNodes(), a.GetMissing()), slices.Concat(b.GetNodes(), b.GetMissing()))
	})
	return message
}
