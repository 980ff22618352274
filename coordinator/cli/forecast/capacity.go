package forecast

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// inlineNodes is up to how many nodes are named in the sentence that says how much room there is.
const inlineNodes = 8

// CapacityCommand is the command capacity.
func CapacityCommand(a *term.App) *cobra.Command {
	var (
		memory    term.StringFlag
		vcpus     int32
		where     string
		vdc       string
		mostAsked int32
		added     string
		large     term.StringFlag
	)
	cmd := &cobra.Command{
		Use: "capacity --memory SIZE", Short: "Tell how many more VMs of a size fit, and what runs out first", Args: term.Arguments(0),
		Long: `Tell how many more VMs of a size fit, and what runs out first: such VMs are placed one after the other, by the rules
of a real start, on a copy of what is known now, until none fits. Nothing is changed. With --vdc they have that VDC's
cluster, customer and keys; without, those of no VDC. -o wide has a line for each node.

With --add-nodes it is counted as if more nodes were there, and told how many fit without them. Each is as the node LIKE
is without its VMs, or as the first of the cluster that is up; --add-memory gives it another physical memory. It has the
ratios and keys of that node, but no labels: no group takes it in. Its name is that node's with +1, +2 and so on.`,
		Example: `  berth capacity --memory 4G --vcpus 2
  berth capacity --memory 16G --vdc acme-prod -o wide
  berth capacity --memory 4G --add-nodes 2:node1 --add-memory 512G`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if memory.Text == "" {
				return term.Usagef(cmd, "--memory is missing: the size of such a VM")
			}
			bytes, err := term.ParseMemory(cmd, memory.Text)
			switch {
			case err != nil:
				return err
			case vcpus < 1 || vcpus > model.MaxVCPUs:
				return term.Usagef(cmd, "--vcpus %d: want 1 to %d", vcpus, model.MaxVCPUs)
			case mostAsked < 0:
				return term.Usagef(cmd, "--most %d: want 1 or more", mostAsked)
			}
			request := &berthv1.CapacityRequest{MemoryBytes: bytes, Vcpus: vcpus, Cluster: where, Vdc: vdc, Most: mostAsked}
			if err := add(cmd, request, added, large.Text); err != nil {
				return err
			}
			return capacity(a, cmd, request)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	memory.Word = "SIZE"
	cmd.Flags().Var(&memory, "memory", "memory of such a VM, for instance 4G")
	cmd.Flags().Int32Var(&vcpus, "vcpus", 1, "`NUMBER` of its vCPUs")
	cmd.Flags().StringVar(&where, "cluster", "", "the `CLUSTER` to look at (default that of the VDC)")
	cmd.Flags().StringVar(&vdc, "vdc", "", "the `VDC` that they would belong to")
	cmd.Flags().Int32Var(&mostAsked, "most", 0, "`NUMBER` to stop counting at (default 10000)")
	large.Word = "SIZE"
	cmd.Flags().StringVar(&added, "add-nodes", "", "count with more nodes, `NUMBER[:LIKE]`, each like the node LIKE")
	cmd.Flags().Var(&large, "add-memory", "physical memory of each added node, for instance 512G")
	term.Complete(cmd, "add-nodes", cobra.NoFileCompletions)
	term.Complete(cmd, "add-memory", cobra.NoFileCompletions)
	term.Complete(cmd, "memory", cobra.NoFileCompletions)
	term.Complete(cmd, "vcpus", cobra.NoFileCompletions)
	term.Complete(cmd, "most", cobra.NoFileCompletions)
	term.Complete(cmd, "cluster", a.ResourceNames(model.KindCluster))
	term.Complete(cmd, "vdc", a.ResourceNames(model.KindVDC))
	return cmd
}

// add puts the nodes that are to be added into the request.
func add(cmd *cobra.Command, request *berthv1.CapacityRequest, nodes, memory string) error {
	if nodes == "" {
		if memory != "" {
			return term.Usagef(cmd, "--add-memory is of added nodes: say with --add-nodes how many")
		}
		return nil
	}
	number, like, _ := strings.Cut(nodes, ":")
	count, err := strconv.ParseInt(number, 10, 32)
	if err != nil || count < 1 {
		return term.Usagef(cmd, "--add-nodes %s: want NUMBER or NUMBER:LIKE, for instance 2:node1", nodes)
	}
	request.AddNodes, request.AddLike = int32(count), like
	if memory == "" {
		return nil
	}
	bytes, err := units.ParseBytes(memory)
	if err != nil || bytes <= 0 {
		return term.Usagef(cmd, "--add-memory %s: want a size, for instance 512G", memory)
	}
	request.AddMemoryBytes = int64(bytes)
	return nil
}

func capacity(a *term.App, cmd *cobra.Command, request *berthv1.CapacityRequest) error {
	answer, err := term.AskOnce(a, cmd, term.Client.Capacity, request)
	if err != nil {
		return err
	}
	var names []string
	for _, node := range answer.GetNodes() {
		if node.GetMore() > 0 && !node.GetAdded() {
			names = append(names, "node/"+node.GetNode())
		}
	}
	return a.Print(cmd, term.Result{Message: answer, Names: names, Text: func(p *term.Page, wide bool) { capacityText(p, answer, wide) }})
}

func capacityText(p *term.Page, answer *berthv1.CapacityResponse, wide bool) {
	text := fmt.Sprintf("%d more fit", answer.GetMore())
	switch {
	case answer.GetMore() == 0:
		text = "none fits"
	case answer.GetAtLeast():
		text = fmt.Sprintf("at least %d more fit", answer.GetMore())
	}
	var parts []string
	with := 0
	for _, node := range answer.GetNodes() {
		if node.GetMore() > 0 {
			with++
		}
		parts = append(parts, fmt.Sprintf("%s %d", node.GetNode(), node.GetMore()))
	}
	switch {
	case len(parts) > inlineNodes:
		text += fmt.Sprintf(" on %d of %d nodes", with, len(parts))
	case len(parts) > 0:
		text += ": " + strings.Join(parts, ", ")
	}
	p.Line("%s", text)
	if answer.Without != nil {
		p.Line("without the added nodes: %d", answer.GetWithout())
	}
	if answer.GetAdded() != "" {
		p.Line("an added node is %s", answer.GetAdded())
	}
	if answer.GetRunsOutFirst() != "" {
		p.Line("%s runs out first: %s", cmp.Or(answer.GetRunsOutOf(), "something"), answer.GetRunsOutFirst())
	}
	for _, warning := range answer.GetWarnings() {
		p.Line("warning: %s", warning)
	}
	if !wide {
		return
	}
	rows := make([][]string, 0, len(answer.GetNodes()))
	for _, node := range answer.GetNodes() {
		rows = append(
			rows, []string{node.GetNode(), strconv.Itoa(int(node.GetMore())), cmp.Or(
				node.GetRunsOutOf(), term.None,
			), cmp.Or(node.GetMessage(), term.None)},
		)
	}
	p.Blank()
	p.Table([]string{"NODE", "MORE", "RUNS-OUT-OF", "WHY"}, rows)
}
