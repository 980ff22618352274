package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"berth/coordinator/cli/clientconfig"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

const (
	// unit is the service of a coordinator.
	unit = "berth-coordinator"
	// answerLimit is how long a coordinator that was started may take until it leads.
	answerLimit = 60 * time.Second
	answerPause = 200 * time.Millisecond
)

// host is what 'berth init' uses of the machine beside the coordinator's own files.
type host struct {
	root    bool // this process may write everywhere
	systemd bool // it runs the machine's services
	run     func(ctx context.Context, name string, arguments ...string) (string, error)
	lookup  func(ctx context.Context, name string) ([]string, error)
	reached func() ([]string, error) // addresses at which others may reach the machine
	sudoer  func() (*user.User, error)
	listen  func(address string) error // nil: nobody listens there
	wait    time.Duration
}

func thisHost() host {
	_, err := os.Stat("/run/systemd/system")
	return host{
		root: os.Geteuid() == 0, systemd: err == nil, run: runProgram, lookup: net.DefaultResolver.LookupHost, reached: ownAddresses,
		sudoer: sudoer, listen: tryListen, wait: answerLimit,
	}
}

func runProgram(ctx context.Context, name string, arguments ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, arguments...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// ownAddresses leaves out loopback and link-local addresses, and those of bridges that only guests and containers are behind.
func ownAddresses() ([]string, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var four, six []string
	for _, one := range interfaces {
		if one.Flags&net.FlagUp == 0 || strings.HasPrefix(one.Name, "virbr") || strings.HasPrefix(one.Name, "docker") {
			continue
		}
		addresses, err := one.Addrs()
		if err != nil {
			return nil, err
		}
		for _, address := range addresses {
			network, ok := address.(*net.IPNet)
			switch {
			case !ok || !network.IP.IsGlobalUnicast():
			case network.IP.To4() != nil:
				four = append(four, network.IP.String())
			default:
				six = append(six, network.IP.String())
			}
		}
	}
	if len(four) > 0 {
		return four, nil
	}
	return six, nil
}

// sudoer is the person who has called this program through sudo; nil: nobody has.
func sudoer() (*user.User, error) {
	id := os.Getenv("SUDO_UID")
	if id == "" || id == "0" {
		return nil, nil
	}
	return user.LookupId(id)
}

func tryListen(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return listener.Close()
}

// FirstCommand is 'berth init': everything that makes a machine the first coordinator of a cluster, in one step.
func FirstCommand() *cobra.Command {
	var options InitOptions
	command := &cobra.Command{
		Use:   "init",
		Short: "Make this machine the first coordinator of a new cluster, and start it",
		Long: `Make this machine the first coordinator of a new cluster, and start it: its data folder with the certificate authority, its
configuration, a client configuration for root and for the account that called sudo, and the service, which is enabled and
started where systemd runs. It is done when the coordinator answers. Run again, it says what is there and does what is left.

Other coordinators join with 'berth coordinator join'; they never run init.`,
		Example: `  berth init
  berth init --advertise 10.0.0.10`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return first{host: thisHost(), options: options, out: command.OutOrStdout()}.make(command.Context())
		},
	}
	placeFlags(command, &options.ConfigPath, &options.Flags)
	command.Flags().StringVar(
		&options.ClientConfig, "client-config", clientconfig.SystemPath, "where to put the first operator's client configuration",
	)
	return command
}

// first is one run of 'berth init'.
type first struct {
	host    host
	options InitOptions
	out     io.Writer

	unitConfig string // the configuration that the unit reads; empty: DefaultConfigPath
}

func (f first) say(format string, a ...any) { fmt.Fprintf(f.out, format+"\n", a...) }

func (f first) make(ctx context.Context) error {
	if !f.host.root {
		return errors.New("berth init writes to /etc and /var/lib and starts a service: run it as root, for instance with sudo")
	}
	if f.options.ConfigPath == "" {
		f.options.ConfigPath = DefaultConfigPath
	}
	if f.options.ClientConfig == "" {
		f.options.ClientConfig = clientconfig.SystemPath
	}
	settled, err := settle(f.options.ConfigPath, f.options.Flags)
	if err != nil {
		return err
	}
	home := place{settled.DataDir}
	who, err := home.identity()
	var made Made
	switch {
	case err == nil:
		made, err = f.complete(home, who, &settled)
	case errors.Is(err, ErrNotInitialised):
		made, err = f.found(ctx, settled)
	}
	if err != nil {
		return err
	}
	if err := f.handOver(made); err != nil {
		return err
	}
	return f.start(ctx, made)
}

// found makes the cluster, after it has looked whether the coordinator could run.
func (f first) found(ctx context.Context, settled settled) (Made, error) {
	if err := f.freePorts(settled.Config); err != nil {
		return Made{}, err
	}
	if !settled.advertised {
		guessed, err := f.advertise(ctx, settled.Advertise)
		if err != nil {
			return Made{}, err
		}
		f.options.Flags.Advertise = guessed
	}
	made, err := Init(ctx, f.options)
	if err != nil {
		return made, err
	}
	f.say("cluster %s: made, with coordinator %s as its first member", made.ClusterID, made.Config.Name)
	f.say("  state and certificates  %s (ca.key there can sign for the whole cluster: keep it safe)", made.Config.DataDir)
	f.say("  configuration           %s", made.ConfigPath)
	f.say("  operator %q        %s, context %s", firstOperator, made.ClientConfig, made.Context)
	return made, nil
}

func (f first) freePorts(c Config) error {
	for _, part := range []struct{ key, address string }{
		{"listen.api", c.Listen.API}, {"listen.agent", c.Listen.Agent}, {"listen.raft", c.Listen.Raft},
	} {
		if err := f.host.listen(part.address); err != nil {
			return fmt.Errorf("the coordinator cannot listen on %s: %w: stop what uses it, or set %s in %s",
				part.address, err, part.key, f.options.ConfigPath)
		}
	}
	return nil
}

// advertise guesses how others reach this machine: by its host name if that is an address of the network, else by its only address.
// Many distributions give the host name an address of the loopback, by which nobody else gets here.
func (f first) advertise(ctx context.Context, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	if addresses, err := f.host.lookup(ctx, name); err == nil {
		for _, address := range addresses {
			if ip := net.ParseIP(address); ip != nil && ip.IsGlobalUnicast() {
				return name, nil
			}
		}
	}
	addresses, err := f.host.reached()
	switch {
	case err != nil:
		return "", fmt.Errorf("find the addresses of this machine: %w: say by which one others reach it, with --advertise", err)
	case len(addresses) == 0:
		return "", errors.New("this machine has no address at which others could reach it: set up its network, or give one with --advertise")
	case len(addresses) > 1:
		return "", fmt.Errorf("the host name %s is no address of the network, and this machine has several: "+
			"say by which one the hypervisors reach it, for instance --advertise %s (there are %s)",
			name, addresses[0], strings.Join(addresses, ", "))
	}
	return addresses[0], nil
}

// complete finishes what an interrupted init has left to do: the identity is written last in the data directory, and before the
// files outside of it.
func (f first) complete(home place, who identity, settled *settled) (Made, error) {
	made := Made{Config: settled.Config, ConfigPath: f.options.ConfigPath, ClusterID: who.ClusterID, ClientConfig: f.options.ClientConfig}
	if who.Name != settled.Name {
		return made, fmt.Errorf("%w: %s is of coordinator %q, and this would be %q: set the name in %s back",
			ErrConfig, settled.DataDir, who.Name, settled.Name, f.options.ConfigPath)
	}
	f.say("cluster %s: there already, with this machine as coordinator %s (%s)", who.ClusterID, who.Name, settled.DataDir)
	saved, err := settled.save()
	if err != nil {
		return made, fmt.Errorf("write the configuration: %w", err)
	}
	if saved {
		f.say("  configuration           %s, completed", f.options.ConfigPath)
	}
	if made.Context, err = contextOf(f.options.ClientConfig, who.ClusterID); made.Context != "" || err != nil {
		return made, err
	}
	if made.Context, err = freeContext(f.options.ClientConfig, who.ClusterID); err != nil {
		return made, err
	}
	authority, err := home.authority()
	if err != nil {
		return made, err
	}
	operator, err := made.operator(authority, time.Now())
	if err != nil {
		return made, err
	}
	who.Founders = append(who.Founders, string(operator.Certificate))
	if err := home.saveIdentity(who); err != nil {
		return made, err
	}
	if err := made.letIn(settled.Config, operator); err != nil {
		return made, err
	}
	f.say("  operator %q        %s, context %s", firstOperator, made.ClientConfig, made.Context)
	return made, nil
}

// contextOf is the context of a cluster in a client configuration; empty: there is none that can be used.
func contextOf(path, clusterID string) (string, error) {
	known, err := clientconfig.Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, name := range known.Names() {
		context, _, err := known.Context(name, path)
		if err != nil {
			continue
		}
		certificate, err := term.ReadCertificate(context.Certificate)
		if err != nil {
			continue
		}
		if who, err := pki.IdentityOf(certificate); err == nil && who.ClusterID == clusterID {
			return name, nil
		}
	}
	return "", nil
}

// handOver gives a person who has called sudo a client configuration, so that the next command needs no root.
func (f first) handOver(made Made) error {
	person, err := f.host.sudoer()
	if err != nil {
		return fmt.Errorf("find the account that called sudo: %w", err)
	}
	if person == nil {
		return nil
	}
	folder := filepath.Join(person.HomeDir, ".config", "berth")
	path := filepath.Join(folder, "client.yaml")
	if there, err := contextOf(path, made.ClusterID); there != "" || err != nil {
		return err
	}
	known, err := clientconfig.Load(made.ClientConfig)
	if err != nil {
		return err
	}
	from, _, err := known.Context(made.Context, made.ClientConfig)
	if err != nil {
		return err
	}
	var credentials clientconfig.Credentials
	for _, file := range []struct {
		path string
		data *[]byte
	}{{from.CA, &credentials.CA}, {from.Certificate, &credentials.Certificate}, {from.Key, &credentials.Key}} {
		if *file.data, err = os.ReadFile(file.path); err != nil {
			return err
		}
	}
	name, err := freeContext(path, made.ClusterID)
	if err != nil {
		return err
	}
	parent := filepath.Dir(folder)
	_, missing := os.Stat(parent)
	if err := clientconfig.Store(path, name, from.Coordinators, credentials); err != nil {
		return fmt.Errorf("write the client configuration of %s: %w", person.Username, err)
	}
	if err := giveTo(person, folder); err != nil {
		return err
	}
	if errors.Is(missing, fs.ErrNotExist) {
		if err := own(person, parent); err != nil {
			return err
		}
	}
	f.say("  and for %s          %s, context %s", person.Username, path, name)
	return nil
}

// giveTo makes a folder with everything in it a person's.
func giveTo(person *user.User, folder string) error {
	return filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return own(person, path)
	})
}

func own(person *user.User, path string) error {
	uid, err := strconv.Atoi(person.Uid)
	if err != nil {
		return fmt.Errorf("the account %s: %w", person.Username, err)
	}
	gid, err := strconv.Atoi(person.Gid)
	if err != nil {
		return fmt.Errorf("the account %s: %w", person.Username, err)
	}
	return os.Lchown(path, uid, gid)
}

const nodesNext = "next, with hypervisors that this machine reaches over ssh as root:\n  berth node add HOST..."

// start starts the service and waits until the coordinator answers. Without systemd, or with a configuration that the unit would not
// find, it says how to start it.
func (f first) start(ctx context.Context, made Made) error {
	if !f.host.systemd || made.ConfigPath != cmp.Or(f.unitConfig, DefaultConfigPath) {
		f.say("service: not started, for systemd does not run here with %s\n\nnext:\n  %s\n  berth status", made.ConfigPath,
			"berth coordinator run --config "+made.ConfigPath)
		return nil
	}
	if out, err := f.host.run(ctx, "systemctl", "enable", "--now", unit); err != nil {
		return fmt.Errorf("the cluster is made, but its service does not start: %w\n%s\nnext: mend that, then run 'berth init' again", err, out)
	}
	ctx, cancel := context.WithTimeout(ctx, f.host.wait)
	defer cancel()
	if err := f.answers(ctx, made); err != nil {
		log, _ := f.host.run(context.WithoutCancel(ctx), "journalctl", "--unit", unit, "--lines", "10", "--no-pager", "--output", "cat")
		return fmt.Errorf("the service %s is started, but the coordinator does not answer: %w\n%s\n"+
			"next: mend that, then run 'berth init' again", unit, err, log)
	}
	api, _, _ := made.Config.addresses()
	f.say("service: %s is enabled and runs; it answers at %s\n\n%s", unit, api, nodesNext)
	return nil
}

// answers waits until the coordinator leads.
func (f first) answers(ctx context.Context, made Made) error {
	known, err := clientconfig.Load(made.ClientConfig)
	if err != nil {
		return err
	}
	context, _, err := known.Context(made.Context, made.ClientConfig)
	if err != nil {
		return err
	}
	settings, err := pki.ClientConfig(context.Files(), pki.RolePeer)
	if err != nil {
		return err
	}
	client := rpc.NewHTTPClient(settings)
	defer client.CloseIdleConnections()
	api := berthv1connect.NewBerthServiceClient(client, "https://"+context.Coordinators[0])
	for {
		_, err := api.Status(ctx, connect.NewRequest(&berthv1.StatusRequest{}))
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(answerPause):
		}
	}
}
