package wire

import (
	"berth/coordinator/placement"
	berthv1 "berth/shared/gen/berth/v1"
)

// Decision makes the message of one decision, with every node that it keeps.
func Decision(d placement.Decision) *berthv1.Decision {
	d = placement.Explain(d)
	message := DecisionSummary(d)
	for _, node := range d.Nodes {
		message.Nodes = append(message.Nodes, DecisionNode(node))
	}
	for _, row := range d.Ranks {
		message.Ranks = append(message.Ranks, rankRow(row))
	}
	if len(d.Ranks) > 0 { // the cells of all rows are of the same nodes
		for _, cell := range d.Ranks[0].Cells {
			message.RankNodes = append(message.RankNodes, cell.Name)
		}
	}
	return message
}

func rankRow(row placement.RankRow) *berthv1.RankRow {
	message := &berthv1.RankRow{Weigher: row.Weigher, Factor: row.Factor, Silent: row.Silent}
	for _, cell := range row.Cells {
		message.Cells = append(message.Cells, &berthv1.RankCell{Rank: cell.Rank, Weight: cell.Weight})
	}
	return message
}

// DecisionSummary makes the message of one decision without its nodes, for lists.
func DecisionSummary(d placement.Decision) *berthv1.Decision {
	return &berthv1.Decision{
		Id:             d.ID,
		Purpose:        string(d.Request.Purpose),
		Vm:             d.Request.VMName,
		Policy:         d.Policy,
		MadeAt:         timestamp(d.At),
		Caller:         d.Caller,
		DryRun:         d.DryRun,
		Outcome:        outcome(d.Outcome),
		Winner:         d.WinnerName,
		WinnerId:       d.Winner,
		Margin:         d.Margin,
		Reason:         d.Reason,
		Counterfactual: d.Counterfactual,
		Seed:           d.Seed,
		Request:        decisionRequest(d),
		OperationId:    d.Operation,
		Order:          d.Order,
		Prefer:         d.Prefer,
		Gate:           d.Gate,
		Selector:       d.Selector,
		FailedPhase:    string(d.FailedPhase),
		Round:          int32(d.Round),
		Changes:        changeTexts(d.Changes),
		Kept:           int32(keptNodes(d)),
		Omitted:        int32(d.Omitted),
		Cluster:        d.Request.Cluster,
		Planner:        plannerOf(d),
		Clusters:       decisionClusters(d.Tried),
		Pools:          decisionPools(d),
		Warnings:       placement.Warnings(&d),
	}
}

// plannerOf is the planner that put clusters and nodes in order: the request's own, or the policy's.
func plannerOf(d placement.Decision) string {
	switch {
	case d.Request.Planner != "":
		return d.Request.Planner
	case d.Across != nil && d.Across.Planner != "":
		return d.Across.Planner
	case d.Rules != nil:
		return d.Rules.Planner
	default:
		return ""
	}
}

func decisionClusters(tried []placement.Tried) []*berthv1.DecisionCluster {
	messages := make([]*berthv1.DecisionCluster, 0, len(tried))
	for _, one := range tried {
		messages = append(messages, &berthv1.DecisionCluster{
			Cluster: one.Cluster, Pod: one.Pod, Used: one.Used, AccountVms: int32(one.AccountVMs), PodVms: int32(one.PodVMs),
			TotalVms: int32(one.Total), Weight: one.Weight, LeftOut: one.LeftOut, Outcome: outcome(one.Outcome), Reason: one.Reason,
		})
	}
	return messages
}

// decisionPools names disks as the request did.
func decisionPools(d placement.Decision) []*berthv1.DecisionPool {
	messages := make([]*berthv1.DecisionPool, 0, len(d.Pools))
	for _, choice := range d.Pools {
		message := &berthv1.DecisionPool{Disk: choice.Disk, Pool: choice.PoolName}
		for _, disk := range d.Request.Disks {
			if disk.ID == choice.Disk {
				message.Disk = disk.Name
			}
		}
		messages = append(messages, message)
	}
	return messages
}

// keptNodes is of how many nodes the decision holds something. Release 0.1 kept the results themselves.
func keptNodes(d placement.Decision) int {
	if d.Inputs == nil {
		return len(d.Nodes)
	}
	return len(d.Inputs.IDs)
}

func changeTexts(changes []placement.Change) []string {
	texts := make([]string, 0, len(changes))
	for _, change := range changes {
		texts = append(texts, change.Text)
	}
	return texts
}

// decisionRequest names nodes as the decision itself knew them, so that it reads the same after they are gone.
func decisionRequest(d placement.Decision) *berthv1.DecisionRequest {
	names := make(map[string]string, keptNodes(d))
	for _, node := range d.Nodes {
		names[node.Node] = node.Name
	}
	if d.Inputs != nil {
		for i, id := range d.Inputs.IDs {
			names[id] = d.Inputs.Names[i]
		}
	}
	name := func(id string) string {
		if name, known := names[id]; known {
			return name
		}
		return id
	}
	message := &berthv1.DecisionRequest{
		MemoryBytes: int64(d.Request.Memory),
		Vcpus:       int32(d.Request.VCPUs),
		PinnedNode:  nameOf(name, d.Request.Pinned),
		CurrentNode: nameOf(name, d.Request.Current),

		SystemKeys:   weightedKeys(d.Request.SystemKeys),
		CustomerKeys: weightedKeys(d.Request.CustomerKeys),
		HomeNode:     nameOf(name, d.Request.Home),
		IfBetter:     d.Request.IfBetter,
		Leave:        d.Request.Leave,

		ExcludedNodes:  namesOf(name, d.Request.Excluded),
		Among:          namesOf(name, d.Request.Among),
		PreferredNodes: namesOf(name, d.Request.Preferred),
	}
	if unit := d.Request.Unit; unit != nil {
		message.Unit = unit.VMs
		if len(unit.Names) == len(unit.VMs) {
			message.Unit = unit.Names
		}
	}
	return message
}

func outcome(o placement.Outcome) berthv1.DecisionOutcome {
	switch o {
	case placement.Placed:
		return berthv1.DecisionOutcome_DECISION_OUTCOME_PLACED
	case placement.Stay:
		return berthv1.DecisionOutcome_DECISION_OUTCOME_STAY
	case placement.Refused:
		return berthv1.DecisionOutcome_DECISION_OUTCOME_REFUSED
	default:
		return berthv1.DecisionOutcome_DECISION_OUTCOME_UNSPECIFIED
	}
}

// DecisionNode makes the message of what a decision found of one node.
func DecisionNode(node placement.NodeResult) *berthv1.DecisionNode {
	message := &berthv1.DecisionNode{
		Node:     node.Name,
		NodeId:   node.Node,
		Admitted: node.Admitted,
		Score:    node.Score,
		Rank:     int32(node.Rank),
		Tier:     int32(node.Tier),
		Band:     int32(node.Band),
		Current:  node.Current,

		SystemScore:   node.SystemScore,
		CustomerScore: node.CustomerScore,
		Wish:          int32(node.Wish),
	}
	for _, c := range node.Constraints {
		message.Constraints = append(message.Constraints, &berthv1.ConstraintResult{
			Constraint:      c.Constraint,
			Passed:          c.Passed,
			Code:            c.Code,
			Message:         c.Message,
			Needed:          c.Needed,
			Available:       c.Available,
			Unit:            c.Unit,
			InputAgeSeconds: c.AgeSeconds,
		})
	}
	for _, t := range node.Terms {
		term := &berthv1.ScoreTerm{
			Weigher:      t.Weigher,
			Key:          t.Key,
			Raw:          t.Raw,
			Proximity:    t.Proximity,
			Weight:       t.Weight,
			Contribution: t.Contribution,
			Count:        int32(t.Count),
			Class:        string(t.Class),
			Level:        t.Level,
			Note:         t.Note,
		}
		if t.Class != "" { // terms of release 0.1 did not keep what was wanted
			term.Wanted = new(t.Wanted)
		}
		message.Terms = append(message.Terms, term)
	}
	return message
}
