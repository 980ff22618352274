package vm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/explanation"
	"berth/coordinator/cli/fieldform"
	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

func addCommand(a *term.App) *cobra.Command {
	var (
		described newVMFlags
		node      string
		dryRun    bool
	)
	cmd := &cobra.Command{
		Use: "add [NAME]", Short: "Declare a VM without starting it", Args: term.Arguments(0, "NAME"),
		Long: `Declare a VM without starting it; 'berth vm start NAME' does that. NAME may be left out when the XML has it.

--image with the name of an image declares a first disk NAME-root, which the first start makes as a copy of the image;
with a path it is a file on the nodes, as --disk is. --from, --attach and --nic name what is declared in the estate,
whose keys count with the VM's.

In a cluster with local storage this places the VM: the answer names the node that its disk belongs on, and the VM
starts there and nowhere else. When no node fits the exit code is 2.`,
		Example: `  berth vm add web2 --memory 2G --vcpus 2 --vdc acme-prod --from debian --attach web2-root --nic web2-nic
  berth vm add web2 --memory 2G --disk /srv/images/web2.qcow2 --network default --key Group1=1@-100
  berth vm add web3 --memory 2G --image debian-12 --root-size 20G --pool fast --keep-root --pod fra-1
  berth vm add --xml web2.xml --vdc acme-prod`,
		RunE: func(cmd *cobra.Command, args []string) error {
			request := &berthv1.AddVMRequest{Node: node, DryRun: dryRun, RequestId: term.RequestID()}
			if len(args) > 0 {
				request.Name = args[0]
			}
			var err error
			if request.Vm, err = described.message(cmd, request.Name); err != nil {
				return err
			}
			if request.GetVm() == nil {
				return term.Usagef(cmd, "--memory is missing: a new VM needs a size")
			}
			return add(a, cmd, request)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	described.flags(a, cmd)
	cmd.Flags().StringVar(&node, "node", "", "with local storage: its disk is on this `NODE`")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what would come of it, declare nothing")
	term.Complete(cmd, "node", a.NodeNames())
	return cmd
}

func add(a *term.App, cmd *cobra.Command, request *berthv1.AddVMRequest) error {
	s, err := a.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	answer, err := term.Ask(cmd.Context(), s, term.Client.AddVM, request)
	if refused := rpc.Detail(err).GetDecision(); refused != nil && request.GetDryRun() {
		return dryRun(a, cmd, &berthv1.AddVMResponse{Decision: refused}, refused, false)
	}
	if err != nil {
		return err
	}
	if request.GetDryRun() && answer.GetDecision() != nil {
		return dryRun(a, cmd, answer, answer.GetDecision(), false)
	}
	name := cmp.Or(answer.GetVm().GetName(), request.GetName())
	said := fmt.Sprintf("vm/%s added; 'berth vm start %s' starts it", name, name)
	switch decision := answer.GetDecision(); {
	case request.GetDryRun():
		said = fmt.Sprintf("vm/%s would be added, and placed when it starts; nothing was changed", name)
	case decision != nil:
		said = fmt.Sprintf("vm/%s added, its disk belongs on %s (%s)", name, decision.GetWinner(), explanation.Placement(decision))
	}
	noteBootless(a, cmd, name, request.GetVm())
	a.Cautions(cmd.ErrOrStderr(), answer.GetWarnings())
	return a.Print(cmd, term.Result{
		Message: answer, Names: []string{"vm/" + name}, Text: func(p *term.Page, _ bool) { p.Line("%s", said) },
	})
}

func setCommand(a *term.App) *cobra.Command {
	var (
		place  placeFlags
		memory term.StringFlag
		vcpus  int32
		most   mostFlags
		unset  []string
		now    bool
		acting acting
	)
	traits := fieldform.Of(traitFields)
	removable := slices.Concat(traitFlagNames, placeFlagNames)
	cmd := &cobra.Command{
		Use: "set NAME...", Short: "Change what a VM links to, who may move it, and its size", Args: someNames,
		Long: `Change what a VM links to in the estate, by which labels groups take it in, who may move it, and its size. What is not
named stays as it is; --attach, --nic, --label and --prefer replace all that there were. A VM that runs goes on as it
is: what says how Berth treats it (as --label, --migration and --ha do) counts at once, the rest from its next start
on. Keys have a noun of their own: 'berth key set vm/NAME KEY=VALUE'.

--now changes the size of guests that run, of several VMs too, and of their next start: up to --max-memory and
--max-vcpus as they were at its start, or the maximum of its document; without those, up to what it was started with.
A VM that grows has to find the room on its node, as if it were placed there. A guest gives memory back when it can, so
the answer says what it has then.`,
		Example: `  berth vm set web1 --vdc acme-prod --offer small
  berth vm set web1 --attach web1-root --attach web1-data
  berth vm set web1 --memory 4G --max-memory 8G --unset from,nic
  berth vm set web1 --label tier-web,acme --migration manual
  berth vm set web1 --ha=true
  berth vm set web1 web2 --memory 2G --vcpus 2 --now`,
		RunE: func(cmd *cobra.Command, args []string) error {
			change := &berthv1.VMChange{}
			if others := term.ChangedFlags(cmd, nowFlagNames); !now && len(others) > 0 {
				return term.Usagef(cmd, "%s goes with --now alone: without it nothing is waited for", others[0])
			}
			if !now && len(args) > 1 {
				return term.Usagef(cmd, "unexpected argument %q: several VMs take --now", args[1])
			}
			if err := term.CheckUnset(cmd, unset, removable); err != nil {
				return err
			}
			if err := traits.Change(cmd, change, unset); err != nil {
				return err
			}
			if err := place.change(cmd, change, unset); err != nil {
				return err
			}
			if cmd.Flags().Changed("memory") {
				bytes, err := term.ParseMemory(cmd, memory.Text)
				if err != nil {
					return err
				}
				change.MemoryBytes = &bytes
			}
			if cmd.Flags().Changed("vcpus") {
				if vcpus < 1 || vcpus > model.MaxVCPUs {
					return term.Usagef(cmd, "--vcpus %d: want 1 to %d", vcpus, model.MaxVCPUs)
				}
				change.Vcpus = &vcpus
			}
			if err := most.change(cmd, change); err != nil {
				return err
			}
			if others := term.ChangedFlags(cmd, slices.Concat(removable, mostFlagNames, []string{"unset"})); now && len(others) > 0 {
				return term.Usagef(cmd, "--now is about --memory and --vcpus: set %s without it", others[0])
			}
			if now && change.MemoryBytes == nil && change.Vcpus == nil {
				return term.Usagef(cmd, "say what to change now: --memory or --vcpus")
			}
			if now {
				return acting.act(a, cmd, &berthv1.ActOnVMsRequest{Vms: args, Action: &berthv1.ActOnVMsRequest_Resize{
					Resize: &berthv1.ResizeAction{MemoryBytes: change.GetMemoryBytes(), Vcpus: change.GetVcpus()},
				}}, "set")
			}
			settable := slices.Concat(removable, []string{"memory", "vcpus"}, mostFlagNames)
			if len(unset)+len(term.ChangedFlags(cmd, settable)) == 0 {
				return term.Usagef(cmd, "say what to set: --%s or --unset", strings.Join(settable, ", --"))
			}
			return set(a, cmd, &berthv1.ChangeVMRequest{Vm: args[0], Change: change, RequestId: term.RequestID()})
		},
		ValidArgsFunction: a.VMNames(),
	}
	traits.Define(a, cmd)
	place.flags(a, cmd)
	memory.Word = "SIZE"
	cmd.Flags().Var(&memory, "memory", "memory from the next start on, or --now, for instance 4G")
	cmd.Flags().Int32Var(&vcpus, "vcpus", 0, "`NUMBER` of vCPUs from the next start on, or --now")
	most.flags(cmd, "memory that it can get while it runs, from the next start on, for instance 8G; 0: what it is started with",
		"`NUMBER` of vCPUs that it can get while it runs, from the next start on; 0: those it is started with")
	cmd.Flags().BoolVar(&now, "now", false, "change the size of guests that run as well")
	acting.flags(cmd)
	cmd.Flags().StringSliceVar(&unset, "unset", nil, "`NAMES` of what to take away: "+strings.Join(removable, ", "))
	term.Complete(cmd, "memory", cobra.NoFileCompletions)
	term.Complete(cmd, "vcpus", cobra.NoFileCompletions)
	term.Complete(cmd, "unset", term.CompleteFixed(removable...))
	return cmd
}

// nowFlagNames are the flags of an operation, which a change of the record is not.
var nowFlagNames = []string{"dry-run", "when-back", "wait", "no-wait", "timeout"}

func set(a *term.App, cmd *cobra.Command, request *berthv1.ChangeVMRequest) error {
	answer, err := term.AskOnce(a, cmd, term.Client.ChangeVM, request)
	if err != nil {
		return err
	}
	name := answer.GetVm().GetName()
	return a.Print(cmd, term.Result{
		Message: answer, Names: []string{"vm/" + name},
		Text: func(p *term.Page, _ bool) {
			if len(answer.GetChanges()) == 0 {
				p.Line("vm/%s: nothing to change", name)
				return
			}
			p.Line("vm/%s changed", name)
			term.FieldChanges(p, answer.GetChanges())
			if why := answer.GetNextStartRefused(); why != "" {
				p.Line("  warning: no node could take it at its next start, as they are now: %s", why)
				if answer.GetVm().GetHa() {
					p.Line("  it is to be highly available: if its node fails now, it stays down; set it back, or make room")
				}
			}
			if gaps := answer.GetHaGaps(); len(gaps) > 0 {
				p.Line("it would not be restarted by itself now")
				for _, gap := range gaps {
					p.Line("  %s", gap)
				}
			}
		},
	})
}
