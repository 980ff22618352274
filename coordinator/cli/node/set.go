package node

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/fieldform"
	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// settingFlags are the settings of a node by their flags, markFlags what else is said of it. --reset takes the same words.
var (
	settingFlags = []string{"ram-ratio", "cpu-ratio", "overhead"}
	markFlags    = fieldform.Of(schema.Node).Names()
)

func setCommand(a *term.App) *cobra.Command {
	var (
		ram, cpu float64
		overhead string
		reset    []string
		keys     []string
		unset    []string
		toward   string
		machine  string
		fence    fenceFlags
	)
	marks := fieldform.Of(schema.Node)
	cmd := &cobra.Command{
		Use: "set NODE", Short: "Change how much of a node may be promised, its keys, labels, fence device and cluster",
		Args: term.Arguments(1, "NODE"),
		Long: `Change how much of a node may be promised to VMs, the values of its keys, its labels, and what part it takes in
balancing. What is not named stays as it is; --label replaces all labels; --reset takes a setting back to the cluster's
default, --unset-key a key. Nothing that runs is touched: the settings count for the next decision. What keys there are
says the cluster: 'berth cluster node-key declare'. --cluster moves a node that holds no VM.

--fence says what proves that the node is off when it is silent. Then, and only then, VMs with --ha are restarted
elsewhere. With command it is a fence agent on the coordinators' machines (packages fence-agents-*): it is run with the
given arguments, to switch the node off and to ask whether it is. Arguments replace all that there were. Secrets are
better printed by a program there (password_script=/etc/berth/fence/FILE); others are shown as ***, and asked for again
with another address. A board that tells which machine it switches (IPMI, Redfish) is not used if that is another one.
With manual it is somebody's word, 'berth node fence NODE --confirmed-off'. With watchdog the node resets itself when
it hears no leader for some minutes, even if no coordinator is left; its agent.yaml names the device.

--machine decides which one the node is when two machines say so: a copy of its system disk, or new hardware. Until then
nothing is placed there, and nothing that either says counts as absence. 'berth node show' has both.`,
		Example: `  berth node set node1 --ram-ratio 1.5
  berth node set node1 --cpu-ratio 4 --overhead 2G
  berth node set node1 --key Premium=1 --key DS=3
  berth node set node1 --reset ram-ratio,overhead --unset-key Premium
  berth node set node1 --label rack-7 --management
  berth node set node1 --cluster prod
  berth node set node1 --fence command --fence-program fence_ipmilan --fence-arg ip=10.0.0.9
  berth node set node1 --fence none`,
		RunE: func(cmd *cobra.Command, args []string) error {
			request := &berthv1.SetNodeRequest{Node: args[0], Settings: &berthv1.NodeSettings{}, RequestId: term.RequestID()}
			changed := cmd.Flags().Changed
			if changed("ram-ratio") {
				request.Settings.RamRatio = &ram
			}
			if changed("cpu-ratio") {
				request.Settings.CpuRatio = &cpu
			}
			if changed("overhead") {
				bytes, err := units.ParseBytes(overhead)
				if err != nil {
					return term.Usagef(cmd, "--overhead: %w", err)
				}
				request.Settings.OverheadBytes = (*int64)(&bytes)
			}
			if err := resets(cmd, request, reset); err != nil {
				return err
			}
			if err := nodeKeys(cmd, request, keys, unset); err != nil {
				return err
			}
			if err := marks.Change(cmd, request, reset); err != nil {
				return err
			}
			if err := fence.change(cmd, request); err != nil {
				return err
			}
			if request.Machine = machine; changed("machine") && machine == "" {
				return term.Usagef(cmd, "--machine: ID is missing")
			}
			if request.Cluster = toward; changed("cluster") && toward == "" {
				return term.Usagef(cmd, "--cluster: CLUSTER is missing")
			}
			if err := checkSettings(cmd, request); err != nil {
				return err
			}
			return set(a, cmd, request)
		},
		ValidArgsFunction: term.CompleteFirst(a.NodeNames()),
	}
	flags := cmd.Flags()
	flags.Float64Var(&ram, "ram-ratio", 0, "memory that may be promised for each byte that is there: a `NUMBER`, 0.1 to 16")
	flags.Float64Var(&cpu, "cpu-ratio", 0, "vCPUs that may be promised for each CPU: a `NUMBER`, 0.1 to 64")
	flags.StringVar(&overhead, "overhead", "", "`SIZE` of the memory that is kept for the node itself")
	flags.StringSliceVar(
		&reset, "reset", nil, "`SETTINGS` to take back to the default: "+strings.Join(slices.Concat(settingFlags, markFlags), ", "),
	)
	flags.StringArrayVar(&keys, "key", nil, "value of a key that the cluster declares: `NAME=VALUE`; repeat for more")
	flags.StringSliceVar(&unset, "unset-key", nil, "`NAMES` of keys to take back to the cluster's default")
	flags.StringVar(&machine, "machine", "", "of two machines that say they are the node, the one that is: hardware or boot `ID`")
	term.Complete(cmd, "machine", cobra.NoFileCompletions)
	flags.StringVar(&toward, "cluster", "", "move it to this `CLUSTER`")
	term.Complete(cmd, "key", cobra.NoFileCompletions)
	term.Complete(cmd, "unset-key", cobra.NoFileCompletions)
	term.Complete(cmd, "cluster", a.ResourceNames(model.KindCluster))
	term.Complete(cmd, "reset", term.CompleteFixed(slices.Concat(settingFlags, markFlags)...))
	marks.Define(a, cmd)
	fence.flags(cmd)
	for _, flag := range settingFlags {
		term.Complete(cmd, flag, cobra.NoFileCompletions)
	}
	return cmd
}

// resets reads --reset. The API has underscores where flags have dashes; both are understood.
func resets(cmd *cobra.Command, request *berthv1.SetNodeRequest, reset []string) error {
	for _, setting := range reset {
		flag := strings.ReplaceAll(strings.TrimSpace(setting), "_", "-")
		switch {
		case !slices.Contains(settingFlags, flag) && !slices.Contains(markFlags, flag):
			return term.Usagef(cmd, "--reset %s: use %s", setting, strings.Join(slices.Concat(settingFlags, markFlags), ", "))
		case cmd.Flags().Changed(flag):
			return term.Usagef(cmd, "--%s and --reset %s exclude each other", flag, setting)
		case slices.Contains(markFlags, flag):
			continue // setCommand takes them back
		}
		request.Reset_ = append(request.Reset_, strings.ReplaceAll(flag, "-", "_"))
	}
	return nil
}

// nodeKeys reads --key and --unset-key. Whether the cluster declares such keys only the coordinator knows.
func nodeKeys(cmd *cobra.Command, request *berthv1.SetNodeRequest, keys, unset []string) error {
	for _, text := range keys {
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" {
			return term.Usagef(cmd, "--key %s: want NAME=VALUE", text)
		}
		f, err := term.ParseFigure("key "+name+" value", value)
		switch _, twice := request.GetKeys()[name]; {
		case err != nil:
			return term.Usage(cmd, err)
		case twice:
			return term.Usagef(cmd, "--key %s: %s is there twice", text, name)
		case slices.Contains(unset, name):
			return term.Usagef(cmd, "--key %s and --unset-key %s exclude each other", name, name)
		}
		if request.Keys == nil {
			request.Keys = map[string]float64{}
		}
		request.Keys[name] = f
	}
	request.UnsetKeys = unset
	return nil
}

func checkSettings(cmd *cobra.Command, request *berthv1.SetNodeRequest) error {
	settings := request.GetSettings()
	if settings.RamRatio == nil && settings.CpuRatio == nil && settings.OverheadBytes == nil &&
		request.GetCluster()+request.GetMachine() == "" &&
		request.Labels == nil && request.Fence == nil && request.Management == nil && request.Unbalanced == nil &&
		len(request.GetReset_())+len(request.GetKeys())+len(request.GetUnsetKeys()) == 0 {
		return term.Usagef(cmd, "say what to set: --%s, --fence, --reset, --key, --unset-key, --machine or --cluster",
			strings.Join(slices.Concat(settingFlags, markFlags), ", --"))
	}
	err := model.ValidateSettings(model.NodeSettings{
		RAMRatio: settings.RamRatio, CPURatio: settings.CpuRatio, Overhead: (*units.Bytes)(settings.OverheadBytes),
	})
	if err != nil {
		return term.Usage(cmd, err)
	}
	return nil
}

func set(a *term.App, cmd *cobra.Command, request *berthv1.SetNodeRequest) error {
	answer, err := term.AskOnce(a, cmd, term.Client.SetNode, request)
	if err != nil {
		return err
	}
	node := answer.GetNode()
	return a.Print(cmd, term.Result{
		Message: answer, Names: []string{"node/" + node.GetName()},
		Text: func(p *term.Page, _ bool) { p.Line("node/%s: %s", node.GetName(), said(node, request)) },
	})
}

// said is what a node is like now, of what was asked for.
func said(node *berthv1.Node, request *berthv1.SetNodeRequest) string {
	parts := []string{settingsPhrase(node)}
	if len(request.GetKeys())+len(request.GetUnsetKeys()) > 0 {
		parts = append(parts, "keys "+cmp.Or(keyPhrase(node), "none"))
	}
	if request.Labels != nil {
		parts = append(parts, "labels "+cmp.Or(strings.Join(node.GetLabels(), ", "), "none"))
	}
	if request.Management != nil || request.Unbalanced != nil {
		parts = append(parts, "balancing: "+cmp.Or(balancingPhrase(node), "it takes part as the others do"))
	}
	if request.Fence != nil {
		parts = append(parts, "fenced by "+fencePhrase(node.GetFence()))
		if node.GetFence().GetMethod() == "command" {
			parts = append(parts, "try it with 'berth node fence "+node.GetName()+" --check'")
		}
	}
	if request.GetMachine() != "" {
		parts = append(parts, "it is the machine "+request.GetMachine()+", and the other one is not believed")
	}
	if request.GetCluster() != "" {
		parts = append(parts, "cluster "+node.GetCluster())
	}
	return strings.Join(parts, "; ")
}

// keyPhrase lists the keys of a node, and which of them have the cluster's default.
func keyPhrase(node *berthv1.Node) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(node.GetKeys())) {
		text := name + "=" + term.Exact(node.GetKeys()[name])
		if !slices.Contains(node.GetOwnKeys(), name) {
			text += " (default)"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// settingsPhrase lists the settings in force and where they come from.
func settingsPhrase(node *berthv1.Node) string {
	force, own := node.GetSettings(), node.GetOwnSettings()
	from := func(set bool) string {
		if set {
			return ""
		}
		return " (default)"
	}
	return fmt.Sprintf("RAM ratio %s%s, CPU ratio %s%s, overhead %v%s",
		units.Figure(force.GetRamRatio()), from(own != nil && own.RamRatio != nil),
		units.Figure(force.GetCpuRatio()), from(own != nil && own.CpuRatio != nil),
		units.Bytes(force.GetOverheadBytes()), from(own != nil && own.OverheadBytes != nil))
}
