// Berth-lab raises labs that stay, lists them, runs commands on their machines and takes them down.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"berth/integration/lab"
	"berth/shared/units"
)

func main() {
	lab.Child()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := command().ExecuteContext(ctx)
	var ended exitError
	switch {
	case errors.As(err, &ended):
		os.Exit(int(ended))
	case err != nil:
		fmt.Fprintln(os.Stderr, "berth-lab:", err)
		os.Exit(1)
	}
}

// exitError is the exit code of a command on a machine, which has said itself what is wrong.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func command() *cobra.Command {
	root := &cobra.Command{
		Use: "berth-lab", Short: "Real hypervisors and coordinators on one machine, in namespaces",
		SilenceErrors: true, SilenceUsage: true,
	}
	root.AddCommand(upCommand(), downCommand(), listCommand(), execCommand(), shellCommand())
	return root
}

func upCommand() *cobra.Command {
	options := lab.Options{Keep: true, Log: os.Stderr}
	memory := []string{"4G"}
	up := &cobra.Command{
		Use: "up [NAME]", Short: "Raise a lab that stays until it is taken down", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				options.Name = args[0]
			}
			for _, text := range memory {
				size, err := units.ParseBytes(text)
				if err != nil {
					return err
				}
				options.HostMemory = append(options.HostMemory, size)
			}
			if _, err := lab.Open(options.Name); err == nil {
				return fmt.Errorf("a lab %q is up already; take it down with: berth-lab down %s", options.Name, options.Name)
			}
			l, err := lab.Up(cmd.Context(), options)
			if err != nil {
				return err
			}
			fmt.Fprint(cmd.OutOrStdout(), l.Hints(os.Args[0]))
			return nil
		},
	}
	flags := up.Flags()
	flags.StringVar(&options.Name, "name", "lab", "name of the lab")
	flags.IntVar(&options.Hosts, "hosts", 3, "number of hypervisors")
	flags.IntVar(&options.Coordinators, "coordinators", 3, "number of coordinators; 0 raises hypervisors only")
	flags.StringSliceVar(&memory, "memory", memory, "memory that the hypervisors show, in turn")
	flags.StringVar(&options.Binaries, "binaries", "", "directory of berth and berth-agent (default bin/ of the module)")
	flags.BoolVar(&options.Bare, "bare", false, "leave Berth on the machines unconfigured and stopped")
	return up
}

func downCommand() *cobra.Command {
	return &cobra.Command{
		Use: "down [NAME...]", Short: "Take labs down: those named, or all that stay and what crashed ones have left",
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := lab.List()
			if err != nil {
				return err
			}
			// A lab that does not stay belongs to a program that runs and takes it down itself.
			labs := slices.DeleteFunc(all, func(l *lab.Lab) bool { return l.Alive() && !l.Kept })
			if len(args) > 0 {
				labs = nil
			}
			for _, name := range args {
				l, err := lab.Open(name)
				if err != nil {
					return err
				}
				labs = append(labs, l)
			}
			for _, l := range labs {
				err = errors.Join(err, l.Down())
				fmt.Printf("lab %s is down\n", l.Name)
			}
			return err
		},
	}
}

func listCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the labs of this machine", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			labs, err := lab.List()
			for _, l := range labs {
				state := "up"
				switch {
				case !l.Alive():
					state = "crashed"
				case l.Kept:
					state = "kept"
				}
				fmt.Printf("%s\t%s\t%d hosts\t%d coordinators\t%s\n", l.Name, state, len(l.Hosts), len(l.Coordinators), l.Dir)
			}
			return err
		},
	}
}

func execCommand() *cobra.Command {
	var on string
	name := "lab"
	run := &cobra.Command{
		Use: "exec [--lab NAME] [--on MACHINE] -- COMMAND [ARGUMENT...]", Short: "Run a command on a machine of a lab",
		Example: "  berth-lab exec -- berth status\n  berth-lab exec --on node1 -- virsh list",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onMachine(cmd.Context(), name, on, args)
		},
	}
	run.Flags().StringVar(&on, "on", "operator", "machine")
	run.Flags().StringVar(&name, "lab", name, "name of the lab")
	return run
}

func shellCommand() *cobra.Command {
	name := "lab"
	shell := &cobra.Command{
		Use: "shell [--lab NAME] [MACHINE]", Short: "Open a shell on a machine of a lab, the operator's if none is named",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onMachine(cmd.Context(), name, append(args, "operator")[0], []string{"bash"})
		},
	}
	shell.Flags().StringVar(&name, "lab", name, "name of the lab")
	return shell
}

// onMachine leaves signals to the command: it has the same terminal.
func onMachine(ctx context.Context, name, on string, argv []string) error {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM)
	l, err := lab.Open(name)
	if err != nil {
		return err
	}
	machine, err := l.Machine(on)
	if err != nil {
		return err
	}
	err = machine.Shell(context.WithoutCancel(ctx), os.Stdin, os.Stdout, os.Stderr, argv...)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return exitError(exit.ExitCode())
	}
	return err
}
