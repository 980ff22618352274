package api

import (
	"fmt"

	"berth/coordinator/evidence"
)

// removedNodes are those that were removed and speak all the same: one line each, with the VMs that they have copies of.
func (p problems) removedNodes(all []evidence.Removed) []string {
	var lines []string
	for i := range all {
		var names []string
		others := 0
		for _, domain := range all[i].Domains {
			if vm, known := p.VM(domain.UUID); known {
				names = append(names, fmt.Sprintf("%s (%s)", vm.Name, domain.State))
			} else {
				others++
			}
		}
		line := fmt.Sprintf("node %s was removed, and its agent speaks all the same", all[i].Name)
		if len(names) > 0 {
			line += ": it has copies of " + evidence.SomeOf(names) + ", which are suspended: end each with 'virsh destroy' there"
		}
		if others > 0 {
			line += fmt.Sprintf("; it has %d domains that are no VMs of Berth", others)
		}
		lines = append(lines, line+"; 'berth-agent join' there enrols it again, 'systemctl disable --now berth-agent' there ends this")
	}
	return lines
}
