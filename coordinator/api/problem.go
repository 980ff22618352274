package api

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/cluster"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
)

// problems says, one line each and most urgent first, what somebody should look at.
func (p *picture) problems(members []*berthv1.Member) []string {
	return slices.Concat(
		p.quarantine(),
		p.duplicates(),
		p.parked(),
		memberProblems(members),
		p.vmProblems(),
		p.nodeProblems(),
	)
}

func (p *picture) quarantine() []string {
	if reason := p.Meta(state.MetaQuarantine); reason != "" {
		return []string{"quarantine: no VM is started, stopped or moved: " + reason}
	}
	return nil
}

// duplicates are UUIDs that run on two nodes: two guests may be writing to one disk.
func (p *picture) duplicates() []string {
	var lines []string
	for uuid, nodes := range p.running() {
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

func (p *picture) parked() []string {
	var lines []string
	for _, op := range p.LiveOperations() {
		if op.Result == operation.Parked {
			lines = append(lines, fmt.Sprintf("operation %s (%s of VM %s) is parked, a person has to decide: %s",
				op.ID, op.Kind, op.VMName, op.Message))
		}
	}
	return lines
}

func memberProblems(members []*berthv1.Member) []string {
	var lines []string
	voters, silent := 0, 0
	for _, member := range members {
		if member.GetVoter() {
			voters++
		}
		if member.GetReachable() {
			continue
		}
		if member.GetVoter() {
			silent++
		}
		line := fmt.Sprintf("coordinator %s is not reachable", member.GetName())
		if member.LastContactSeconds != nil {
			line += fmt.Sprintf(" since %.0f s", member.GetLastContactSeconds())
		}
		lines = append(lines, line)
	}
	if most := (voters - 1) / 2; silent > 0 && silent == most {
		lines = append(lines, "one more coordinator lost, and nothing can be changed until it is back")
	}
	return lines
}

func (p *picture) vmProblems() []string {
	var lines []string
	running := p.running()
	for _, vm := range p.VMs() {
		seen := p.vm(vm, running)
		if seen.GetState() == berthv1.VMState_VM_STATE_LOST {
			lines = append(lines, fmt.Sprintf("VM %s is lost: %s", vm.Name, cmp.Or(seen.GetCondition(), "no node runs it")))
		}
	}
	return lines
}

func (p *picture) nodeProblems() []string {
	var lines []string
	for _, view := range p.view().Nodes {
		facts := view.Facts
		switch facts.Liveness {
		case cluster.Unreachable, cluster.Degraded:
			line := because(fmt.Sprintf("node %s is %s", view.Node.Name, facts.Liveness), facts.LivenessReason)
			switch held := len(p.VMsOn(view.Node.ID)); held {
			case 0:
			case 1:
				line += "; it holds 1 VM"
			default:
				line += fmt.Sprintf("; it holds %d VMs", held)
			}
			lines = append(lines, line+nodeStep(facts.Liveness))
		default:
			if facts.Inventory && !facts.DomainsKnown && facts.Liveness == cluster.Up {
				lines = append(lines, fmt.Sprintf("node %s could not list its domains", view.Node.Name))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// nodeStep is where to look next on a node that is not as it should be.
func nodeStep(l cluster.Liveness) string {
	if l == cluster.Degraded {
		return "; 'berth-agent doctor' there tells what is missing"
	}
	return "; 'systemctl status berth-agent' there tells whether its agent runs"
}
