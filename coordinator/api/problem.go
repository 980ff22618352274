package api

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"berth/coordinator/affinity"
	"berth/coordinator/api/answer"
	"berth/coordinator/estate"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/moving"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/state"
	"berth/coordinator/view"
	berthv1 "berth/shared/gen/berth/v1"
)

// problems finds in a moment what a person should look at.
type problems struct{ *answer.Moment }

// all says, one line each and most urgent first, what a person should look at.
func (p problems) all(members []*berthv1.Member) []string {
	return slices.Concat(
		p.quarantine(true),
		p.identityProblems(),
		p.haProblems(),
		p.duplicates(),
		p.parked(),
		p.sameHosts(),
		memberProblems(members, p.At),
		limitProblems(members, p.View().Nodes.Len()),
		p.vmProblems(),
		p.strays(),
		p.nodeProblems(),
		p.oldAgents(),
		p.upgrades(),
		p.headroomProblems(),
		p.crowding(),
		p.poolProblems(),
		p.groupProblems(),
		p.planProblems(),
		p.balanceProblems(),
		p.unguarded(),
	)
}

// quarantine says that there is one. Only the leader hears the nodes, and knows which of them it waits for.
func (p problems) quarantine(leads bool) []string {
	reason := p.Meta(state.MetaQuarantine)
	if reason == "" {
		return nil
	}
	line := "quarantine: no VM is started, stopped or moved, because the state was " + reason
	if silent := p.untold(); leads && len(silent) > 0 {
		line += fmt.Sprintf("; it ends when these nodes have reported: %s "+
			"(of one whose machine is off say so with 'berth node fence NODE --confirmed-off')",
			strings.Join(silent, ", "))
	}
	return []string{line}
}

// untold are the names of the nodes that a quarantine waits for.
func (p problems) untold() []string {
	var names []string
	for _, view := range p.View().Nodes.All() {
		if !evidence.Told(&view.Node, &view.Facts) {
			names = append(names, view.Node.Name)
		}
	}
	slices.Sort(names)
	return names
}

// duplicates are UUIDs that run on two nodes: two guests may be writing to one disk.
func (p problems) duplicates() []string {
	var lines []string
	for uuid := range p.View().Strays() {
		var nodes []string
		for _, node := range p.View().ShownOn(uuid, view.Runs) {
			nodes = append(nodes, node.Node.Name)
		}
		if len(nodes) < 2 {
			continue
		}
		name := "domain " + uuid
		if vm, known := p.VM(uuid); known {
			name = "VM " + vm.Name
		}
		lines = append(lines, fmt.Sprintf("%s runs on %s at the same time: look at once, and destroy the copy that is not wanted",
			name, strings.Join(nodes, " and ")))
	}
	slices.Sort(lines)
	return lines
}

// sameHosts are nodes whose libvirt has the host UUID of another one: libvirt refuses to migrate between them. At enrolment it
// is refused; it may change afterwards.
func (p problems) sameHosts() []string {
	var lines []string
	for uuid, ids := range p.Soft.SameHosts() {
		var nodes []string
		for _, id := range ids {
			if node, known := p.Node(id); known {
				nodes = append(nodes, node.Name)
			}
		}
		if len(nodes) < 2 {
			continue
		}
		slices.Sort(nodes)
		lines = append(lines, fmt.Sprintf("nodes %s have the same host UUID %s, and nothing can migrate between them: "+
			"give one another host_uuid in libvirtd.conf, and restart its libvirtd",
			strings.Join(nodes, " and "), uuid))
	}
	slices.Sort(lines)
	return lines
}

func (p problems) parked() []string {
	var lines []string
	for _, op := range p.LiveOperations() {
		if op.Result == operation.Parked {
			lines = append(lines, fmt.Sprintf("operation %s (%s of VM %s) is parked, a person has to decide: %s",
				op.ID, op.Kind, op.VMName, op.Message)+fmt.Sprintf("; see 'berth operation show %s'", op.ID))
		}
	}
	return lines
}

// besideKinds are those of model.Condition.Beside.
var besideKinds = []berthv1.ConditionKind{
	berthv1.ConditionKind_CONDITION_KIND_OUT_OF_BAND, berthv1.ConditionKind_CONDITION_KIND_NO_ROOM,
	berthv1.ConditionKind_CONDITION_KIND_GUEST_PANICKED, berthv1.ConditionKind_CONDITION_KIND_PROCESS_DIED,
}

func (p problems) vmProblems() []string {
	if p.Meta(state.MetaQuarantine) != "" {
		return nil // the records are claims of the past: what differs is set right when it ends
	}
	var lines []string
	for _, vm := range p.suspects() {
		seen := vmMessage(p.Moment, vm)
		lost := seen.GetState() == berthv1.VMState_VM_STATE_LOST
		switch kind := seen.GetConditionKind(); {
		case lost && !slices.Contains(besideKinds, kind) && kind != berthv1.ConditionKind_CONDITION_KIND_RUNS_TWICE:
			lines = append(lines, fmt.Sprintf("VM %s is lost: %s", vm.Name, cmp.Or(seen.GetCondition(), "no node runs it")))
		case vm.Operation == "" && vm.Copies != nil:
			lines = append(lines, fmt.Sprintf("VM %s: %s", vm.Name, seen.GetCondition()))
		case vm.Operation == "" && evidence.IsOutOfBand(vm.Condition):
			lines = append(lines, fmt.Sprintf("VM %s: %s", vm.Name, vm.Condition.Text))
		case vm.Operation == "" && slices.Contains(besideKinds, kind): // seen now, and not yet by two looks
			lines = append(lines, fmt.Sprintf("VM %s: %s", vm.Name, seen.GetCondition()))
		}
	}
	return lines
}

// suspects are the VMs of which something may be wrong, by name: of all others, each is where its record says, and runs.
func (p problems) suspects() []model.VM {
	found := make(map[string]model.VM)
	for _, mark := range []model.Mark{model.MarkDown, model.MarkUnusual, model.MarkCopies} {
		for _, vm := range p.VMsMarked(mark) {
			found[vm.ID] = vm
		}
	}
	for _, ids := range p.View().NotRunning() {
		for _, id := range ids {
			if vm, known := p.VM(id); known {
				found[id] = vm
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b model.VM) int { return cmp.Compare(a.Name, b.Name) })
}

// strays are domains with Berth's mark that no record knows, as those of VMs that were made after a backup that was restored.
func (p problems) strays() []string {
	if p.Meta(state.MetaQuarantine) != "" {
		return nil
	}
	var lines []string
	for uuid, nodes := range p.View().Strays() {
		if p.SharedVM(uuid) != nil {
			continue
		}
		for _, id := range nodes {
			node := p.View().Node(id)
			if domain := node.Facts.Domain(uuid); domain.Managed {
				lines = append(lines, fmt.Sprintf("domain %s on %s has Berth's mark, and no VM is on record for it: "+
					"'berth vm adopt %s' makes it one again",
					domain.Name, node.Node.Name, model.Argument(domain.Name)))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func (p problems) nodeProblems() []string {
	var lines []string
	for _, view := range p.View().Nodes.All() {
		facts := view.Facts
		if view.Node.Fenced() {
			lines = append(
				lines, fmt.Sprintf("node %s is fenced: %s; it counts again when it has booted anew", view.Node.Name, view.Node.Fencing.Message),
			)
			continue
		}
		if view.Node.Held() {
			lines = append(lines, fmt.Sprintf("node %s is held: %s; nothing is placed there, and nothing it says counts as absence: %s",
				view.Node.Name, view.Node.Twin.Why, view.Node.HeldNext()))
			continue
		}
		switch facts.Liveness {
		case model.Unreachable, model.Degraded:
			line := answer.Because(fmt.Sprintf("node %s is %s", view.Node.Name, facts.Liveness), facts.LivenessReason)
			if since := facts.SickSince; facts.Liveness == model.Degraded && !since.IsZero() && p.At.Sub(since) >= time.Minute {
				line += fmt.Sprintf(" (for %s)", p.At.Sub(since).Round(time.Minute))
			}
			switch held := len(p.VMsOn(view.Node.ID)); held {
			case 0:
			case 1:
				line += "; it holds 1 VM"
			default:
				line += fmt.Sprintf("; it holds %d VMs", held)
			}
			lines = append(lines, line+nodeStep(facts.Liveness))
		default:
			if facts.Ailing != "" {
				lines = append(lines, fmt.Sprintf("node %s gets no VMs: %s", view.Node.Name, facts.Ailing))
			}
			if mark := view.Node.Unanswered; mark.Holds() && facts.Liveness == model.Up {
				lines = append(lines, fmt.Sprintf("node %s gets no starts: %s; %s", view.Node.Name, mark.Why(), mark.Next(view.Node.Name)))
			}
			if facts.Inventory && !facts.DomainsKnown && facts.Liveness == model.Up {
				lines = append(lines, fmt.Sprintf("node %s could not list its domains", view.Node.Name))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// headroomProblems are the clusters that keep nodes in spare and could not restart all VMs with ha if these failed now.
func (p problems) headroomProblems() []string {
	var lines []string
	spare := make(map[string]int)
	for _, record := range p.Clusters() {
		spare[record.Name] = model.SettingsOf(&record).SpareNodes
	}
	for _, name := range slices.Sorted(maps.Keys(spare)) {
		if spare[name] == 0 {
			continue
		}
		if short := placement.ShortOf(p.View().Columns(name)); short != "" {
			lines = append(lines, fmt.Sprintf("cluster %s keeps %s in spare, and has not enough free: %s; add memory or nodes, or run less",
				name, spares(spare[name]), short))
		}
	}
	return lines
}

// upgrades are the clusters in which Berth moves nothing by itself, because their nodes are updated.
func (p problems) upgrades() []string {
	var lines []string
	for _, record := range p.Clusters() {
		if model.SettingsOf(&record).UpgradeMode {
			lines = append(lines, fmt.Sprintf(
				"cluster %s is in upgrade mode: no rule is enforced and nothing is balanced; 'berth cluster set %s --upgrade-mode false' ends it",
				record.Name, record.Name))
		}
	}
	slices.Sort(lines)
	return lines
}

// crowding says where vCPUs come to more than nodes have. One cluster setting keeps further ones away.
func (p problems) crowding() []string {
	var crowds []view.Crowd
	for _, node := range p.View().Nodes.All() {
		if node.Crowds() {
			crowds = append(crowds, node.Crowd())
		}
	}
	lines := view.Crowding(crowds)
	for i := range lines {
		lines[i] += "; move or stop some; 'berth cluster set CLUSTER --promise-vcpus true' refuses what passes the ratio from then on"
	}
	return lines
}

func spares(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

// nodeStep is where to look next on a node that is not as it should be.
func nodeStep(l model.Liveness) string {
	if l == model.Degraded {
		return "; 'berth-agent doctor' there tells what is missing"
	}
	return "; 'systemctl status berth-agent' there tells whether its agent runs"
}

// groupProblems are the hard rules that do not hold. A soft one is a wish.
func (p problems) groupProblems() []string {
	var lines []string
	var where affinity.Where
	for _, inside := range p.groupedClusters() {
		if where == nil { // it looks at all VMs: only where there are groups
			where = p.Where()
		}
		for _, breach := range affinity.Breaches(estate.GroupsOf(p.Snapshot, inside), where, p.MemberName) {
			if !breach.Rule.Hard() {
				continue
			}
			since := ""
			if record, known := p.Resource(breach.Group); known && !record.BrokenSince.IsZero() {
				since = " since " + record.BrokenSince.UTC().Format(time.RFC3339)
			}
			lines = append(lines, fmt.Sprintf("group %s does not hold%s: %s; 'berth group show %s' tells why it was not repaired",
				breach.GroupName, since, breach.Text, breach.GroupName))
		}
	}
	return lines
}

// groupedClusters are the names of the clusters that have groups, ascending.
func (p problems) groupedClusters() []string {
	found := make(map[string]bool)
	for _, record := range p.Groups() {
		found[p.ClusterOfGroup(&record)] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// planProblems are the drains that run and the plans that wait for somebody.
func (p problems) planProblems() []string {
	var drains, waiting []string
	for _, plan := range p.LivePlans() {
		switch {
		case plan.Kind == model.PlanDrain:
			moved := 0
			moves := moving.Moves(p.Snapshot, plan)
			for _, move := range moves {
				if move.State == model.MoveMoved {
					moved++
				}
			}
			drains = append(drains, fmt.Sprintf("node %s is being drained: %d of %d VMs have moved; 'berth plan watch %s' shows the rest",
				plan.NodeName, moved, len(moves), plan.ID))
		case plan.State == model.PlanProposed:
			waiting = append(waiting, fmt.Sprintf("a %s plan of %s for cluster %s waits: %s; 'berth plan show %s', then apply or discard it",
				plan.Kind, moves(len(plan.Moves)), plan.Cluster, plan.Reason, plan.ID))
		}
	}
	return append(drains, waiting...)
}

func moves(n int) string {
	if n == 1 {
		return "1 move"
	}
	return fmt.Sprintf("%d moves", n)
}

// balanceProblems are the nodes whose load nobody knows, in clusters that are to be kept even: they take part in no move. What
// is unreachable or degraded is told already.
func (p problems) balanceProblems() []string {
	var lines []string
	balancing := make(map[string]bool)
	for _, view := range p.View().Nodes.All() {
		age, sampled := view.TelemetryAge(p.At)
		if view.Facts.Liveness != model.Up || sampled && age <= view.Facts.Pace.Suspect() {
			continue
		}
		balanced, known := balancing[view.Node.Cluster]
		if !known {
			record := p.Cluster(view.Node.Cluster)
			balanced = model.SettingsOf(&record).Balancing != model.Off
			balancing[view.Node.Cluster] = balanced
		}
		if balanced {
			lines = append(lines, fmt.Sprintf("node %s tells no figures of its load: balancing leaves it out; "+
				"'berth-agent doctor' there tells what is missing",
				view.Node.Name))
		}
	}
	slices.Sort(lines)
	return lines
}
