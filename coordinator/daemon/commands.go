package daemon

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/clientconfig"
	"berth/coordinator/fence"
	"berth/shared/config"
	"berth/shared/logging"
)

// Commands are the verbs of 'berth coordinator' that make and run a member on this machine.
func Commands() []*cobra.Command {
	fences := func(path string) ([]string, error) {
		c, err := LoadConfig(path)
		return c.FenceAgents, err
	}
	return []*cobra.Command{
		initCommand(), joinCommand(), runCommand(), verifyCommand(), compactCommand(), recoverCommand(), loginCommand(),
		fence.Command(fences, DefaultConfigPath),
	}
}

// placeFlags are what init and join share.
func placeFlags(command *cobra.Command, path *string, flags *Config) {
	command.Flags().StringVar(path, "config", DefaultConfigPath, "the coordinator's configuration; what it does not say yet is added")
	command.Flags().StringVar(&flags.Name, "name", "", "name of this member (default: the host name)")
	command.Flags().StringVar(
		&flags.Advertise, "advertise", "", "host name or address by which other machines reach this one (default: the host name)",
	)
	command.Flags().StringVar(&flags.DataDir, "data-dir", "", "where state and certificates are kept (default: "+DefaultDataDir+")")
}

func initCommand() *cobra.Command {
	var options InitOptions
	command := &cobra.Command{
		Use:   "init",
		Short: "Make a new cluster, with this machine as its first coordinator",
		Long: "Make a new cluster, with this machine as its first coordinator: its certificate authority, this member's\n" +
			"certificate, an empty state, and a client configuration for the first operator. The data directory has to be\n" +
			"empty. Other coordinators join; they never run init.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			made, err := Init(command.Context(), options)
			if err != nil {
				return err
			}
			made.tell(command.OutOrStdout())
			return nil
		},
	}
	placeFlags(command, &options.ConfigPath, &options.Flags)
	command.Flags().StringVar(
		&options.ClientConfig, "client-config", clientconfig.SystemPath, "where to put the first operator's client configuration",
	)
	return command
}

func (m Made) tell(w io.Writer) {
	api, agent, raft := m.Config.addresses()
	fmt.Fprintf(w, "cluster %s is made, with coordinator %s as its first member\n", m.ClusterID, m.Config.Name)
	fmt.Fprintf(w, "  state and certificates  %s (ca.key there can sign for the whole cluster: keep it safe)\n", m.Config.DataDir)
	fmt.Fprintf(w, "  configuration           %s\n", m.ConfigPath)
	fmt.Fprintf(w, "  operator %q        %s, context %s\n", firstOperator, m.ClientConfig, m.Context)
	fmt.Fprintf(w, "  addresses               API %s, agents %s, Raft %s\n", api, agent, raft)
	client := ""
	if m.ClientConfig != clientconfig.SystemPath {
		client = " --client-config " + m.ClientConfig
	}
	fmt.Fprintf(w, "\nnext:\n  %s\n  berth%s status\n  berth%s token add --for agent\n", startLine(m.ConfigPath), client, client)
}

// startLine is how to start the member: by systemd where its unit would find this configuration.
func startLine(path string) string {
	if path == DefaultConfigPath {
		return "systemctl enable --now berth-coordinator"
	}
	return "berth coordinator run --config " + path
}

func joinCommand() *cobra.Command {
	var options JoinOptions
	command := &cobra.Command{
		Use:   "join HOST[:PORT] TOKEN",
		Short: "Make this machine another coordinator of an existing cluster",
		Long: "Make this machine another coordinator of an existing cluster. HOST is any of its coordinators, TOKEN comes from\n" +
			"'berth token add --for coordinator' there. @FILE or - reads it from a file or standard input,\n" +
			"because other accounts see what is on a command line. The data directory has to be empty. When it is started, the new member\n" +
			"is first filled with the state and then given its vote.",
		Args: cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			token, err := config.Secret(args[1], command.InOrStdin())
			if err != nil {
				return fmt.Errorf("the token: %w", err)
			}
			options.Address, options.Token = args[0], token
			if options.ClientConfig == "" && options.ConfigPath == DefaultConfigPath {
				options.ClientConfig = clientconfig.SystemPath
			}
			joined, err := Join(command.Context(), options)
			if err != nil {
				return err
			}
			joined.tell(command.OutOrStdout(), options.ClientConfig)
			return nil
		},
	}
	placeFlags(command, &options.ConfigPath, &options.Flags)
	command.Flags().StringVar(&options.ClientConfig, "client-config", "",
		"where to put an operator's client configuration (default "+clientconfig.SystemPath+", with the default of --config)")
	return command
}

func (j Joined) tell(w io.Writer, clientConfig string) {
	fmt.Fprintf(w, "coordinator %s has joined cluster %s\n", j.Config.Name, j.ClusterID)
	fmt.Fprintf(w, "  state and certificates  %s (ca.key there can sign for the whole cluster: keep it safe)\n", j.Config.DataDir)
	fmt.Fprintf(w, "  configuration           %s\n", j.ConfigPath)
	switch {
	case j.NoOperator != nil:
		fmt.Fprintf(w, "  operator                none: %v; 'berth token add --for operator' on another coordinator prints the line "+
			"that makes one\n", j.NoOperator)
	case j.Operator != "":
		fmt.Fprintf(w, "  operator %-15s%s, context %s\n", strconv.Quote(operatorOf(j.Config.Name)), clientConfig, j.Operator)
	}
	fmt.Fprintf(w, "\nnext:\n  %s\n  berth coordinator list\n", startLine(j.ConfigPath))
}

// heapGrowth is how far the heap may grow before it is collected, in per cent. Most of a coordinator's memory is its state, which
// stays: to look through all of it as often as Go would costs a leader under load a third of its time.
const heapGrowth = 200

func runCommand() *cobra.Command {
	var path, fences string
	command := &cobra.Command{
		Use:   "run",
		Short: "Run this machine's coordinator in the foreground",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			debug.SetGCPercent(heapGrowth)
			c, err := LoadConfig(path)
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%w: 'berth coordinator init' and 'berth coordinator join' write it", err)
			}
			if err != nil {
				return err
			}
			c.fences = fences
			log, err := logging.New("coordinator", c.LogLevel, os.Stderr)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGTERM, os.Interrupt)
			defer stop()
			if err := Run(ctx, c, log); err != nil {
				log.Error("the coordinator stops", "error", err)
				return err
			}
			return nil
		},
	}
	configFlag(command, &path)
	command.Flags().StringVar(&fences, "fence-socket", "", "socket where fence agents are run as another account (default: by this process)")
	return command
}
