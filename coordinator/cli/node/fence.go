package node

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

// fenceFlags say what proves that a node is off.
type fenceFlags struct {
	method  term.StringFlag
	devices []fenceAgent
}

// fenceAgent is one device as it stands on the line. The first that its arguments follow is the one that they are for.
type fenceAgent struct {
	program   string
	arguments []string
	timeout   time.Duration
	machine   string
}

// ofAgent is a flag about the fence agent that stands on the line last.
type ofAgent struct {
	devices *[]fenceAgent
	word    string
	set     func(device *fenceAgent, text string) error
}

func (f ofAgent) String() string { return "" }

// Type is the word that help shows for the value.
func (f ofAgent) Type() string { return f.word }

// Set takes the text for the last device.
func (f ofAgent) Set(text string) error {
	if len(*f.devices) == 0 {
		*f.devices = []fenceAgent{{}}
	}
	return f.set(&(*f.devices)[len(*f.devices)-1], text)
}

// another names the program of the first device, or of one more.
func (f *fenceFlags) another(device *fenceAgent, text string) error {
	if device.program == "" {
		device.program = text
	} else {
		f.devices = append(f.devices, fenceAgent{program: text})
	}
	return nil
}

const noFence = "none"

var fenceMethods = []string{string(model.FenceCommand), string(model.FenceManual), string(model.FenceWatchdog), noFence}

func (f *fenceFlags) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.method.Word = "HOW"
	flags.Var(&f.method, "fence", "what proves that it is off: command, manual, watchdog or none")
	flags.Var(ofAgent{&f.devices, "NAME", f.another}, "fence-program", "with --fence command: a fence agent, for instance fence_ipmilan; "+
		"once more for each further power supply, with its own arguments behind it")
	flags.Var(ofAgent{&f.devices, "NAME=VALUE", func(device *fenceAgent, text string) error {
		device.arguments = append(device.arguments, text)
		return nil
	}}, "fence-arg", "with --fence command: an argument of it; repeat for more")
	flags.Var(ofAgent{&f.devices, "DURATION", func(device *fenceAgent, text string) (err error) {
		device.timeout, err = time.ParseDuration(text)
		return err
	}}, "fence-timeout", "with --fence command: what one call of it may take, 1s to 10m; 1m if left out")
	flags.Var(ofAgent{&f.devices, "UUID", func(device *fenceAgent, text string) error {
		device.machine = text
		return nil
	}}, "fence-machine", "with --fence command: by which it names the machine, if not its firmware's")
	term.Complete(cmd, "fence", term.CompleteFixed(fenceMethods...))
	for _, flag := range []string{"fence-program", "fence-arg", "fence-timeout", "fence-machine"} {
		term.Complete(cmd, flag, cobra.NoFileCompletions)
	}
}

// change puts the device that stands on the line into a request.
func (f *fenceFlags) change(cmd *cobra.Command, request *berthv1.SetNodeRequest) error {
	detail := term.ChangedFlags(cmd, []string{"fence-program", "fence-arg", "fence-timeout", "fence-machine"})
	switch {
	case !cmd.Flags().Changed("fence") && len(detail) > 0:
		return term.Usagef(cmd, "%s goes with --fence command", detail[0])
	case !cmd.Flags().Changed("fence"):
		return nil
	case !slices.Contains(fenceMethods, f.method.Text):
		return term.Usagef(cmd, "--fence %s: use %s", f.method.Text, strings.Join(fenceMethods, ", "))
	}
	device := model.FenceDevice{Method: model.FenceMethod(f.method.Text)}
	if f.method.Text == noFence {
		device.Method = model.FenceNone
	}
	for i, agent := range f.devices {
		arguments, wrong := agent.read()
		if wrong != "" {
			return term.Usagef(cmd, "--fence-arg %s: want NAME=VALUE, each name once", wrong)
		}
		one := model.FenceDevice{
			Method: device.Method, Program: agent.program, Arguments: arguments, Timeout: agent.timeout, Machine: agent.machine,
		}
		if i == 0 {
			device = one
		} else {
			device.Also = append(device.Also, one)
		}
	}
	if err := model.ValidateFenceDevice(device); err != nil && !masked(device) {
		return term.Usage(cmd, err)
	}
	request.Fence = fenceMessage(device)
	return nil
}

// read is the arguments of a device, or the first name that is not one of it.
func (d fenceAgent) read() (arguments map[string]string, wrong string) {
	for _, text := range d.arguments {
		name, value, found := strings.Cut(text, "=")
		if _, twice := arguments[name]; !found || name == "" || twice {
			return nil, cmp.Or(name, "''")
		}
		if arguments == nil {
			arguments = map[string]string{}
		}
		arguments[name] = value
	}
	return arguments, ""
}

func fenceMessage(device model.FenceDevice) *berthv1.FenceDevice {
	message := &berthv1.FenceDevice{
		Method: string(device.Method), Program: device.Program, Arguments: device.Arguments, TimeoutSeconds: device.Timeout.Seconds(),
		Machine: device.Machine,
	}
	for _, one := range device.Also {
		message.Also = append(message.Also, fenceMessage(one))
	}
	return message
}

// masked tells whether a secret is to stay as it is: only the coordinator knows whether there is one.
func masked(devices model.FenceDevice) bool {
	return slices.ContainsFunc(devices.All(), func(device model.FenceDevice) bool {
		return slices.Contains(slices.Collect(maps.Values(device.Arguments)), model.Masked)
	})
}

// fencePhrase says what proves that a node is off.
func fencePhrase(device *berthv1.FenceDevice) string {
	switch model.FenceMethod(device.GetMethod()) {
	case model.FenceNone:
		return "nothing: its VMs are restarted nowhere else"
	case model.FenceManual:
		return "somebody's word: 'berth node fence NODE --confirmed-off'"
	case model.FenceCommand:
	default:
		return device.GetMethod()
	}
	text := device.GetProgram()
	for _, name := range slices.Sorted(maps.Keys(device.GetArguments())) {
		text += " " + name + "=" + device.GetArguments()[name]
	}
	if device.GetMachine() != "" {
		text += ", which names it machine " + device.GetMachine()
	}
	if seconds := device.GetTimeoutSeconds(); seconds > 0 {
		text += fmt.Sprintf(", %s for each call", time.Duration(seconds*float64(time.Second)))
	}
	for _, one := range device.GetAlso() {
		text += ", and by " + fencePhrase(one)
	}
	return text
}

// fencingPhrase says what came of the last attempt to prove that a node is off.
func fencingPhrase(a *term.App, fencing *berthv1.Fencing) string {
	switch model.FencingPhase(fencing.GetPhase()) {
	case model.FencingAsked:
		return fmt.Sprintf("its device is being asked since %s, try %d", a.Since(fencing.GetAskedAt()), fencing.GetAttempt())
	case model.FencingProven:
		return fmt.Sprintf("proven to be off %s ago: %s", a.Since(fencing.GetEndedAt()), fencing.GetMessage())
	case model.FencingFailed:
		return fmt.Sprintf("no proof %s ago, try %d: %s", a.Since(fencing.GetEndedAt()), fencing.GetAttempt(), fencing.GetMessage())
	}
	return ""
}

func fenceCommand(a *term.App) *cobra.Command {
	var request berthv1.FenceNodeRequest
	var label string
	var yes bool
	cmd := &cobra.Command{
		Use: "fence [NODE]", Short: "Prove that a silent node is off, so that its VMs may run elsewhere", Args: term.Arguments(0, "NODE"),
		Long: `Prove that a silent node is off, so that its VMs may run elsewhere: its fence device switches it off and says so, or you
say that it is off. From then on none of its VMs counts as running there; those with --ha are restarted on other nodes.
The node counts again when it has booted anew. With --label all nodes of that label are proven off, a rack for instance;
none is if one of them still answers.

Only say --confirmed-off of a machine whose power you have seen to be off: a VM that runs on there and elsewhere as well
writes its disks twice. --check switches nothing: it asks the device whether the node is on.`,
		Example: `  berth node fence node2
  berth node fence node2 --check
  berth node fence node2 --confirmed-off --yes
  berth node fence --label rack3 --confirmed-off`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case request.Check && (request.ConfirmedOff || request.Force):
				return term.Usagef(cmd, "--check switches nothing: leave out the other one")
			case request.ConfirmedOff && request.Force:
				return term.Usagef(cmd, "--confirmed-off and --force exclude each other")
			case label != "" && len(args) > 0:
				return term.Usagef(cmd, "name one NODE or a --label, not both")
			case label != "" && (request.Check || request.Force):
				return term.Usagef(cmd, "--check and --force are for one NODE")
			case label != "":
				return fenceLabel(a, cmd, label, request.ConfirmedOff, yes)
			case len(args) == 0:
				return term.Usagef(cmd, "NODE is missing, or a --label")
			}
			request.Node, request.RequestId = args[0], term.RequestID()
			return fence(a, cmd, &request, yes)
		},
		ValidArgsFunction: term.CompleteFirst(a.NodeNames()),
	}
	flags := cmd.Flags()
	flags.StringVar(&label, "label", "", "all nodes with this `LABEL`, instead of one NODE")
	term.Complete(cmd, "label", cobra.NoFileCompletions)
	flags.BoolVar(&request.Check, "check", false, "only ask its fence devices whether it is on")
	flags.BoolVar(&request.ConfirmedOff, "confirmed-off", false, "you have seen that the machine is off")
	flags.BoolVar(&request.Force, "force", false, "also while it answers: its VMs lose their power")
	term.ConfirmFlag(cmd, &yes)
	return cmd
}

func fence(a *term.App, cmd *cobra.Command, request *berthv1.FenceNodeRequest, yes bool) error {
	s, err := a.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	if !request.GetCheck() {
		question := "Switch node/%s off? %s"
		if request.GetConfirmedOff() {
			question = "Is the machine of node/%s off, so that nothing runs there any more? %s"
		}
		known, err := term.Ask(cmd.Context(), s, term.Client.GetNode, &berthv1.GetNodeRequest{Node: request.GetNode()})
		if err != nil {
			return err
		}
		if err := term.Confirm(cmd, yes, fmt.Sprintf(question, request.GetNode(), atStake(known.GetNode()))); err != nil {
			return err
		}
	}
	answer, err := term.AskFor(cmd.Context(), s, fenceLimit, term.Client.FenceNode, request)
	if err != nil {
		return err
	}
	name := answer.GetNode().GetName()
	said := provenOff(answer.GetNode())
	if request.GetCheck() {
		said = fmt.Sprintf("node/%s: its fence device says that it is %s", name, answer.GetPower())
		which := "; which machine it switches is "
		if several := answer.GetDevices(); len(several) > 0 {
			said = fmt.Sprintf("node/%s is %s, as its fence devices say (%s)", name, answer.GetPower(), strings.Join(several, "; "))
			which = "; which machines they switch: "
		}
		if is := answer.GetNode().GetFenceIdentity(); is != "" {
			said += which + is
		}
	}
	return a.Print(cmd, term.Result{
		Message: answer, Names: []string{"node/" + name}, Text: func(p *term.Page, _ bool) { p.Line("%s", said) },
	})
}

// fenceLimit is longer than the two calls of any fence devices take.
const fenceLimit = model.MaxFenceDevices*2*model.MaxFenceTimeout + time.Minute

// atStake names the VMs that a node holds.
func atStake(node *berthv1.Node) string {
	if len(node.GetVms()) == 0 {
		return "It holds no VM."
	}
	return fmt.Sprintf("It holds %s: %s.", term.Count(len(node.GetVms()), "VM"), strings.Join(node.GetVms(), ", "))
}
