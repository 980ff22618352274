package lastknown

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"google.golang.org/protobuf/proto"

	"berth/coordinator/model"
	"berth/coordinator/view"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
)

// Heard is what the leader hears, by its view, and the digest of that. Only what is not as usual has a line: a node that is not up or
// has not listed its domains, and a VM that does not run where it is held. On a site that is well there is nothing to tell, however large
// it is.
func Heard(v *view.View) (heard *berthv1.Heard, digest string) {
	heard = &berthv1.Heard{}
	for _, node := range v.Nodes.All() {
		facts := &node.Facts
		if facts.Liveness == model.Up && facts.DomainsKnown && facts.LivenessReason == "" && facts.Ailing == "" {
			continue
		}
		heard.Nodes = append(heard.Nodes, &berthv1.HeardNode{
			Id: node.Node.ID, State: wire.Liveness(facts.Liveness), Reason: facts.LivenessReason, Ailing: facts.Ailing,
			DomainsKnown: facts.DomainsKnown,
		})
	}
	for node, ids := range v.NotRunning() {
		if !node.Facts.DomainsKnown || node.Facts.Liveness == model.Unreachable {
			continue // what the node is says it of all its VMs
		}
		for _, id := range ids {
			domain := node.Facts.Domain(id)
			switch {
			case domain == nil:
				heard.Vms = append(heard.Vms, &berthv1.HeardVM{Id: id, State: berthv1.DomainState_DOMAIN_STATE_ABSENT})
			case domain.State != model.DomainRunning:
				heard.Vms = append(heard.Vms, &berthv1.HeardVM{Id: id, State: wire.DomainState(domain.State), StateReason: domain.Reason})
			}
		}
	}
	slices.SortFunc(heard.Vms, func(a, b *berthv1.HeardVM) int { return cmp.Compare(a.GetId(), b.GetId()) })
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(heard)
	if err != nil { // of text that is no UTF-8: what has no digest is told each time
		return heard, ""
	}
	sum := sha256.Sum256(text)
	return heard, hex.EncodeToString(sum[:])
}
