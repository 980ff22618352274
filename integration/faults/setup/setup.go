// Package setup has the records that a site of the simulator begins with.
package setup

import (
	"fmt"

	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/integration/faults/machine"
	"berth/integration/faults/script"
)

// RackLabel is what the hosts of the first rack have for a label.
const RackLabel = "rack-1"

// Node is the record of one of a site's hosts: with its rack and its fence device, if it has them.
func Node(played *script.Script, number int) model.Node {
	id := fmt.Sprintf("n%d", number+1)
	node := model.Node{ID: id, Name: id, Cluster: model.DefaultCluster}
	switch {
	case number < played.Rack:
		node.Labels = []string{RackLabel}
	case played.Rack > 0:
		node.Labels = []string{"rack-2"}
	}
	if number < len(played.Fences) {
		node.Fence = machine.FenceDevice(played.Fences[number])
	}
	return node
}

// Sick gives the cluster its setting where hosts are fenced that say they are of no use.
func Sick(played *script.Script, command *state.Command) {
	if played.SickAfter == 0 {
		return
	}
	record := model.DefaultClusterRecord()
	record.Settings = map[string]string{model.SettingFenceSickAfter: played.SickAfter.String()}
	command.Resources = append(command.Resources, record)
	command.Expect = append(command.Expect, state.Expectation{Table: state.Resources, ID: record.ID})
}
