package vm

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/fieldform"
	"berth/coordinator/cli/follow"
	"berth/coordinator/cli/keyform"
	"berth/coordinator/cli/term"
	"berth/coordinator/cli/weekly"
	"berth/coordinator/schema"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// Command is the noun vm.
func Command(a *term.App) *cobra.Command {
	return term.Noun("vm COMMAND", "Start, stop, migrate and see VMs", `
A VM is a guest that Berth places, starts and moves. Domains that others run on the same nodes are counted, shown by
'berth node show', and never touched, until 'berth vm adopt' takes them under management. 'berth vm why' and
'berth vm why-not' tell why a VM is where it is, and 'berth vm why-not-started' what keeps one from being started.`,
		addCommand(a), setCommand(a), startCommand(a), stopCommand(a), rebootCommand(a), resetCommand(a), pauseCommand(a), resumeCommand(a),
		attachCommand(a), detachCommand(a), mediaCommand(a), snapshotCommand(a), xmlCommand(a), editCommand(a),
		listCommand(a), showCommand(a),
		migrateCommand(a), consoleCommand(a), deleteCommand(a), adoptCommand(a), releaseCommand(a), acceptCommand(a), revertCommand(a),
		whyCommand(a),
		whyNotCommand(a), whyNotStartedCommand(a), historyCommand(a), weekly.VMCommand(a))
}

func listCommand(a *term.App) *cobra.Command {
	list := &term.Lister[*berthv1.VM]{
		What: "VM", Empty: "no VMs: 'berth vm start --help' shows how to make one", Ask: term.AskVMs, Last: term.LastVMs,
		Name: func(vm *berthv1.VM) string { return "vm/" + vm.GetName() },
		State: func(vm *berthv1.VM) string {
			memory, vcpus, _ := listedSize(vm)
			return fmt.Sprint(vm.GetState(), vm.GetNode(), memory, vcpus, vm.GetCondition(), vm.GetEpoch(), vm.GetOperationId())
		},
		Table: func(p *term.Page, vms []*berthv1.VM, wide bool) { table(a, p, vms, wide) },
	}
	cmd := list.Command(a, &cobra.Command{
		Use: "list", Short: "List VMs",
		Long: `List VMs. What stands on the line has to hold together; of several values of one flag, one has to.

Without a leader the list is what one coordinator last knew, and says as of when. The exit code is 5 then.`,
		Example: `  berth vm list
  berth vm list --node node1 -o wide
  berth vm list --customer acme --state running,paused --sort memory
  berth vm list --label web --watch`,
	})
	list.VMFlags(cmd, a, "that are held by", "")
	list.StateFlags(cmd, a, "", "stopped", "starting", "running", "stopping", "migrating", "paused", "unknown", "lost")
	list.Flag(cmd,
		term.ByText("name", (*berthv1.VM).GetName),
		term.ByMost("memory", func(vm *berthv1.VM) int64 { return runs(vm).GetMemoryBytes() }),
		term.ByText("node", (*berthv1.VM).GetNode),
		term.ByText("state", func(vm *berthv1.VM) string { return term.Enum(vm.GetState(), "VM_STATE_") }),
		term.ByMost("age", func(vm *berthv1.VM) int64 { return -vm.GetCreatedAt().AsTime().UnixNano() }),
	)
	return cmd
}

func table(a *term.App, p *term.Page, vms []*berthv1.VM, wide bool) {
	headings := []string{"NAME", "STATE", "NODE", "MEMORY", "VCPUS", "CPU", "UPTIME"}
	if wide {
		headings = append(headings, "CLUSTER", "VDC", "LABELS", "MIGRATION", "RSS", "EPOCH", "OPERATION", "ID")
	}
	strange := slices.ContainsFunc(vms, func(vm *berthv1.VM) bool { return vm.GetCondition() != "" })
	if strange {
		headings = append(headings, "CONDITION")
	}
	rows := make([][]string, 0, len(vms))
	marked := false
	for _, vm := range vms {
		memory, vcpus, waits := listedSize(vm)
		marked = marked || waits
		row := []string{
			vm.GetName(), term.Enum(vm.GetState(), "VM_STATE_"), cmp.Or(vm.GetNode(), term.None), memory, vcpus, cpu(vm), uptime(a, vm),
		}
		if wide {
			migration := cmp.Or(vm.GetMigration(), schema.Of(schema.VM, "migration").Words[0])
			row = append(
				row, cmp.Or(vm.GetCluster(), term.None), cmp.Or(vm.GetVdc(), term.None), cmp.Or(strings.Join(vm.GetLabels(), ","), term.None),
				migration, term.OptionalSize(rss(vm)), strconv.FormatUint(vm.GetEpoch(), 10), cmp.Or(vm.GetOperationId(), term.None), vm.GetId(),
			)
		}
		if strange {
			row = append(row, cmp.Or(vm.GetCondition(), term.None))
		}
		rows = append(rows, row)
	}
	p.Table(headings, rows)
	if marked {
		p.Blank()
		p.Line(mark + " otherwise at its next start: see 'berth vm show NAME'")
	}
}

// uptime is how long a VM has been running without a stop, migrations included.
func uptime(a *term.App, vm *berthv1.VM) string {
	switch vm.GetState() {
	case berthv1.VMState_VM_STATE_RUNNING, berthv1.VMState_VM_STATE_MIGRATING, berthv1.VMState_VM_STATE_STOPPING,
		berthv1.VMState_VM_STATE_PAUSED:
		return a.Since(vm.GetStartedAt())
	}
	return term.None
}

func showCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show a VM: what it is, where it runs, what was last done to it", Args: term.Arguments(1, "NAME"),
		Example: `  berth vm show web1
  berth vm show web1 -o yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := term.AskOnce(a, cmd, term.Client.GetVM, &berthv1.GetVMRequest{Vm: args[0]})
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{
				Message: answer,
				Names:   []string{"vm/" + answer.GetVm().GetName()},
				Text:    func(p *term.Page, wide bool) { text(a, p, answer, wide) },
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.VMNames()),
	}
}

func text(a *term.App, p *term.Page, answer *berthv1.GetVMResponse, wide bool) {
	vm := answer.GetVm()
	spec, telemetry := vm.GetSpec(), vm.GetTelemetry()
	p.Line("vm/%s", vm.GetName())
	rows := [][2]string{
		{"state", term.Enum(vm.GetState(), "VM_STATE_")},
		{"condition", vm.GetCondition()},
		{"node", vm.GetNode()},
		{"last node", term.Differs(vm.GetLastNode(), vm.GetNode())},
		{"home", vm.GetHome()},
		{"bound to", bound(vm)},
	}
	for _, text := range vm.GetImmovable() {
		rows = append(rows, [2]string{"cannot move", text})
	}
	rows = append(rows, [][2]string{
		{"uptime", term.Differs(uptime(a, vm), term.None)},
		{"left behind", leftBehind(vm)},
		{"memory", units.Bytes(runs(vm).GetMemoryBytes()).String()},
		{"vCPUs", strconv.Itoa(int(runs(vm).GetVcpus()))},
	}...)
	if most := spec.GetMaxMemoryBytes(); most > 0 {
		rows = append(rows, [2]string{"memory up to", units.Bytes(most).String()})
	}
	if most := spec.GetMaxVcpus(); most > 0 {
		rows = append(rows, [2]string{"vCPUs up to", strconv.Itoa(int(most))})
	}
	rows = append(rows, fieldform.Rows(specFields, spec)...)
	rows = append(
		rows, [2]string{"CPU", cmp.Or(vm.GetCpu(), spec.GetCpu())}, [2]string{"user data", textLength(spec.GetUserData())},
	)
	for _, disk := range spec.GetDisks() {
		text := fmt.Sprintf("%s (%s, %s)", disk.GetPath(), disk.GetFormat(), disk.GetBus())
		if disk.GetReadOnly() {
			text = fmt.Sprintf("%s (%s, %s, read-only)", disk.GetPath(), disk.GetFormat(), disk.GetBus())
		}
		rows = append(rows, [2]string{"disk", text})
	}
	rows = append(rows, volumeRows(vm)...)
	for _, network := range spec.GetNetworks() {
		rows = append(rows, [2]string{"network", network})
	}
	if spec.GetXml() != "" {
		rows = append(rows, [2]string{"devices", "as in its own domain XML; -o json shows it"})
	}
	rows = append(rows, driftRows(a, vm)...)
	rows = append(rows, snapshotRows(a, vm)...)
	rows = append(rows, nextStartRows(a, vm, answer.GetNextStartRefused())...)
	rows = append(rows, traitRows(a, vm)...)
	for _, gap := range answer.GetHaGaps() {
		rows = append(rows, [2]string{"HA gap", gap})
	}
	if telemetry != nil {
		rows = append(rows, [2]string{"in use", fmt.Sprintf("CPU %s, resident memory %s, balloon %s",
			term.Percent(telemetry.CpuRatio), term.Known(telemetry.RssBytes), term.Known(telemetry.BalloonBytes))})
	}
	rows = append(rows, pressureRows(telemetry.GetPressure())...)
	rows = append(rows,
		[2]string{"created", a.At(vm.GetCreatedAt())},
		[2]string{"adopted", adopted(vm)},
		[2]string{"decision", vm.GetLastDecisionId()},
		[2]string{"epoch", strconv.FormatUint(vm.GetEpoch(), 10)},
		[2]string{"ID", vm.GetId()},
	)
	p.Fields("  ", rows...)
	if len(vm.GetKeys())+len(vm.GetSticky()) > 0 {
		p.Blank()
		p.Line("keys")
		keyform.Table(p, "  ", vm.GetKeys(), vm.GetSticky())
	}
	if op := answer.GetOperation(); op != nil {
		p.Blank()
		follow.WriteOperation(a, p, op, wide)
	}
}

// pressureRows are what a VM's threads wait for, as 'berth node show' tells it of a node.
func pressureRows(told *berthv1.DomainPressure) [][2]string {
	if told == nil {
		return nil
	}
	return [][2]string{
		{"CPU pressure", term.Pressure(told.CpuSome, told.CpuFull)},
		{"memory pressure", term.Pressure(told.MemorySome, told.MemoryFull)},
		{"I/O pressure", term.Pressure(told.IoSome, told.IoFull)},
	}
}

// bound says why a VM starts on one node alone.
func bound(vm *berthv1.VM) string {
	if vm.GetBound() == "" {
		return ""
	}
	return vm.GetBound() + ": a disk of it is in no pool that is declared as shared, so no other node is known to have it"
}

// leftBehind tells of paused copies that go when their nodes answer.
func leftBehind(vm *berthv1.VM) string {
	var texts []string
	for _, left := range vm.GetDiscards() {
		texts = append(texts, fmt.Sprintf("a paused copy on %s (epoch %d), which goes when that node answers", left.GetNode(), left.GetEpoch()))
	}
	return strings.Join(texts, "; ")
}

// adopted says so of a VM whose domain Berth has not made.
func adopted(vm *berthv1.VM) string {
	if !vm.GetAdopted() {
		return ""
	}
	return "yes: its domain was there before"
}

// textLength tells how long a text is.
func textLength(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%d lines; -o json shows it", strings.Count(strings.TrimRight(text, "\n"), "\n")+1)
}

func stopCommand(a *term.App) *cobra.Command {
	var (
		force     bool
		interrupt bool
		grace     time.Duration
		flags     acting
	)
	cmd := &cobra.Command{
		Use: "stop NAME...", Short: "Shut VMs down", Args: someNames,
		Long: `Shut VMs down: each guest is asked to, and powered off when the grace time is over. A VM stays known, and
'berth vm start NAME' starts it again. It is refused while somebody makes a backup of the VM or copies a disk of it:
--interrupt-backup and --force stop it all the same, and say what does not finish. What is refused of one VM does not
keep the others from being stopped.

If its node is unreachable, that is refused: nobody can ask the guest. With --when-back it is done as soon as the node
is heard again, and 'berth operation cancel' takes it back until then.`,
		Example: `  berth vm stop web1
  berth vm stop web1 web2 --grace 5m
  berth vm stop --selector label=web --dry-run
  berth vm stop web1 --force`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case force && cmd.Flags().Changed("grace"):
				return term.Usagef(cmd, "--force and --grace exclude each other")
			case grace <= 0:
				return term.Usagef(cmd, "--grace %s: want more than nothing; --force does not ask the guest", grace)
			case !cmd.Flags().Changed("timeout") && grace+time.Minute > flags.wait.Timeout:
				flags.wait.Timeout = grace + time.Minute
			}
			if flags.several(args) {
				return flags.act(a, cmd, &berthv1.ActOnVMsRequest{Vms: args, Action: &berthv1.ActOnVMsRequest_Stop{Stop: &berthv1.StopAction{
					Force: force, GraceSeconds: grace.Seconds(), InterruptBackup: interrupt,
				}}}, "stopped")
			}
			return stop(a, cmd, &berthv1.StopVMRequest{
				Vm: args[0], Force: force, GraceSeconds: grace.Seconds(), WhenBack: flags.whenBack, RequestId: term.RequestID(),
				InterruptBackup: interrupt,
			}, flags.wait)
		},
		ValidArgsFunction: a.VMNames(),
	}
	cmd.Flags().BoolVar(&force, "force", false, "power it off at once, like pulling the plug")
	cmd.Flags().BoolVar(&interrupt, "interrupt-backup", false, "stop it also while a backup or a job on a disk runs, which does not finish")
	cmd.Flags().DurationVar(&grace, "grace", 90*time.Second, "`DURATION` that the guest has to shut down, at most 1h")
	term.Complete(cmd, "grace", cobra.NoFileCompletions)
	flags.flags(cmd)
	flags.choosing.flag(cmd)
	return cmd
}

func whenBackFlag(cmd *cobra.Command, whenBack *bool) {
	cmd.Flags().BoolVar(whenBack, "when-back", false, "if its node is silent, have it done when that is heard again")
}

// later tells whether an operation begins only when its node is heard again, however long that takes: nobody waits for that.
func later(op *berthv1.Operation, whenBack bool) bool { return whenBack && op.GetPhase() == "queued" }

func stop(a *term.App, cmd *cobra.Command, request *berthv1.StopVMRequest, wait follow.WaitFlags) error {
	s, err := a.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	answer, err := term.Ask(cmd.Context(), s, term.Client.StopVM, request)
	if err != nil {
		return err
	}
	wait.Wait = wait.Wait && !later(answer.GetOperation(), request.GetWhenBack())
	for _, broken := range answer.GetInterrupted() {
		a.Note(cmd, "interrupts: "+broken)
	}
	return follow.Through(a, cmd, s, answer, &answer.Operation, wait, func(op *berthv1.Operation) string {
		return fmt.Sprintf("vm/%s stopped on %s after %s", op.GetVm(), cmp.Or(op.GetSource(), term.None), follow.Took(op))
	})
}

func rebootCommand(a *term.App) *cobra.Command {
	var (
		force bool
		flags acting
	)
	cmd := &cobra.Command{
		Use: "reboot NAME...", Short: "Restart the guests of VMs where they run", Args: someNames,
		Long: `Restart the guests of VMs where they run: each is asked to, by the agent in the guest if there is one, else by the power
button, and has three minutes. Its node and its domain stay the same. So a change that waits for a start waits on:
'berth vm stop' and 'berth vm start' bring that about. --force does what 'berth vm reset' does.`,
		Example: `  berth vm reboot web1
  berth vm reboot web1 web2
  berth vm reboot web1 --force`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.several(args) {
				request := &berthv1.ActOnVMsRequest{Vms: args, Action: &berthv1.ActOnVMsRequest_Reboot{Reboot: &berthv1.RebootAction{}}}
				if force {
					request.Action = &berthv1.ActOnVMsRequest_Reset_{Reset_: &berthv1.ResetAction{}}
				}
				return flags.act(a, cmd, request, "restarted")
			}
			return reboot(a, cmd, &berthv1.RebootVMRequest{
				Vm: args[0], Force: force, WhenBack: flags.whenBack, RequestId: term.RequestID(),
			}, flags.wait)
		},
		ValidArgsFunction: a.VMNames(),
	}
	cmd.Flags().BoolVar(&force, "force", false, "reset it at once without asking the guest, like the reset button")
	flags.flags(cmd)
	flags.choosing.flag(cmd)
	return cmd
}

func reboot(a *term.App, cmd *cobra.Command, request *berthv1.RebootVMRequest, wait follow.WaitFlags) error {
	s, err := a.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	answer, err := term.Ask(cmd.Context(), s, term.Client.RebootVM, request)
	if err != nil {
		return err
	}
	op := answer.GetOperation()
	said := fmt.Sprintf("vm/%s: %s (operation %s)", op.GetVm(), follow.Beginning(op), op.GetId())
	if wait.Wait && !later(op, request.GetWhenBack()) {
		if op, err = follow.Await(a, cmd, s, op, wait.Timeout); err != nil {
			return err
		}
		answer.Operation = op
		said = fmt.Sprintf("vm/%s restarted on %s after %s", op.GetVm(), op.GetSource(), follow.Took(op))
	}
	return a.Print(cmd, term.Result{
		Message: answer, Names: []string{"vm/" + op.GetVm()}, Text: func(p *term.Page, _ bool) { p.Line("%s", said) },
	})
}

// cpu and rss are of the VM's last telemetry, if there is any.
func cpu(vm *berthv1.VM) string {
	if vm.GetTelemetry() == nil {
		return term.None
	}
	return term.Percent(vm.GetTelemetry().CpuRatio)
}

func rss(vm *berthv1.VM) *int64 {
	if vm.GetTelemetry() == nil {
		return nil
	}
	return vm.GetTelemetry().RssBytes
}
