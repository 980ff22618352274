package inventory

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	berthv1 "berth/shared/gen/berth/v1"
)

// Has tells whether an agent's digest stands for what is known of its node. If not, the agent has to be asked for the whole
// inventory.
func (x *Session) Has(digest []byte) bool {
	s := x.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	n := s.nodes[x.node]
	return n != nil && n.session == x && n.has(digest)
}

func (n *node) has(digest []byte) bool {
	return n.digest != "" && n.digest == string(digest) && n.inventory != nil
}

// inventoryWith is the inventory that a digest stands for: the one that is known, with what the digest leaves out.
func (n *node) inventoryWith(digest *berthv1.InventoryDigest) *berthv1.InventoryReport {
	report := &berthv1.InventoryReport{Node: proto.CloneOf(n.inventory), Digest: digest.GetDigest()}
	report.Node.CollectedAt = digest.GetCollectedAt()
	report.Node.StoragePools = digest.GetStoragePools()
	for _, uuid := range slices.Sorted(maps.Keys(n.domains)) {
		report.Domains = append(report.Domains, n.domains[uuid].wire)
	}
	return report
}
