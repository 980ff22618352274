package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

func (a *app) vmStartCommand() *cobra.Command {
	var (
		spec   specFlags
		links  linkFlags
		moves  moveFlags
		place  placeFlags
		root   rootFlags
		wait   waiting
		node   string
		dryRun bool
		full   bool
	)
	cmd := &cobra.Command{
		Use: "start [NAME...]", Short: "Place a VM on the best node and start it", Args: severalNames,
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

With several names, VMs that exist are started together: those that hard rules of groups tie to one node are placed as
one, on a node that takes them all. One that is refused does not stop the others.`,
		Example: `  berth vm start web1 --memory 512M --vcpus 2 --image /srv/images/web1.qcow2 --network default
  berth vm start web3 --memory 2G --image debian-12 --root-size 20G --network lan --user-data web3.yaml
  berth vm start web4 --memory 2G --image debian-12 --zone fra --offer spread --firmware efi
  berth vm start db1 --memory 8G --disk /srv/db1.raw --disk /srv/seed.iso,bus=sata,readonly --network bridge:br0
  berth vm start tiny --memory 128M --kernel /boot/vmlinuz --initrd /boot/initrd.img --cmdline console=ttyS0
  berth vm start web2 --memory 2G --vdc acme-prod --attach web2-root --nic web2-nic --key Group1=1@-100
  berth vm start --xml web1.xml
  berth vm start db2 --memory 4G --label acme --prefer hv1,hv2 --migration manual
  berth vm start web1
  berth vm start web1 web2 db1
  berth vm start web1 --memory 4G --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := describedOne(cmd, args); err != nil {
				return err
			}
			if len(args) > 1 {
				return a.vmStartMany(cmd, &berthv1.StartVMsRequest{Vms: args, Node: node, DryRun: dryRun, RequestId: requestID()}, wait)
			}
			request := &berthv1.StartVMRequest{Node: node, DryRun: dryRun, RequestId: requestID()}
			if len(args) > 0 {
				request.Name = args[0]
			}
			var err error
			if request.Spec, err = spec.spec(cmd, request.Name); err != nil {
				return err
			}
			if request.Keys, err = links.keys(cmd); err != nil {
				return err
			}
			request.Vdc, request.Offer, request.Image = links.vdc, links.offer, links.from
			request.Disks, request.Nics = links.attach, links.nics
			if request.Within, err = place.within(cmd); err != nil {
				return err
			}
			if request.Root, err = root.disk(cmd, spec.imageName()); err != nil {
				return err
			}
			if err = moves.check(cmd); err != nil {
				return err
			}
			request.Preferred, request.Labels, request.Migration, request.Ha = moves.prefer, moves.labels, moves.migration.text, moves.ha
			if full && !dryRun {
				return Usagef(cmd, "--full is for --dry-run; 'berth decision show last --full' explains what was done")
			}
			return a.vmStart(cmd, request, wait, full)
		},
		ValidArgsFunction: others(a.vmNames()),
	}
	spec.flags(cmd)
	links.flags(a, cmd)
	links.keyFlag(cmd)
	place.flags(a, cmd)
	root.flags(a, cmd)
	moves.flags(a, cmd)
	cmd.Flags().StringVar(&node, "node", "", "this `NODE` and no other one")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show the decision, start nothing")
	cmd.Flags().BoolVar(&full, "full", false, "with --dry-run: every figure of every node")
	complete(cmd, "node", a.nodeNames())
	wait.flags(cmd)
	return cmd
}

func (a *app) vmStart(cmd *cobra.Command, request *berthv1.StartVMRequest, wait waiting, full bool) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	answer, err := ask(cmd.Context(), s, repeatable, client.StartVM, request)
	if refused := rpc.Detail(err).GetDecision(); refused != nil && request.GetDryRun() {
		return a.dryRun(cmd, &berthv1.StartVMResponse{Decision: refused}, refused, full)
	}
	if err != nil {
		return err
	}
	if request.GetDryRun() {
		return a.dryRun(cmd, answer, answer.GetDecision(), full)
	}
	op := answer.GetOperation()
	said := fmt.Sprintf("vm/%s: %s (operation %s, %s)", op.GetVm(), beginning(op), op.GetId(), placement(answer.GetDecision()))
	if wait.wait {
		if op, err = a.await(cmd, s, op, wait.timeout); err != nil {
			return err
		}
		answer.Operation = op
		decision := a.finalDecision(cmd, s, op, answer.GetDecision())
		answer.Decision = decision
		if now, err := ask(cmd.Context(), s, repeatable, client.GetVM, &berthv1.GetVMRequest{Vm: op.GetVm()}); err == nil {
			answer.Vm = now.GetVm() // without it the answer is still true, only older
		}
		said = fmt.Sprintf("vm/%s running on %s (%s)", op.GetVm(), op.GetTarget(), placement(decision))
	}
	return a.print(cmd, result{
		message: answer, names: []string{"vm/" + op.GetVm()}, text: func(p *page, _ bool) { p.line("%s", said) },
	})
}

// finalDecision is the decision that the operation ended with: another one than it began with when a node failed and
// the VM was placed again.
func (a *app) finalDecision(cmd *cobra.Command, s *session, op *berthv1.Operation, made *berthv1.Decision) *berthv1.Decision {
	if op.GetDecisionId() == "" || op.GetDecisionId() == made.GetId() {
		return made
	}
	answer, err := ask(cmd.Context(), s, repeatable, client.GetDecision, &berthv1.GetDecisionRequest{Id: op.GetDecisionId()})
	if err != nil {
		return &berthv1.Decision{Id: op.GetDecisionId()}
	}
	return answer.GetDecision()
}

// dryRun prints what would be decided. A refusal is one here as well: the exit code says so.
func (a *app) dryRun(cmd *cobra.Command, answer proto.Message, decision *berthv1.Decision, full bool) error {
	var winner []string
	if decision.GetWinner() != "" {
		winner = []string{"node/" + decision.GetWinner()}
	}
	err := a.print(cmd, result{
		message: answer, names: winner,
		text: func(p *page, wide bool) { a.explanation(p, decision, detail{wide: wide, full: full}) },
	})
	if err != nil {
		return err
	}
	if decision.GetOutcome() == berthv1.DecisionOutcome_DECISION_OUTCOME_REFUSED {
		return failf(rpc.NoNodeFits, "free what the refusals name, or ask for less", "%s", decision.GetReason())
	}
	return nil
}
