// Package command has the verbs of berth-agent: run, join, doctor, libvirt-tls, version.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"berth/agent/hypervisor/guestlog"
	"berth/shared/buildinfo"
)

// Exit codes, the same as the command line of berth has.
const (
	exitError = 1
	exitUsage = 64
)

// Run executes one command line and returns the exit code: 0 done, 1 error, 64 usage.
func Run(ctx context.Context, args []string, out, errOut io.Writer) int {
	root := New()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	var usage *usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		fmt.Fprintf(errOut, "error: %v\nusage: %s\nsee '%s --help'\n", err, usage.command.UseLine(), usage.command.CommandPath())
		return exitUsage
	default:
		fmt.Fprintf(errOut, "error: %v\n", err)
		return exitError
	}
}

// New is the root command.
func New() *cobra.Command {
	root := &cobra.Command{
		Use:   "berth-agent",
		Short: "The hypervisor's side of Berth",
		Long: `berth-agent runs on a hypervisor, next to libvirtd. It dials the coordinators, reports what the node has and does,
and carries out starts, stops and live migrations. Its only port is for readers of figures, and for those of this host
unless the configuration says otherwise. A guest is never touched because the agent stops, crashes or is removed.`,
		Example: `  berth-agent join coordinator1 berth1.agent.…   # once: enrols this node
  berth-agent doctor                             # what would stand in the way
  systemctl start berth-agent                    # runs it`,
		SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{command: cmd, message: fmt.Sprintf("unknown command %q", args[0])}
			}
			return cmd.Help()
		},
		Args: cobra.ArbitraryArgs,
	}
	root.AddCommand(
		runCommand(), joinCommand(), doctorCommand(), libvirtTLSCommand(), departedCommand(), statusFilesCommand(), versionCommand(),
	)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{command: cmd, message: err.Error()}
	})
	return root
}

// usageError is a command line that cannot be understood.
type usageError struct {
	command *cobra.Command
	message string
}

func (e *usageError) Error() string { return e.message }

// exactly wants these arguments, by name, and no others.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return &usageError{command: cmd, message: "missing " + strings.Join(names[len(args):], " and ")}
		case len(args) > len(names):
			return &usageError{command: cmd, message: fmt.Sprintf("unexpected argument %q", args[len(names)])}
		}
		return nil
	}
}

// departedCommand is what the unit has root do before the agent begins.
func departedCommand() *cobra.Command {
	return &cobra.Command{
		Use: "departed", Short: "Note which guests have left this host by libvirt's logs, for the agent that begins",
		Args: exactly(), Hidden: true,
		RunE: func(*cobra.Command, []string) error {
			return guestlog.Note(guestlog.DefaultDir, guestlog.DefaultNote, time.Now())
		},
	}
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "berth-agent", buildinfo.Version())
			return err
		},
	}
}
