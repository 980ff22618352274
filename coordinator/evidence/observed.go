package evidence

import (
	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// Observed is what a node shows of a VM now, as the one sees it who decides about an operation. A node that does not tell shows it unknown;
// one that is proven to be off does not have it.
func (s *Survey) Observed(node, vm string) operation.Observation {
	one := s.of(node)
	if one == nil {
		return operation.Observation{State: model.DomainUnknown}
	}
	facts := &one.facts
	switch tells := facts.Liveness == model.Up && facts.Inventory && facts.DomainsKnown; {
	case one.worth == off:
		return operation.Observation{State: model.DomainAbsent}
	case !tells:
		return operation.Observation{State: model.DomainUnknown}
	}
	domain := facts.Domain(vm)
	if domain == nil {
		return operation.Observation{State: model.DomainAbsent}
	}
	return operation.Observation{State: operation.Seen(domain.State), Epoch: domain.Epoch, JobActive: domain.JobActive}
}
