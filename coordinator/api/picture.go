package api

import (
	"context"
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/estate"
	"berth/coordinator/state"
)

// picture is what one answer is made of: the hard facts of one moment, and the soft facts as they are now.
type picture struct {
	*state.Snapshot
	at     time.Time
	soft   Inventory
	viewed *cluster.View           // once somebody asked for it: it counts every VM
	joined *membership             // likewise: it looks at every group
	drains map[string]cluster.Plan // likewise, by node: those that run

	clusters func(*cluster.VM) string // likewise: it may look at every cluster
}

// present takes a picture of what this member has, however old that is.
func (s *Server) present() *picture {
	snapshot, at := s.Store.Snapshot(), s.Now()
	return &picture{Snapshot: snapshot, at: at, soft: s.Inventory}
}

// view is the picture with its accounting done.
func (p *picture) view() *cluster.View {
	if p.viewed == nil {
		p.viewed = p.soft.View(p.Snapshot, p.at)
	}
	return p.viewed
}

// verified takes a picture that holds everything that was committed before the call.
func (s *Server) verified(ctx context.Context) (*picture, error) {
	if err := s.Consensus.VerifyRead(ctx); err != nil {
		return nil, err
	}
	return s.present(), nil
}

// nodeName is what people call a node; the ID of one that is gone.
func (p *picture) nodeName(id string) string {
	if node, known := p.Node(id); known {
		return node.Name
	}
	return id
}

// resourceName is what people call a resource; the ID of one that is gone.
func (p *picture) resourceName(id string) string {
	if resource, known := p.Resource(id); known {
		return resource.Name
	}
	if resource, known := estate.BuiltinByID(id); known {
		return resource.Name
	}
	return id
}

// cluster is the record of the cluster that a node names. The default one is there until it is declared.
func (p *picture) cluster(name string) cluster.Resource {
	record, declared := p.ResourceByName(cluster.KindCluster, name)
	if !declared && name == cluster.DefaultCluster {
		return cluster.DefaultClusterRecord()
	}
	return record
}
