package vm

import (
	"cmp"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

func whyNotStartedCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "why-not-started NAME", Short: "Tell what keeps a VM from being started", Args: term.Arguments(1, "NAME"),
		Long: `Tell what keeps a VM from being started: which nodes may run it, what each of them says of it, and how old that is.

A VM is started only where it is proven that it runs nowhere. A node proves that it does not run it by listing its
domains without it, or by being proven off. Where the end of the VM was seen, or its host was switched off or has
booted since, the other nodes need not answer. What is in the way is shown with the word or the machine that ends it.
A domain that is not the VM and writes to one of its disks is in the way, too.`,
		Example: `  berth vm why-not-started web1
  berth vm why-not-started web1 -o wide`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.Connect()
			if err != nil {
				return err
			}
			defer s.Close()
			answer, err := term.Ask(cmd.Context(), s, term.Client.WhyNotStarted, &berthv1.WhyNotStartedRequest{Vm: args[0]})
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{
				Message: answer,
				Names:   []string{"vm/" + answer.GetVm()},
				Text:    func(p *term.Page, wide bool) { whyNotStartedText(a, p, answer, wide) },
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.VMNames()),
	}
}

func whyNotStartedText(a *term.App, p *term.Page, answer *berthv1.WhyNotStartedResponse, wide bool) {
	switch {
	case answer.GetOperationId() != "":
		p.Line("vm/%s: operation %s works on it: see 'berth operation show %s'", answer.GetVm(), answer.GetOperationId(), answer.GetOperationId())
	case answer.GetRuns():
		p.Line("vm/%s is not in need of a start: %s", answer.GetVm(), answer.GetProof())
	case answer.GetMayStart():
		p.Line("vm/%s may be started: %s", answer.GetVm(), answer.GetProof())
	case answer.GetMissing() == "":
		p.Line("vm/%s is not started: %s", answer.GetVm(), answer.GetDiskInUse())
	default:
		p.Line("vm/%s is not started: %s", answer.GetVm(), answer.GetMissing())
		endings(p, answer)
	}
	if use := answer.GetDiskInUse(); use != "" {
		p.Line("  its disk: %s", use)
		p.Line("  what ends that: %s", answer.GetDiskNextStep())
	}
	if condition := answer.GetCondition(); condition != "" {
		p.Line("  its condition: %s", condition)
	}
	headings := []string{"NODE", "IN THE WAY", "STANDING", "AS OF"}
	if wide {
		headings = append(headings, "BOOT")
	}
	headings = append(headings, "WHY")
	rows := make([][]string, 0, len(answer.GetNodes()))
	for _, node := range answer.GetNodes() {
		way := "no"
		if node.GetInTheWay() {
			way = "yes"
		}
		row := []string{node.GetNode(), way, node.GetStanding(), a.At(node.GetAt())}
		if wide {
			row = append(row, cmp.Or(node.GetBoot(), term.None))
		}
		rows = append(rows, append(row, node.GetWhy()))
	}
	if len(rows) > 0 {
		p.Blank()
		p.Table(headings, rows)
	}
}

// endings are what ends it that a VM is not started, for each node that is in the way.
func endings(p *term.Page, answer *berthv1.WhyNotStartedResponse) {
	told := false
	for _, node := range answer.GetNodes() {
		if node.GetInTheWay() {
			p.Line("  what ends that: %s", node.GetNextStep())
			told = true
		}
	}
	if !told {
		p.Line("  what ends that: %s", answer.GetNextStep())
	}
}
