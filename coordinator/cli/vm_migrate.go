package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cluster"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

func (a *app) vmMigrateCommand() *cobra.Command {
	var (
		wait      waiting
		best      bool
		to        string
		dryRun    bool
		full      bool
		ifBetter  float64
		bandwidth string
		copies    bool
	)
	cmd := &cobra.Command{
		Use: "migrate NAME (--best | --to NODE)", Short: "Move a running VM to another node, live", Args: arguments(1, "NAME"),
		Long: `Move a running VM to another node, live.

--best asks for the best node. The one that it runs on takes part, and when it is the best one the VM stays. With
--if-better N it also stays unless the best node scores at least N more. --to asks for one node, which has to fit as
well. On a terminal a bar shows how the migration gets on.

A VM with disks in a local pool moves with --copy-storage only: they are copied into a local pool of the other node
while it runs.`,
		Example: `  berth vm migrate web1 --best
  berth vm migrate web1 --best --if-better 10
  berth vm migrate web1 --to node3 --bandwidth 100M
  berth vm migrate web1 --to node3 --copy-storage --timeout 1h
  berth vm migrate web1 --best --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			request := &berthv1.MigrateVMRequest{Vm: args[0], Node: to, DryRun: dryRun, CopyStorage: copies, RequestId: requestID()}
			switch {
			case best && cmd.Flags().Changed("to"):
				return Usagef(cmd, "--best and --to exclude each other")
			case !best && !cmd.Flags().Changed("to"):
				return Usagef(cmd, "say where to: --best or --to NODE")
			case !best && to == "":
				return Usagef(cmd, "--to: NODE is missing")
			case !best && cmd.Flags().Changed("if-better"):
				return Usagef(cmd, "--if-better is for --best")
			case !(ifBetter >= 0 && ifBetter <= cluster.MaxKeyFigure): // false for a NaN
				return Usagef(cmd, "--if-better %s: want a gain of score, 0 or more", exact(ifBetter))
			case full && !dryRun:
				return Usagef(cmd, "--full is for --dry-run; 'berth decision show last --full' explains what was done")
			}
			request.IfBetter = ifBetter
			var err error
			if request.BandwidthBps, err = bandwidthFlag(cmd, bandwidth); err != nil {
				return err
			}
			return a.vmMigrate(cmd, request, wait, full)
		},
		ValidArgsFunction: first(a.vmNames()),
	}
	cmd.Flags().BoolVar(&best, "best", false, "to the best node")
	cmd.Flags().StringVar(&to, "to", "", "to this `NODE` and no other one")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show the decision, move nothing")
	cmd.Flags().BoolVar(&full, "full", false, "with --dry-run: every figure of every node")
	cmd.Flags().Float64Var(&ifBetter, "if-better", 0, "with --best: move only if the score gains at least this `NUMBER`")
	cmd.Flags().BoolVar(&copies, "copy-storage", false, "take disks of local pools along")
	cmd.Flags().StringVar(&bandwidth, "bandwidth", "", "bytes a second at most: a `SIZE`, for instance 100M")
	complete(cmd, "to", a.nodeNames())
	complete(cmd, "if-better", cobra.NoFileCompletions)
	complete(cmd, "bandwidth", cobra.NoFileCompletions)
	wait.flags(cmd)
	return cmd
}

func (a *app) vmMigrate(cmd *cobra.Command, request *berthv1.MigrateVMRequest, wait waiting, full bool) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	answer, err := ask(cmd.Context(), s, repeatable, client.MigrateVM, request)
	if refused := rpc.Detail(err).GetDecision(); refused != nil && request.GetDryRun() {
		return a.dryRun(cmd, &berthv1.MigrateVMResponse{Decision: refused}, refused, full)
	}
	if err != nil {
		return err
	}
	if request.GetDryRun() {
		return a.dryRun(cmd, answer, answer.GetDecision(), full)
	}
	op, decision := answer.GetOperation(), answer.GetDecision()
	said := fmt.Sprintf("vm/%s stays on %s (%s)", decision.GetVm(), decision.GetWinner(), placement(decision))
	if op != nil {
		said = fmt.Sprintf("vm/%s: %s (operation %s, %s)", op.GetVm(), beginning(op), op.GetId(), placement(decision))
	}
	if op != nil && wait.wait {
		if op, err = a.await(cmd, s, op, wait.timeout); err != nil {
			return err
		}
		answer.Operation, answer.Decision = op, a.finalDecision(cmd, s, op, decision)
		said = fmt.Sprintf("vm/%s running on %s: moved from %s in %s (%s; %s)",
			op.GetVm(), op.GetTarget(), op.GetSource(), took(op), moved(op.GetMigration()), placement(answer.GetDecision()))
	}
	return a.print(cmd, result{
		message: answer, names: []string{"vm/" + decision.GetVm()}, text: func(p *page, _ bool) { p.line("%s", said) },
	})
}

// moved sums a finished migration up.
func moved(stats *berthv1.MigrationStats) string {
	if stats == nil {
		return "no figures were kept"
	}
	parts := []string{units.Bytes(stats.GetDataProcessedBytes()).String() + " sent"}
	if disks := stats.GetDiskProcessedBytes(); disks > 0 {
		parts[0] += fmt.Sprintf(", %v of it from disks", units.Bytes(disks))
	}
	if stats.GetMemoryBps() > 0 {
		parts = append(parts, fmt.Sprintf("%v/s", units.Bytes(stats.GetMemoryBps())))
	}
	if stats.DowntimeSeconds != nil {
		parts = append(parts, "downtime "+span(seconds(stats.GetDowntimeSeconds())))
	}
	if stats.HandoverSeconds != nil {
		parts = append(parts, "hand-over "+span(seconds(stats.GetHandoverSeconds())))
	}
	return strings.Join(parts, ", ")
}
