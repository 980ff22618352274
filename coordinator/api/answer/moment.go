package answer

import (
	"context"
	"time"

	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/coordinator/view"
)

// Moment is what an answer is made of: one snapshot of the records, and the facts as of the same time.
type Moment struct {
	*state.Snapshot
	At     time.Time
	Soft   Inventory
	viewed *view.View            // nil until somebody asks for it: making it counts every VM
	joined *membership           // nil until somebody asks for it: it looks at every group
	drains map[string]model.Plan // live drains by node; nil until somebody asks for them

	clusters func(*model.VM) string // nil until somebody asks for it: it may look at every cluster
}

// Present is the moment as this member knows it, which may be old.
func (s *Source) Present() *Moment {
	snapshot, at := s.Store.Snapshot(), s.Now()
	return &Moment{Snapshot: snapshot, At: at, Soft: s.Inventory}
}

// View is the view of the moment, with all accounting done.
func (p *Moment) View() *view.View {
	if p.viewed == nil {
		p.viewed = p.Soft.View(p.Snapshot, p.At)
	}
	return p.viewed
}

// Verified takes a moment that holds everything that was committed before the call.
func (s *Source) Verified(ctx context.Context) (*Moment, error) {
	if err := s.Consensus.VerifyRead(ctx); err != nil {
		return nil, err
	}
	return s.Present(), nil
}

// NodeName is what people call a node; the ID of one that is gone.
func (p *Moment) NodeName(id string) string {
	if node, known := p.Node(id); known {
		return node.Name
	}
	return id
}

// ResourceName is what people call a resource; the ID of one that is gone.
func (p *Moment) ResourceName(id string) string {
	if resource, known := p.Resource(id); known {
		return resource.Name
	}
	if resource, known := estate.BuiltinByID(id); known {
		return resource.Name
	}
	return id
}

// Cluster is the record of the cluster that a node names. The default one is there until it is declared.
func (p *Moment) Cluster(name string) model.Resource {
	record, declared := p.ResourceByName(model.KindCluster, name)
	if !declared && name == model.DefaultCluster {
		return model.DefaultClusterRecord()
	}
	return record
}

// RunningDrain is the drain that empties a node now; zero if none does.
func (p *Moment) RunningDrain(node string) model.Plan {
	if p.drains == nil {
		p.drains = make(map[string]model.Plan)
		for _, plan := range p.LivePlans() {
			if plan.Kind == model.PlanDrain {
				p.drains[plan.Node] = plan
			}
		}
	}
	return p.drains[node]
}

// ClusterName resolves the name or ID of a cluster. Empty stays empty.
func (p *Moment) ClusterName(ref string) (string, error) {
	if ref == "" {
		return "", nil
	}
	record, err := p.NamedResource(model.KindCluster, ref)
	return record.Name, err
}
