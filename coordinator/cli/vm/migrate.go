package vm

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"berth/coordinator/cli/explanation"
	"berth/coordinator/cli/follow"
	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

func migrateCommand(a *term.App) *cobra.Command {
	var (
		wait      follow.WaitFlags
		best      bool
		to        string
		dryRun    bool
		full      bool
		ifBetter  float64
		bandwidth string
		copies    bool
		choose    choosing
	)
	cmd := &cobra.Command{
		Use: "migrate NAME... (--best | --to NODE)", Short: "Move running VMs to another node, live", Args: someNames,
		Long: `Move running VMs to another node, live.

--best asks for the best node. The one that it runs on takes part, and when it is the best one the VM stays. With
--if-better N it also stays unless the best node scores at least N more. --to asks for one node, which has to fit as
well. On a terminal a bar shows how the migration gets on. With several names, or --selector, each VM is placed after
the one before, and one that is refused does not keep the others from moving.

A VM with disks in a local pool moves with --copy-storage only: they are copied into a local pool of the other node
while it runs.`,
		Example: `  berth vm migrate web1 --best
  berth vm migrate web1 --best --if-better 10
  berth vm migrate web1 --to node3 --bandwidth 100M
  berth vm migrate web1 --to node3 --copy-storage --timeout 1h
  berth vm migrate web1 web2 --best
  berth vm migrate --selector node=node1,label=web --to node3
  berth vm migrate web1 --best --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			request := &berthv1.MigrateVMRequest{Node: to, DryRun: dryRun, CopyStorage: copies, RequestId: term.RequestID()}
			switch {
			case best && cmd.Flags().Changed("to"):
				return term.Usagef(cmd, "--best and --to exclude each other")
			case !best && !cmd.Flags().Changed("to"):
				return term.Usagef(cmd, "say where to: --best or --to NODE")
			case !best && to == "":
				return term.Usagef(cmd, "--to: NODE is missing")
			case !best && cmd.Flags().Changed("if-better"):
				return term.Usagef(cmd, "--if-better is for --best")
			case !(ifBetter >= 0 && ifBetter <= model.MaxKeyFigure): // false for a NaN
				return term.Usagef(cmd, "--if-better %s: want a gain of score, 0 or more", term.Exact(ifBetter))
			case full && (len(args) > 1 || choose.on()):
				return term.Usagef(cmd, "--full is for one VM")
			case full && !dryRun:
				return term.Usagef(cmd, "--full is for --dry-run; 'berth decision show last --full' explains what was done")
			}
			request.IfBetter = ifBetter
			var err error
			if request.BandwidthBps, err = term.BandwidthFlag(cmd, bandwidth); err != nil {
				return err
			}
			if len(args) > 1 || choose.on() {
				return migrateMany(a, cmd, &choose, args, request, wait)
			}
			request.Vm = args[0]
			return migrate(a, cmd, request, wait, full)
		},
		ValidArgsFunction: term.CompleteOthers(a.VMNames()),
	}
	cmd.Flags().BoolVar(&best, "best", false, "to the best node")
	cmd.Flags().StringVar(&to, "to", "", "to this `NODE` and no other one")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show the decision, move nothing")
	cmd.Flags().BoolVar(&full, "full", false, "with --dry-run: every figure of every node")
	cmd.Flags().Float64Var(&ifBetter, "if-better", 0, "with --best: move only if the score gains at least this `NUMBER`")
	cmd.Flags().BoolVar(&copies, "copy-storage", false, "take disks of local pools along")
	cmd.Flags().StringVar(&bandwidth, "bandwidth", "", "bytes a second at most: a `SIZE`, for instance 100M")
	term.Complete(cmd, "to", a.NodeNames())
	term.Complete(cmd, "if-better", cobra.NoFileCompletions)
	term.Complete(cmd, "bandwidth", cobra.NoFileCompletions)
	choose.flag(cmd)
	wait.Flags(cmd)
	return cmd
}

// migrateMany moves several VMs, each placed after the one before: so they count for one another.
func migrateMany(
	a *term.App, cmd *cobra.Command, choose *choosing, named []string, like *berthv1.MigrateVMRequest, wait follow.WaitFlags,
) error {
	s, err := a.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	names, err := choose.names(cmd.Context(), cmd, s, named)
	if err != nil {
		return err
	}
	ask := func(ctx context.Context, s *term.Session, acted *berthv1.ActedVM) error {
		request := proto.CloneOf(like)
		request.Vm, request.RequestId = acted.GetVm(), term.RequestID()
		answer, err := term.Ask(ctx, s, term.Client.MigrateVM, request)
		if err != nil {
			return err
		}
		decision := answer.GetDecision()
		acted.Operation = answer.GetOperation()
		stays := acted.Operation == nil
		if like.GetDryRun() {
			now, err := term.Ask(ctx, s, term.Client.GetVM, &berthv1.GetVMRequest{Vm: acted.GetVm()})
			if err != nil {
				return err
			}
			stays = now.GetVm().GetNode() == decision.GetWinner()
		}
		text := explanation.Placement(decision)
		switch {
		case stays:
			text = fmt.Sprintf("stays on %s (%s)", decision.GetWinner(), text)
			text = strings.Join(append([]string{text}, explanation.Differing(decision)...), "; ")
		case like.GetDryRun():
			text = fmt.Sprintf("would be migrated to %s (%s)", decision.GetWinner(), text)
		}
		acted.Follows = []string{text}
		return nil
	}
	return eachVM(a, cmd, s, names, "migrated", like.GetDryRun(), wait, ask)
}

// migrateDryRun shows the decision, and what the migration would take.
func migrateDryRun(a *term.App, cmd *cobra.Command, answer *berthv1.MigrateVMResponse, full bool) error {
	var more []string
	if expected := answer.GetPredicted(); expected != nil {
		more = append(more, "expected: "+follow.PredictionPhrase(expected))
	}
	return dryRun(a, cmd, answer, answer.GetDecision(), full, more...)
}

func migrate(a *term.App, cmd *cobra.Command, request *berthv1.MigrateVMRequest, wait follow.WaitFlags, full bool) error {
	s, err := a.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	answer, err := term.Ask(cmd.Context(), s, term.Client.MigrateVM, request)
	if refused := rpc.Detail(err).GetDecision(); refused != nil && request.GetDryRun() {
		return dryRun(a, cmd, &berthv1.MigrateVMResponse{Decision: refused}, refused, full)
	}
	if err != nil {
		return err
	}
	if request.GetDryRun() {
		return migrateDryRun(a, cmd, answer, full)
	}
	op, decision := answer.GetOperation(), answer.GetDecision()
	said := fmt.Sprintf("vm/%s stays on %s (%s)", decision.GetVm(), decision.GetWinner(), explanation.Placement(decision))
	if op != nil {
		said = fmt.Sprintf("vm/%s: %s (operation %s, %s)", op.GetVm(), follow.Beginning(op), op.GetId(), explanation.Placement(decision))
	}
	if op != nil && wait.Wait {
		if op, err = follow.Await(a, cmd, s, op, wait.Timeout); err != nil {
			return err
		}
		answer.Operation, answer.Decision = op, finalDecision(cmd, s, op, decision)
		said = fmt.Sprintf("vm/%s running on %s: moved from %s in %s (%s; %s)",
			op.GetVm(), op.GetTarget(), op.GetSource(), follow.Took(op), follow.MigrationPhrase(op.GetMigration()),
			explanation.Placement(answer.GetDecision()))
	}
	return a.Print(cmd, term.Result{
		Message: answer, Names: []string{"vm/" + decision.GetVm()}, Text: func(p *term.Page, _ bool) {
			p.Line("%s", said)
			if op == nil {
				for _, line := range explanation.Differing(decision) {
					p.Line("  %s", line)
				}
			}
		},
	})
}
