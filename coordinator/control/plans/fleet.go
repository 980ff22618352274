package plans

import (
	"slices"

	"berth/coordinator/balance"
	"berth/coordinator/control/lead"
	"berth/coordinator/estate"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// fleet is a cluster as the engines for moves look at it: with the VMs and groups alone that a drain of a node, given by ID, looks at, or
// with all if that is empty. The caller holds balancing while an engine reads its history.
func (p *Plans) fleet(snapshot *state.Snapshot, clusterName, drained string) (fleet *balance.Fleet, err error) {
	view, made := p.Inventory.View(snapshot, p.Now()), plansOf(snapshot, clusterName)
	if drained == "" {
		fleet, err = estate.FleetOf(snapshot, view, clusterName, made)
	} else {
		fleet, err = estate.FleetForDrain(snapshot, view, clusterName, drained, made)
	}
	return p.completed(fleet, clusterName, err)
}

// plansOf are the plans of a cluster, newest first.
func plansOf(snapshot *state.Snapshot, clusterName string) []model.Plan {
	return slices.DeleteFunc(snapshot.Plans(), func(plan model.Plan) bool { return plan.Cluster != clusterName })
}

// completed is a fleet with its history and seeds, or the refusal that an error is told with.
func (p *Plans) completed(fleet *balance.Fleet, clusterName string, err error) (*balance.Fleet, error) {
	if err != nil {
		return nil, &lead.Error{
			Code: lead.Invalid, Subject: "cluster/" + clusterName, Message: err.Error(),
			NextStep: "link it to what there is, see 'berth cluster --help'",
		}
	}
	p.balancing.Lock()
	defer p.balancing.Unlock()
	if p.histories[clusterName] == nil {
		p.histories[clusterName] = &balance.History{}
	}
	fleet.Seed, fleet.History = p.Random, p.histories[clusterName]
	return fleet, nil
}

// nodesReported tells whether every node has reported to this leader, except those that are proven to be off, or had until the end of
// FenceGrace to do so. Moves wait for that. Starts do not wait as long, because people wait for them.
func (p *Plans) nodesReported(snapshot *state.Snapshot) bool {
	at := p.Now()
	if !p.ViewComplete(snapshot) {
		return false
	}
	if p.LedFor(at) >= evidence.FenceGrace {
		return true
	}
	for node := range snapshot.SharedNodes() {
		if facts := p.Inventory.Facts(node.ID, at); !node.Fenced() && (!facts.Inventory || !facts.Telemetry) {
			return false
		}
	}
	return true
}

// callsWait tells whether people wait for the leader.
func (p *Plans) callsWait() bool { return p.config.CallsWait != nil && p.config.CallsWait() }
