package vm

import (
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"berth/coordinator/cli/explanation"
	"berth/coordinator/cli/follow"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

func startCommand(a *term.App) *cobra.Command {
	var (
		described    newVMFlags
		wait         follow.WaitFlags
		node, reason string
		dryRun, full bool
		force        bool
		choose       choosing
	)
	cmd := &cobra.Command{
		Use: "start [NAME...]", Short: "Place a VM on the best node and start it", Args: namesOrSelector,
		Long: `Place a VM on the best node and start it.

With a description (--memory and the flags that go with it, or --xml) the VM is a new one. Without, it is one that was
stopped. NAME may be left out when the XML has it. --image with the name of an image makes a first disk NAME-root with
the VM, a thin copy of the image; --root-size alone makes an empty one. The planner chooses its pool, and it goes with
the VM unless --keep-root is given. Paths are those of files on the nodes. --from, --attach and --nic name what is
declared in the estate, whose keys count with the VM's.

--zone, --pod or --cluster say where it may run if its VDC does not. Where there are several clusters, the planner that
its offer names, or the zone's, puts them in order.

The line that reports success names the node and the decision; 'berth decision show' explains it. When no node fits,
each node is shown with the constraint that refused it, what it needed and what was available; the exit code is then 2.

A VM that may run on a node which does not answer is not started: 'berth vm why-not-started NAME' says which node that
is. --force with a --reason starts it all the same. It is for the one who knows that no node runs the VM: two copies
would write to its disks. The operation and the history keep the reason.

With several names, VMs that exist are started together: those that hard rules of groups tie to one node are placed as
one, on a node that takes them all. One that is refused does not stop the others.`,
		Example: `  berth vm start web1 --memory 512M --vcpus 2 --image /srv/images/web1.qcow2 --network default
  berth vm start web3 --memory 2G --image debian-12 --root-size 20G --network lan --user-data web3.yaml
  berth vm start web4 --memory 2G --image debian-12 --zone fra --offer spread --firmware efi
  berth vm start db1 --memory 8G --disk /srv/images/db1.raw --disk /srv/images/seed.iso,bus=sata,readonly
  berth vm start tiny --memory 128M --kernel /srv/images/vmlinuz --initrd /srv/images/initrd.img --cmdline console=ttyS0
  berth vm start web2 --memory 2G --vdc acme-prod --attach web2-root --nic web2-nic --key Group1=1@-100
  berth vm start --xml web1.xml
  berth vm start db2 --memory 4G --label acme --prefer hv1,hv2 --migration manual
  berth vm start web1
  berth vm start web1 web2 db1
  berth vm start --selector label=web
  berth vm start web1 --memory 4G --dry-run
  berth vm start web1 --force --reason "I have pulled the plug of node3"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := describedOne(cmd, args); err != nil {
				return err
			}
			if cmd.Flags().Changed("reason") != force {
				return term.Usagef(cmd, "--force and --reason go together: the reason says what you know of the nodes that do not answer")
			}
			if (len(args) > 1 || choose.on()) && force {
				return term.Usagef(cmd, "--force is for one VM at a time")
			}
			if len(args) > 1 || choose.on() {
				request := &berthv1.StartVMsRequest{Vms: args, Node: node, DryRun: dryRun, RequestId: term.RequestID()}
				return startMany(a, cmd, &choose, request, wait)
			}
			request := &berthv1.StartVMRequest{Node: node, DryRun: dryRun, RequestId: term.RequestID(), Force: force, Reason: reason}
			if len(args) > 0 {
				request.Name = args[0]
			}
			var err error
			if request.Vm, err = described.message(cmd, request.Name); err != nil {
				return err
			}
			if full && !dryRun {
				return term.Usagef(cmd, "--full is for --dry-run; 'berth decision show last --full' explains what was done")
			}
			return start(a, cmd, request, wait, full)
		},
		ValidArgsFunction: term.CompleteOthers(a.VMNames()),
	}
	described.flags(a, cmd)
	cmd.Flags().StringVar(&node, "node", "", "this `NODE` and no other one")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show the decision, start nothing")
	cmd.Flags().BoolVar(&force, "force", false, "start it although a node that does not answer may run it")
	cmd.Flags().StringVar(&reason, "reason", "", "with --force: what you know of those nodes, as `TEXT`")
	cmd.Flags().BoolVar(&full, "full", false, "with --dry-run: every figure of every node")
	term.Complete(cmd, "node", a.NodeNames())
	term.Complete(cmd, "reason", cobra.NoFileCompletions)
	choose.flag(cmd)
	wait.Flags(cmd)
	return cmd
}

func start(a *term.App, cmd *cobra.Command, request *berthv1.StartVMRequest, wait follow.WaitFlags, full bool) error {
	s, err := a.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	answer, err := term.Ask(cmd.Context(), s, term.Client.StartVM, request)
	if refused := rpc.Detail(err).GetDecision(); refused != nil && request.GetDryRun() {
		return dryRun(a, cmd, &berthv1.StartVMResponse{Decision: refused}, refused, full)
	}
	if err != nil {
		return err
	}
	if request.GetDryRun() {
		return dryRun(a, cmd, answer, answer.GetDecision(), full)
	}
	op := answer.GetOperation()
	noteBootless(a, cmd, op.GetVm(), request.GetVm())
	said := fmt.Sprintf(
		"vm/%s: %s (operation %s, %s)", op.GetVm(), follow.Beginning(op), op.GetId(), explanation.Placement(answer.GetDecision()),
	)
	if wait.Wait {
		if op, err = follow.Await(a, cmd, s, op, wait.Timeout); err != nil {
			return err
		}
		answer.Operation = op
		decision := finalDecision(cmd, s, op, answer.GetDecision())
		answer.Decision = decision
		if now, err := term.Ask(cmd.Context(), s, term.Client.GetVM, &berthv1.GetVMRequest{Vm: op.GetVm()}); err == nil {
			answer.Vm = now.GetVm() // without it the answer is still true, only older
		}
		said = fmt.Sprintf("vm/%s running on %s (%s)", op.GetVm(), op.GetTarget(), explanation.Placement(decision))
	}
	a.Cautions(cmd.ErrOrStderr(), answer.GetDecision().GetWarnings())
	return a.Print(cmd, term.Result{
		Message: answer, Names: []string{"vm/" + op.GetVm()}, Text: func(p *term.Page, _ bool) { p.Line("%s", said) },
	})
}

// finalDecision is the decision that the operation ended with: another one than it began with when a node failed and
// the VM was placed again.
func finalDecision(cmd *cobra.Command, s *term.Session, op *berthv1.Operation, made *berthv1.Decision) *berthv1.Decision {
	if op.GetDecisionId() == "" || op.GetDecisionId() == made.GetId() {
		return made
	}
	answer, err := term.Ask(cmd.Context(), s, term.Client.GetDecision, &berthv1.GetDecisionRequest{Id: op.GetDecisionId()})
	if err != nil {
		return &berthv1.Decision{Id: op.GetDecisionId()}
	}
	return answer.GetDecision()
}

// dryRun prints what would be decided, and what more there is to say of it. A refusal is one here as well: the exit code says so.
func dryRun(a *term.App, cmd *cobra.Command, answer proto.Message, decision *berthv1.Decision, full bool, more ...string) error {
	var winner []string
	if decision.GetWinner() != "" {
		winner = []string{"node/" + decision.GetWinner()}
	}
	err := a.Print(cmd, term.Result{
		Message: answer, Names: winner,
		Text: func(p *term.Page, wide bool) {
			explanation.Write(a, p, decision, explanation.Detail{Wide: wide, Full: full})
			for _, line := range more {
				p.Line("%s", line)
			}
		},
	})
	if err != nil {
		return err
	}
	if decision.GetOutcome() == berthv1.DecisionOutcome_DECISION_OUTCOME_REFUSED {
		return term.Failf(rpc.NoNodeFits, "free what the refusals name, or ask for less", "%s", decision.GetReason())
	}
	return nil
}
