package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// atOnce is how many nodes of a label are fenced at the same time: a rack is off after the slowest device, not after the sum.
const atOnce = 8

// fenceLabel proves all nodes of a label to be off: what somebody asks for after a rack has lost its power.
func fenceLabel(a *term.App, cmd *cobra.Command, label string, confirmed, yes bool) error {
	all, err := term.AskAllOnce(a, cmd, term.Client.ListNodes, &berthv1.ListNodesRequest{}, term.Everything)
	if err != nil {
		return err
	}
	nodes := slices.DeleteFunc(all.GetNodes(), func(node *berthv1.Node) bool { return !wears(node.GetLabels(), label) })
	if err := allSilent(label, nodes); err != nil {
		return err
	}
	if err := term.Confirm(cmd, yes, labelQuestion(label, nodes, confirmed)); err != nil {
		return err
	}
	fenced, err := fenceAll(a, cmd, nodes, confirmed)
	printed := a.Print(cmd, term.Result{
		Message: &berthv1.ListNodesResponse{SchemaVersion: all.GetSchemaVersion(), Nodes: fenced},
		Names:   term.Prefixed("node/", fenced, (*berthv1.Node).GetName),
		Text: func(p *term.Page, _ bool) {
			for _, node := range fenced {
				p.Line("%s", provenOff(node))
			}
		},
	})
	return errors.Join(printed, err)
}

// wears tells whether one of a node's labels is meant. Labels have no equals sign, so rack=3 stands for rack3, rack-3, rack_3 or rack.3.
func wears(labels []string, wanted string) bool {
	name, value, pair := strings.Cut(wanted, "=")
	if !pair {
		return slices.Contains(labels, wanted)
	}
	return slices.ContainsFunc([]string{"", "-", "_", "."}, func(by string) bool { return slices.Contains(labels, name+by+value) })
}

// allSilent refuses a label that no node has, or one that a node has which still answers: then the label is not what has failed.
func allSilent(label string, nodes []*berthv1.Node) error {
	var silent, answering []string
	for _, node := range nodes {
		switch node.GetState() {
		case berthv1.NodeState_NODE_STATE_UNREACHABLE, berthv1.NodeState_NODE_STATE_FENCED:
			silent = append(silent, node.GetName())
		default:
			answering = append(answering, node.GetName())
		}
	}
	switch {
	case len(nodes) == 0:
		return fmt.Errorf("no node has the label %q: 'berth node list -o wide' shows the labels", label)
	case len(answering) > 0 && len(silent) > 0:
		return fmt.Errorf(
			"nothing was fenced: of the nodes with the label %q, %s still %s; fence the silent ones by name: %s",
			label, strings.Join(answering, ", "), answers(answering), strings.Join(silent, ", "),
		)
	case len(answering) > 0:
		return fmt.Errorf("nothing was fenced: %s, with the label %q, still %s", strings.Join(answering, ", "), label, answers(answering))
	}
	return nil
}

func answers(names []string) string {
	if len(names) == 1 {
		return "answers"
	}
	return "answer"
}

// labelQuestion asks once for all of them, and says what is at stake.
func labelQuestion(label string, nodes []*berthv1.Node, confirmed bool) string {
	var names []string
	vms := 0
	for _, node := range nodes {
		names = append(names, node.GetName())
		vms += len(node.GetVms())
	}
	question := "Switch %s with the label %s off (%s)? They hold %s."
	if confirmed {
		question = "Are the machines of %s with the label %s off (%s), so that nothing runs there any more? They hold %s."
	}
	return fmt.Sprintf(question, term.Count(len(names), "node"), label, strings.Join(names, ", "), term.Count(vms, "VM"))
}

// fenceAll fences each of the nodes, and returns those that are proven to be off, in the order of the list. Of every other one it
// says why it is not. One that fails does not keep the others from being tried.
func fenceAll(a *term.App, cmd *cobra.Command, nodes []*berthv1.Node, confirmed bool) ([]*berthv1.Node, error) {
	proven, failed := make([]*berthv1.Node, len(nodes)), make([]error, len(nodes))
	var work errgroup.Group
	work.SetLimit(atOnce)
	for i, node := range nodes {
		work.Go(func() error {
			proven[i], failed[i] = fenceOne(cmd.Context(), a, node.GetName(), confirmed)
			return nil
		})
	}
	_ = work.Wait()
	missing := 0
	for i, err := range failed {
		if err != nil {
			missing++
			fmt.Fprintf(cmd.ErrOrStderr(), "node/%s: %s\n", term.Clean(nodes[i].GetName()), term.Clean(term.Message(err)))
		}
	}
	proven = slices.DeleteFunc(proven, func(node *berthv1.Node) bool { return node == nil })
	if missing > 0 {
		return proven, fmt.Errorf("%d of %s not proven to be off; the VMs of the others are free to run elsewhere",
			missing, term.Count(len(nodes), "node"))
	}
	return proven, nil
}

// fenceOne has a session of its own: a session is for one goroutine.
func fenceOne(ctx context.Context, a *term.App, name string, confirmed bool) (*berthv1.Node, error) {
	s, err := a.Connect()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	answer, err := term.AskFor(ctx, s, fenceLimit, term.Client.FenceNode, &berthv1.FenceNodeRequest{
		Node: name, ConfirmedOff: confirmed, RequestId: term.RequestID(),
	})
	if err != nil {
		return nil, err
	}
	return answer.GetNode(), nil
}

// provenOff is the line for a node that was fenced.
func provenOff(node *berthv1.Node) string {
	return fmt.Sprintf("node/%s is proven to be off: %s", node.GetName(), node.GetFencing().GetMessage())
}
