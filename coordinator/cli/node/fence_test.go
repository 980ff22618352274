package node_test

import (
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// rack is a coordinator with nodes of one label, in these states.
func rack(states map[string]berthv1.NodeState) *clitest.Fake {
	f := clitest.Steady()
	list := f.OnListNodes
	f.OnListNodes = func(r *berthv1.ListNodesRequest) (*berthv1.ListNodesResponse, error) {
		answer, err := list(r)
		for name, state := range states {
			answer.Nodes = append(answer.Nodes, &berthv1.Node{Name: name, State: state, Labels: []string{"rack3"}, Vms: []string{"vm-" + name}})
		}
		slices.SortFunc(answer.Nodes, func(a, b *berthv1.Node) int { return strings.Compare(a.GetName(), b.GetName()) })
		return answer, err
	}
	f.OnFenceNode = func(r *berthv1.FenceNodeRequest) (*berthv1.FenceNodeResponse, error) {
		if r.GetNode() == "r3" {
			return nil, rpc.Errorf(connect.CodeFailedPrecondition, &berthv1.ErrorDetail{Code: rpc.Conflict}, "node r3 is not off: it is up")
		}
		return &berthv1.FenceNodeResponse{SchemaVersion: "1", Node: &berthv1.Node{
			Name: r.GetNode(), Fencing: &berthv1.Fencing{Message: "operator/admin has seen that it is off"},
		}}, nil
	}
	return f
}

// One command for a rack. None of its nodes is fenced if the label is not what has failed, and one that fails alone is told apart.
func TestFencingALabel(t *testing.T) {
	const off, up = berthv1.NodeState_NODE_STATE_UNREACHABLE, berthv1.NodeState_NODE_STATE_UP
	for name, c := range map[string]struct {
		line   string
		states map[string]berthv1.NodeState
		exit   term.Exit
		asked  int
	}{
		"node-fence-label": {
			"node fence --label rack3 --confirmed-off --yes", map[string]berthv1.NodeState{"r1": off, "r2": off}, term.Done, 2,
		},
		"node-fence-label-pair": {
			"node fence --label rack=3 --confirmed-off --yes", map[string]berthv1.NodeState{"r1": off}, term.Done, 1,
		},
		"node-fence-label-one-answers": {
			"node fence --label rack3 --confirmed-off --yes", map[string]berthv1.NodeState{"r1": off, "r2": up, "r4": off}, term.Failed, 0,
		},
		"node-fence-label-all-answer": {"node fence --label rack3 --yes", map[string]berthv1.NodeState{"r1": up, "r2": up}, term.Failed, 0},
		"node-fence-label-one-fails": {
			"node fence --label rack3 --confirmed-off --yes", map[string]berthv1.NodeState{"r1": off, "r3": off}, term.Failed, 2,
		},
		"node-fence-label-unknown": {"node fence --label rack9 --confirmed-off --yes", nil, term.Failed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := rack(c.states)
			w, _ := clitest.NewSite(t, f)
			said := w.Run(strings.Fields(c.line)...)
			if said.Exit != c.exit {
				t.Errorf("exit %d, want %d", said.Exit, c.exit)
			}
			if sent := clitest.Asked[berthv1.FenceNodeRequest](f); len(sent) != c.asked {
				t.Errorf("the coordinator was asked %d times, want %d: %v", len(sent), c.asked, sent)
			}
			clitest.Golden(t, name+".golden", said.Out+clitest.ErrSection(said.ErrOut))
		})
	}
}

// What stands for all of them is asked once, with what is at stake.
func TestFencingALabelAsksOnce(t *testing.T) {
	const off = berthv1.NodeState_NODE_STATE_UNREACHABLE
	f := rack(map[string]berthv1.NodeState{"r1": off, "r2": off})
	w, _ := clitest.NewSite(t, f)
	user, tty := clitest.OpenTerminal(t)
	if _, err := user.WriteString("n\n"); err != nil {
		t.Fatal(err)
	}
	w.In = tty
	said := w.Run("node", "fence", "--label", "rack3", "--confirmed-off")
	const want = "Are the machines of 2 nodes with the label rack3 off (r1, r2), so that nothing runs there any more? They hold 2 VMs. [y/N] "
	if !strings.Contains(said.ErrOut, want) || len(clitest.Asked[berthv1.FenceNodeRequest](f)) > 0 {
		t.Errorf("said %q", said.ErrOut)
	}
}
