package wire

import (
	"testing"

	"berth/coordinator/model"
	"berth/coordinator/view"
	berthv1 "berth/shared/gen/berth/v1"
)

// What waits for a CPU is told as placement has it, and not at all where nothing tells.
func TestANodeTellsHowLongItsVCPUsWait(t *testing.T) {
	delay := 4.5
	for _, facts := range []model.NodeFacts{{VCPUDelay: &delay}, {}} {
		got := Node(NodeReport{View: &view.NodeView{Facts: facts}}).VcpuDelayPercent
		if (got == nil) != (facts.VCPUDelay == nil) || got != nil && *got != delay {
			t.Errorf("of %v: %v", facts.VCPUDelay, got)
		}
	}
}

func TestANodeThatAilsIsDegraded(t *testing.T) {
	const why = "its agent's journal takes no entry: no space left on device: free space on its disk"
	node := Node(NodeReport{View: &view.NodeView{
		Node: model.Node{ID: "n1", Name: "hv1"}, Facts: model.NodeFacts{Liveness: model.Up, Ailing: why},
	}})
	if node.GetState() != berthv1.NodeState_NODE_STATE_DEGRADED || node.GetStateReason() != why {
		t.Errorf("%s: %s", node.GetState(), node.GetStateReason())
	}
}
