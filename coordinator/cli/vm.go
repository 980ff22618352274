package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

func (a *app) vmCommand() *cobra.Command {
	return noun("vm COMMAND", "Start, stop, migrate and see VMs", `
A VM is a guest that Berth places, starts and moves. Domains that others run on the same nodes are counted, shown by
'berth node show', and never touched, until 'berth vm adopt' takes them under management. 'berth vm why' and
'berth vm why-not' tell why a VM is where it is.`,
		a.vmAddCommand(), a.vmSetCommand(), a.vmStartCommand(), a.vmStopCommand(), a.vmListCommand(), a.vmShowCommand(),
		a.vmMigrateCommand(), a.vmConsoleCommand(), a.vmDeleteCommand(), a.vmAdoptCommand(), a.vmReleaseCommand(), a.vmWhyCommand(), a.vmWhyNotCommand())
}

func (a *app) vmListCommand() *cobra.Command {
	var node string
	cmd := &cobra.Command{
		Use: "list", Short: "List VMs", Args: arguments(0),
		Example: `  berth vm list
  berth vm list --node node1 -o wide`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := askAll(cmd.Context(), s, client.ListVMs, &berthv1.ListVMsRequest{Node: node}, everything)
			if err != nil {
				return err
			}
			a.nothing(cmd, len(answer.GetVms()), "no VMs: 'berth vm start --help' shows how to make one")
			return a.print(cmd, result{
				message: answer,
				names:   prefixed("vm/", answer.GetVms(), (*berthv1.VM).GetName),
				text:    func(p *page, wide bool) { a.vmTable(p, answer.GetVms(), wide) },
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&node, "node", "", "only those that `NODE` holds")
	complete(cmd, "node", a.nodeNames())
	return cmd
}

func (a *app) vmTable(p *page, vms []*berthv1.VM, wide bool) {
	headings := []string{"NAME", "STATE", "NODE", "MEMORY", "VCPUS", "CPU", "UPTIME"}
	if wide {
		headings = append(headings, "CLUSTER", "VDC", "LABELS", "MIGRATION", "RSS", "EPOCH", "OPERATION", "ID")
	}
	strange := slices.ContainsFunc(vms, func(vm *berthv1.VM) bool { return vm.GetCondition() != "" })
	if strange {
		headings = append(headings, "CONDITION")
	}
	rows := make([][]string, 0, len(vms))
	for _, vm := range vms {
		row := []string{
			vm.GetName(), enum(vm.GetState(), "VM_STATE_"), or(vm.GetNode(), none), size(vm.GetSpec().GetMemoryBytes()),
			strconv.Itoa(int(vm.GetSpec().GetVcpus())), cpu(vm), a.uptime(vm),
		}
		if wide {
			row = append(row, or(vm.GetCluster(), none), or(vm.GetVdc(), none), or(strings.Join(vm.GetLabels(), ","), none),
				or(vm.GetMigration(), migrations[0]), optionalSize(rss(vm)), strconv.FormatUint(vm.GetEpoch(), 10),
				or(vm.GetOperationId(), none), vm.GetId())
		}
		if strange {
			row = append(row, or(vm.GetCondition(), none))
		}
		rows = append(rows, row)
	}
	p.table(headings, rows)
}

// uptime is how long a VM has been running without a stop, migrations included.
func (a *app) uptime(vm *berthv1.VM) string {
	switch vm.GetState() {
	case berthv1.VMState_VM_STATE_RUNNING, berthv1.VMState_VM_STATE_MIGRATING, berthv1.VMState_VM_STATE_STOPPING,
		berthv1.VMState_VM_STATE_PAUSED:
		return a.since(vm.GetStartedAt())
	}
	return none
}

func (a *app) vmShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show a VM: what it is, where it runs, what was last done to it", Args: arguments(1, "NAME"),
		Example: `  berth vm show web1
  berth vm show web1 -o yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := ask(cmd.Context(), s, repeatable, client.GetVM, &berthv1.GetVMRequest{Vm: args[0]})
			if err != nil {
				return err
			}
			return a.print(cmd, result{
				message: answer,
				names:   []string{"vm/" + answer.GetVm().GetName()},
				text:    func(p *page, wide bool) { a.vmText(p, answer, wide) },
			})
		},
		ValidArgsFunction: first(a.vmNames()),
	}
}

func (a *app) vmText(p *page, answer *berthv1.GetVMResponse, wide bool) {
	vm := answer.GetVm()
	spec, telemetry := vm.GetSpec(), vm.GetTelemetry()
	p.line("vm/%s", vm.GetName())
	rows := [][2]string{
		{"state", enum(vm.GetState(), "VM_STATE_")},
		{"condition", vm.GetCondition()},
		{"node", vm.GetNode()},
		{"last node", differs(vm.GetLastNode(), vm.GetNode())},
		{"home", vm.GetHome()},
		{"uptime", differs(a.uptime(vm), none)},
		{"left behind", leftBehind(vm)},
		{"memory", units.Bytes(spec.GetMemoryBytes()).String()},
		{"vCPUs", strconv.Itoa(int(spec.GetVcpus()))},
		{"kernel", spec.GetKernel()},
		{"initrd", spec.GetInitrd()},
		{"cmdline", spec.GetCmdline()},
		{"machine", spec.GetMachine()},
		{"firmware", spec.GetFirmware()},
		{"CPU", or(vm.GetCpu(), spec.GetCpu())},
		{"user data", textLength(spec.GetUserData())},
	}
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
	rows = append(rows, estateRows(vm)...)
	rows = append(rows, a.moveRows(vm)...)
	if telemetry != nil {
		rows = append(rows, [2]string{"in use", fmt.Sprintf("CPU %s, resident memory %s, balloon %s",
			percent(telemetry.CpuRatio), known(telemetry.RssBytes), known(telemetry.BalloonBytes))})
	}
	rows = append(rows,
		[2]string{"created", a.at(vm.GetCreatedAt())},
		[2]string{"adopted", adopted(vm)},
		[2]string{"decision", vm.GetLastDecisionId()},
		[2]string{"epoch", strconv.FormatUint(vm.GetEpoch(), 10)},
		[2]string{"ID", vm.GetId()},
	)
	p.fields("  ", rows...)
	if len(vm.GetKeys())+len(vm.GetSticky()) > 0 {
		p.blank()
		p.line("keys")
		keyTable(p, "  ", vm.GetKeys(), vm.GetSticky())
	}
	if op := answer.GetOperation(); op != nil {
		p.blank()
		a.operationText(p, op, wide)
	}
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

// differs leaves out what only repeats something.
func differs(s, from string) string {
	if s == from {
		return ""
	}
	return s
}

func (a *app) vmStopCommand() *cobra.Command {
	var (
		force bool
		grace time.Duration
		wait  waiting
	)
	cmd := &cobra.Command{
		Use: "stop NAME", Short: "Shut a VM down", Args: arguments(1, "NAME"),
		Long: `Shut a VM down: its guest is asked to, and powered off when the grace time is over. The VM stays known and
'berth vm start NAME' starts it again.`,
		Example: `  berth vm stop web1
  berth vm stop web1 --grace 5m
  berth vm stop web1 --force`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case force && cmd.Flags().Changed("grace"):
				return Usagef(cmd, "--force and --grace exclude each other")
			case grace <= 0:
				return Usagef(cmd, "--grace %s: want more than nothing; --force does not ask the guest", grace)
			case !cmd.Flags().Changed("timeout") && grace+time.Minute > wait.timeout:
				wait.timeout = grace + time.Minute
			}
			return a.vmStop(cmd, &berthv1.StopVMRequest{
				Vm: args[0], Force: force, GraceSeconds: grace.Seconds(), RequestId: requestID(),
			}, wait)
		},
		ValidArgsFunction: first(a.vmNames()),
	}
	cmd.Flags().BoolVar(&force, "force", false, "power it off at once, like pulling the plug")
	cmd.Flags().DurationVar(&grace, "grace", 90*time.Second, "`DURATION` that the guest has to shut down, at most 1h")
	complete(cmd, "grace", cobra.NoFileCompletions)
	wait.flags(cmd)
	return cmd
}

func (a *app) vmStop(cmd *cobra.Command, request *berthv1.StopVMRequest, wait waiting) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	answer, err := ask(cmd.Context(), s, repeatable, client.StopVM, request)
	if err != nil {
		return err
	}
	op := answer.GetOperation()
	said := fmt.Sprintf("vm/%s: %s (operation %s)", op.GetVm(), beginning(op), op.GetId())
	if wait.wait {
		if op, err = a.await(cmd, s, op, wait.timeout); err != nil {
			return err
		}
		answer.Operation = op
		said = fmt.Sprintf("vm/%s stopped on %s after %s", op.GetVm(), or(op.GetSource(), none), took(op))
	}
	return a.print(cmd, result{
		message: answer, names: []string{"vm/" + op.GetVm()}, text: func(p *page, _ bool) { p.line("%s", said) },
	})
}

// took is how long an operation took.
func took(op *berthv1.Operation) string {
	if op.GetCreatedAt() == nil || op.GetEndedAt() == nil {
		return none
	}
	return span(op.GetEndedAt().AsTime().Sub(op.GetCreatedAt().AsTime()))
}

func (a *app) vmDeleteCommand() *cobra.Command {
	var (
		yes  bool
		keep bool
		wait waiting
	)
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Forget a stopped VM, with the disks that were made for it", Args: arguments(1, "NAME"),
		Long: `Forget a stopped VM: its description, its keys and its place in groups. Disks that Berth has made in a storage pool are
removed with it, but for those that are to be kept; --keep-disks keeps all. Disks that are files are not touched.`,
		Example: `  berth vm delete web1
  berth vm delete web1 --keep-disks
  berth vm delete web1 --yes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			question := "Disks that were made for it go with it."
			if keep {
				question = "Its disks stay."
			}
			if err := confirm(cmd, yes, fmt.Sprintf("Forget vm/%s? %s", args[0], question)); err != nil {
				return err
			}
			return a.vmDelete(cmd, &berthv1.DeleteVMRequest{Vm: args[0], KeepDisks: keep, RequestId: requestID()}, wait)
		},
		ValidArgsFunction: first(a.vmNames()),
	}
	cmd.Flags().BoolVar(&keep, "keep-disks", false, "all of its disks stay, as disks of no VM")
	confirmFlag(cmd, &yes)
	wait.flags(cmd)
	return cmd
}

func (a *app) vmDelete(cmd *cobra.Command, request *berthv1.DeleteVMRequest, wait waiting) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	answer, err := ask(cmd.Context(), s, repeatable, client.DeleteVM, request)
	if err != nil {
		return err
	}
	said := fmt.Sprintf("vm/%s deleted; its disks stay where they are", request.GetVm())
	if op := answer.GetOperation(); op != nil {
		said = fmt.Sprintf("vm/%s: %s (operation %s)", op.GetVm(), beginning(op), op.GetId())
		if wait.wait {
			if op, err = a.await(cmd, s, op, wait.timeout); err != nil {
				return err
			}
			answer.Operation = op
			said = fmt.Sprintf("vm/%s deleted, and its disks removed, after %s", op.GetVm(), took(op))
		}
	}
	return a.print(cmd, result{
		message: answer, names: []string{"vm/" + request.GetVm()}, text: func(p *page, _ bool) { p.line("%s", said) },
	})
}

// cpu and rss are of the VM's last telemetry, if there is any.
func cpu(vm *berthv1.VM) string {
	if vm.GetTelemetry() == nil {
		return none
	}
	return percent(vm.GetTelemetry().CpuRatio)
}

func rss(vm *berthv1.VM) *int64 {
	if vm.GetTelemetry() == nil {
		return nil
	}
	return vm.GetTelemetry().RssBytes
}
