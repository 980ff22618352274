package cli

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/clientconfig"
	"berth/shared/buildinfo"
)

// Options are what the program gives its command line.
type Options struct {
	Version             string           // empty: that of the build
	CoordinatorCommands []*cobra.Command // verbs of the noun coordinator that run here, not over the API: run, init, join
	SnapshotCommands    []*cobra.Command // likewise of coordinator snapshot: list, verify
}

// app is one invocation.
type app struct {
	version string
	now     func() time.Time
	env     func(string) string
	// patience is how long to look for a coordinator that answers.
	patience time.Duration
	// nextInterrupt makes a context that ends with the next interrupt from now on.
	nextInterrupt func(context.Context) (context.Context, context.CancelFunc)
	// notes is where people are told what takes long.
	notes io.Writer

	// Flags of every command.
	clientConfig string
	context      string
	coordinators []string
	format       format
	noHeaders    bool
	quiet        bool
}

// New makes the command `berth`. Most callers want Run, which also turns errors into text and an exit code.
func New(o Options) *cobra.Command {
	return newApp(o).root(o)
}

func newApp(o Options) *app {
	version := o.Version
	if version == "" {
		version = buildinfo.Version()
	}
	return &app{
		version: version, now: time.Now, env: os.Getenv, patience: connectPatience, nextInterrupt: nextInterrupt, format: asTable, notes: io.Discard,
	}
}

// Run runs one command line, without the program's name, and returns the exit code. When ctx ends, the command does.
func Run(ctx context.Context, o Options, args []string, in io.Reader, out, errOut io.Writer) int {
	a := newApp(o)
	return a.run(ctx, a.root(o), args, in, out, errOut)
}

func (a *app) run(ctx context.Context, root *cobra.Command, args []string, in io.Reader, out, errOut io.Writer) int {
	root.SetArgs(append([]string{}, args...)) // nil would mean os.Args
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	a.notes = errOut
	err := root.ExecuteContext(ctx)
	if err == nil {
		return int(Done)
	}
	said := explain(ctx, err)
	if a.format.structured() || wantsJSON(args) {
		said.writeJSON(errOut)
	} else {
		said.writeText(errOut)
	}
	return int(said.exit)
}

// wantsJSON looks at the bare arguments, for errors that come before the flags are understood.
func wantsJSON(args []string) bool {
	for i, arg := range args {
		switch value, isLong := strings.CutPrefix(arg, "--output="); {
		case arg == "--":
			return false
		case (arg == "-o" || arg == "--output") && i+1 < len(args):
			return format(args[i+1]).structured()
		case isLong:
			return format(value).structured()
		case strings.HasPrefix(arg, "-o") && !strings.HasPrefix(arg, "--"):
			return format(strings.TrimPrefix(strings.TrimPrefix(arg, "-o"), "=")).structured()
		}
	}
	return false
}

const (
	groupGuests  = "guests"
	groupEstate  = "estate"
	groupCluster = "cluster"
	groupAccess  = "access"
)

func (a *app) root(o Options) *cobra.Command {
	root := noun("berth COMMAND", "Place virtual machines on libvirt hosts and keep them well placed", `
Berth places virtual machines on plain libvirt hosts and keeps them well placed.

A command is a noun and a verb: berth vm start web1. It speaks to the coordinators of the current context, any of which
answers; 'berth login' adds a context. Every command takes -o json, which prints the API's own message.

Exit codes: 0 done, 1 error, 2 no node fits, 4 not found, 5 no leader or no coordinator answers, 6 timed out,
64 wrong usage, 130 interrupted.`)
	root.Version = a.version
	root.SetVersionTemplate("berth {{.Version}}\n")
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
			return verbless(cmd, words) // the flag belongs to a verb that there is not
		}
		return usage(cmd, err)
	})
	root.SetUsageTemplate(usageTemplate)
	root.AddGroup(
		&cobra.Group{ID: groupGuests, Title: "Guests:"},
		&cobra.Group{ID: groupEstate, Title: "Estate:"},
		&cobra.Group{ID: groupCluster, Title: "Cluster:"},
		&cobra.Group{ID: groupAccess, Title: "Access:"},
	)
	a.globalFlags(root)

	in := func(group string, commands ...*cobra.Command) {
		for _, command := range commands {
			command.GroupID = group
			root.AddCommand(command)
		}
	}
	coordinator := a.coordinatorCommand(o.SnapshotCommands)
	coordinator.AddCommand(o.CoordinatorCommands...)
	in(groupGuests, a.vmCommand(), a.operationCommand(), a.decisionCommand())
	in(groupEstate, append(a.estateCommands(), a.groupCommand(), a.keyCommand(), a.applyCommand(), a.exportCommand())...)
	in(groupCluster, a.statusCommand(), a.capacityCommand(), a.simulateCommand(), a.nodeCommand(), a.planCommand(), coordinator,
		a.eventsCommand())
	in(groupAccess, a.loginCommand(), a.contextCommand(), a.tokenCommand())
	root.AddCommand(a.versionCommand())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, command := range root.Commands() {
		if command.Name() == "completion" { // cobra's own verbs, and a noun like the others
			command.Use, command.DisableFlagsInUseLine = "completion SHELL", true
			command.Args, command.RunE = cobra.ArbitraryArgs, verbless
		}
	}
	strict(root)
	return root
}

func (a *app) globalFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.VarP(&a.format, "output", "o", "`FORMAT` of the result: table, wide, json, yaml or name")
	flags.BoolVar(&a.noHeaders, "no-headers", false, "leave out the headings of tables")
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "no progress and no notes on the standard error")
	flags.StringVar(&a.clientConfig, "client-config", "",
		"client configuration `FILE` ("+clientconfig.Variable+"; default ~/.config/berth/client.yaml, then "+clientconfig.SystemPath+")")
	flags.StringVar(&a.context, "context", "", "`NAME` of the context to use ("+contextVariable+"; default the current one)")
	flags.StringSliceVar(&a.coordinators, "coordinator", nil,
		"`HOST[:PORT]` of coordinators to ask, instead of the context's ("+coordinatorVariable+")")
	complete(root, "output", fixed(formats...))
	complete(root, "context", a.contextNames)
	complete(root, "coordinator", cobra.NoFileCompletions)
}

// noun makes a command that only has verbs.
func noun(use, short, long string, verbs ...*cobra.Command) *cobra.Command {
	command := &cobra.Command{
		Use: use, Short: short, Long: strings.TrimSpace(long), Args: cobra.ArbitraryArgs, DisableFlagsInUseLine: true,
		SuggestionsMinimumDistance: 2,
		RunE:                       verbless, ValidArgsFunction: cobra.NoFileCompletions,
	}
	command.AddCommand(verbs...)
	return command
}

// verbless is what a noun does without one of its verbs.
func verbless(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		text := "unknown command %q"
		if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
			text += ", did you mean " + strings.Join(similar, " or ") + "?"
		}
		return Usagef(cmd, text, args[0])
	}
	if !cmd.HasParent() {
		return cmd.Help()
	}
	return Usagef(cmd, "COMMAND is missing: %s", strings.Join(verbNames(cmd), ", "))
}

func verbNames(cmd *cobra.Command) []string {
	var names []string
	for _, verb := range cmd.Commands() {
		if verb.IsAvailableCommand() {
			names = append(names, verb.Name())
		}
	}
	return names
}

// arguments accepts the first least of the named arguments at least, and at most all of them. None may be empty.
func arguments(least int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch empty := slices.Index(args, ""); {
		case len(args) < least:
			return Usagef(cmd, "%s is missing", names[len(args)])
		case len(args) > len(names):
			return Usagef(cmd, "unexpected argument %q", args[len(names)])
		case empty >= 0:
			return Usagef(cmd, "%s is empty", names[empty])
		}
		return nil
	}
}

// strict makes every complaint about arguments a usage error, also those of commands that are not ours.
func strict(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usage(cmd, err)
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
