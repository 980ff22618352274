package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/access"
	"berth/coordinator/cli/audit"
	"berth/coordinator/cli/coordinator"
	"berth/coordinator/cli/decision"
	"berth/coordinator/cli/document"
	"berth/coordinator/cli/event"
	"berth/coordinator/cli/forecast"
	"berth/coordinator/cli/group"
	"berth/coordinator/cli/inventory"
	"berth/coordinator/cli/key"
	"berth/coordinator/cli/node"
	"berth/coordinator/cli/operation"
	"berth/coordinator/cli/plan"
	"berth/coordinator/cli/resource"
	"berth/coordinator/cli/term"
	"berth/coordinator/cli/top"
	"berth/coordinator/cli/vm"
	"berth/coordinator/cli/webhook"
)

// Options are what the program gives its command line.
type Options struct {
	Version             string           // empty: that of the build
	CoordinatorCommands []*cobra.Command // verbs of the noun coordinator that run here, not over the API: run, init, join
	SnapshotCommands    []*cobra.Command // verbs of coordinator snapshot that run here: list, verify
	InitCommand         *cobra.Command   // init, which runs here; nil: there is none
}

// New makes the command `berth`. Most callers want Run, which also turns errors into text and an exit code.
func New(o Options) *cobra.Command {
	return newRoot(term.New(o.Version), o)
}

// Run runs one command line, without the program's name, and returns the exit code. When ctx ends, the command does.
func Run(ctx context.Context, o Options, args []string, in io.Reader, out, errOut io.Writer) int {
	return RunAs(ctx, term.New(o.Version), o, args, in, out, errOut)
}

// RunAs is Run with an invocation of the caller's: a test brings a clock and an environment of its own.
func RunAs(ctx context.Context, a *term.App, o Options, args []string, in io.Reader, out, errOut io.Writer) int {
	root := newRoot(a, o)
	root.SetArgs(append([]string{}, args...)) // nil would mean os.Args
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	a.Notes = errOut
	defer a.Finish()
	did, err := root.ExecuteContextC(ctx)
	a.SendTraces(ctx, did.CommandPath(), err)
	if err == nil {
		return int(term.Done)
	}
	said := explain(ctx, err)
	if a.Format.Structured() || wantsJSON(args) {
		said.writeJSON(errOut)
	} else {
		said.writeText(errOut)
	}
	return int(said.exit)
}

const (
	groupGuests  = "guests"
	groupEstate  = "estate"
	groupCluster = "cluster"
	groupAccess  = "access"
)

func newRoot(a *term.App, o Options) *cobra.Command {
	root := term.Noun("berth COMMAND", "Place virtual machines on libvirt hosts and keep them well placed", `
Berth places virtual machines on plain libvirt hosts and keeps them well placed.

A command is a noun and a verb: berth vm start web1. It speaks to the coordinators of the current context, any of which
answers; 'berth login' adds a context. Every command takes -o json, which prints the API's own message.

Exit codes: 0 done, 1 error, 2 no node fits, 4 not found, 5 no leader or no coordinator answers, 6 timed out,
64 wrong usage, 130 interrupted.`)
	root.Version = a.Version
	root.SetVersionTemplate("berth {{.Version}}\n")
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
			return term.Verbless(cmd, words) // the flag belongs to a verb that there is not
		}
		return term.FlagError(cmd, err)
	})
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
		a.Busy = a.CallerTimeout(cmd)
		if called := cmd.CalledAs(); called != cmd.Name() {
			a.Note(cmd, fmt.Sprintf("note: '%s %s' is '%s' now, and the old word goes in a later release", cmd.Parent().CommandPath(), called,
				cmd.CommandPath()))
		}
	}
	term.WrapHelp(root, usageTemplate)
	root.AddGroup(
		&cobra.Group{ID: groupGuests, Title: "Guests:"},
		&cobra.Group{ID: groupEstate, Title: "Estate:"},
		&cobra.Group{ID: groupCluster, Title: "Cluster:"},
		&cobra.Group{ID: groupAccess, Title: "Access:"},
	)
	a.GlobalFlags(root)

	in := func(group string, commands ...*cobra.Command) {
		for _, command := range commands {
			command.GroupID = group
			root.AddCommand(command)
		}
	}
	members := coordinator.Command(a, o.SnapshotCommands)
	members.AddCommand(o.CoordinatorCommands...)
	in(groupGuests, vm.Command(a), operation.Command(a), decision.Command(a))
	in(groupEstate, append(resource.Commands(a), group.Command(a), key.Command(a), document.ApplyCommand(a), document.ExportCommand(a))...)
	in(groupCluster, coordinator.StatusCommand(a), forecast.CapacityCommand(a), forecast.SimulateCommand(a), top.Command(a), node.Command(a),
		coordinator.HACommand(a), plan.Command(a), members, event.Command(a), audit.Command(a), webhook.Command(a),
		inventory.Command(a))
	if o.InitCommand != nil {
		in(groupCluster, o.InitCommand)
	}
	in(groupAccess, access.LoginCommand(a), access.ContextCommand(a), access.TokenCommand(a), access.IdentityCommand(a),
		access.AuthorityCommand(a), access.ConsoleCommand(a), access.SessionCommand(a))
	root.AddCommand(versionCommand(a))
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, command := range root.Commands() {
		if command.Name() == "completion" { // cobra's own verbs, and a noun like the others
			command.Use, command.DisableFlagsInUseLine = "completion SHELL", true
			command.Args, command.RunE = cobra.ArbitraryArgs, term.Verbless
		}
	}
	strict(root)
	return root
}

// strict makes every complaint about arguments a usage error, also those of commands that are not ours.
func strict(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return term.Usage(cmd, err)
			}
			return nil
		}
	}
	for _, child := range cmd.Commands() {
		strict(child)
	}
}

// usageTemplate is cobra's, less what a noun and a verb do not need.
const usageTemplate = `Usage:
  {{.UseLine}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}{{$commands := .Commands}}{{range $group := .Groups}}

{{.Title}}{{range $commands}}{{if and (eq .GroupID $group.ID) .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}

{{if .Groups}}Other:{{else}}Commands:{{end}}{{range $commands}}{{if and (eq .GroupID "") (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableInheritedFlags}}

Flags of every command:
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableSubCommands}}

Run '{{.CommandPath}} COMMAND --help' for more about a command.{{end}}
`
