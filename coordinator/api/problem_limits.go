package api

import (
	"fmt"

	"berth/coordinator/doorkeeper"
	berthv1 "berth/shared/gen/berth/v1"
)

// limitProblems are the coordinators that soon may not have a connection of each agent. Any of them may have to: all agents are connected
// to the leader, and one more time while they change to the next one.
func limitProblems(members []*berthv1.Member, nodes int) []string {
	var lines []string
	for _, member := range members {
		most := int(member.GetAgentsMost())
		if most == 0 || nodes <= most*4/5 {
			continue
		}
		lines = append(lines, fmt.Sprintf("coordinator %s can have %d connections of agents, and the site has %d nodes: with 'systemctl edit "+
			"berth-coordinator' there set LimitNOFILE=%d or more below [Service], then restart it",
			member.GetName(), most, nodes, doorkeeper.FilesFor(nodes*2)))
	}
	return lines
}
