package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/coordinator/api/gate"
	"berth/coordinator/balance"
	"berth/coordinator/model"
	"berth/shared/config"
	"berth/shared/rpc"
	"berth/shared/scrape"
	"berth/shared/tracing"
)

// Where things are unless the configuration or a flag says otherwise.
const (
	DefaultConfigPath = "/etc/berth/coordinator.yaml"
	DefaultDataDir    = "/var/lib/berth/coordinator"
)

// The range of Config.PassInterval: a pass looks at what the nodes report every two seconds.
const (
	leastPassInterval = time.Second
	mostPassInterval  = time.Hour
)

// Config.Stability and its range. Less than a second would let a member vote that was seen once.
const (
	defaultStability = 10 * time.Second
	leastStability   = time.Second
	mostStability    = time.Hour
)

// Config is the content of the coordinator's configuration file.
type Config struct {
	Name      string `yaml:"name,omitempty"`      // of this member; default: the host name
	DataDir   string `yaml:"data_dir,omitempty"`  // default: DefaultDataDir
	Advertise string `yaml:"advertise,omitempty"` // host name or address by which others reach this member; default: the host name
	Listen    Listen `yaml:"listen,omitempty"`
	LogLevel  string `yaml:"log_level,omitempty"` // default: info
	// PassInterval is between two looks of the leader at how well VMs are placed; default: balance.Interval. Members that
	// may lead had better agree on it.
	PassInterval time.Duration `yaml:"pass_interval,omitempty"`
	// Stability is how long a member that joins has to keep up before it may vote; default: defaultStability. The leader's
	// counts.
	Stability time.Duration `yaml:"stability,omitempty"`
	// FenceAgents are the directories where this machine keeps fence agents; default: fence.Directories. Nothing else is run.
	FenceAgents []string `yaml:"fence_agents,omitempty"`
	Backup      Backups  `yaml:"backup,omitempty"`
	// History is how much of the past this member keeps; members had better agree on it.
	History Retention `yaml:"history,omitempty"`
	// Limits are how much this member takes on when it leads.
	Limits gate.Limits `yaml:"limits,omitempty"`
	// Metrics is where this member's figures are read from; default: this machine alone, on scrape.PortCoordinator.
	Metrics scrape.Config `yaml:"metrics,omitempty"`
	// Traces is where spans of operations are sent while this member leads; default: nowhere.
	Traces tracing.Config `yaml:"traces,omitempty"`

	named      bool   // the file or a flag says Name itself
	advertised bool   // the same of Advertise
	fences     string // socket of what runs fence agents under another account; empty: this process does
}

// Listen are the addresses to listen on, as HOST:PORT or :PORT. Others are told the same ports.
type Listen struct {
	API   string `yaml:"api,omitempty"`
	Agent string `yaml:"agent,omitempty"`
	Raft  string `yaml:"raft,omitempty"`
	// Console is for browsers; scrape.Off: nowhere.
	Console string `yaml:"console,omitempty"`
}

// ErrConfig reports a configuration with which no coordinator can run.
var ErrConfig = errors.New("the coordinator's configuration is not usable")

// LoadConfig reads the file and completes it with the defaults. The error of a missing file satisfies
// errors.Is(err, fs.ErrNotExist).
func LoadConfig(path string) (Config, error) {
	var c Config
	if err := config.Load(path, &c); err != nil {
		return c, err
	}
	return c, c.complete()
}

// complete fills the defaults in and checks the rest.
func (c *Config) complete() error {
	if c.DataDir == "" {
		c.DataDir = DefaultDataDir
	}
	c.named, c.advertised = c.Name != "", c.Advertise != ""
	if c.Name == "" || c.Advertise == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("%w: neither name nor advertise may be left out, because this machine has no host name: %w", ErrConfig, err)
		}
		if c.Name == "" {
			c.Name = host
		}
		if c.Advertise == "" {
			c.Advertise = host
		}
	}
	if err := model.ValidateName("coordinator", c.Name); err != nil {
		return fmt.Errorf("%w: key name: %w", ErrConfig, err)
	}
	for _, listen := range []struct {
		key     string
		address *string
		port    int
	}{
		{"api", &c.Listen.API, rpc.PortAPI},
		{"agent", &c.Listen.Agent, rpc.PortAgent},
		{"raft", &c.Listen.Raft, rpc.PortRaft},
		{"console", &c.Listen.Console, rpc.PortConsole},
	} {
		if *listen.address == "" {
			*listen.address = ":" + strconv.Itoa(listen.port)
		}
		if _, err := portOf(*listen.address); err != nil && (listen.key != "console" || *listen.address != scrape.Off) {
			return fmt.Errorf("%w: key listen.%s: %w", ErrConfig, listen.key, err)
		}
	}
	for _, directory := range c.FenceAgents {
		if !filepath.IsAbs(directory) {
			return fmt.Errorf("%w: key fence_agents: %q: want absolute paths of directories", ErrConfig, directory)
		}
	}
	if c.PassInterval == 0 {
		c.PassInterval = balance.Interval
	}
	if c.PassInterval < leastPassInterval || c.PassInterval > mostPassInterval {
		return fmt.Errorf(
			"%w: key pass_interval: %v is out of range: want %v to %v", ErrConfig, c.PassInterval, leastPassInterval, mostPassInterval,
		)
	}
	if c.Stability == 0 {
		c.Stability = defaultStability
	}
	if c.Stability < leastStability || c.Stability > mostStability {
		return fmt.Errorf("%w: key stability: %v is out of range: want %v to %v", ErrConfig, c.Stability, leastStability, mostStability)
	}
	if err := c.Backup.complete(c.DataDir); err != nil {
		return err
	}
	if err := c.History.complete(); err != nil {
		return err
	}
	if err := errors.Join(c.Metrics.Complete(scrape.PortCoordinator), c.Traces.Complete()); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if l := c.Limits; l.Writes < 0 || l.Reads < 0 || l.Waiting < 0 || l.Burst < 0 {
		return fmt.Errorf("%w: key limits: writes, reads, waiting and burst cannot be less than 0", ErrConfig)
	}
	if c.LogLevel != "" && hclog.LevelFromString(c.LogLevel) == hclog.NoLevel {
		return fmt.Errorf("%w: key log_level: %q is none of trace, debug, info, warn, error, off", ErrConfig, c.LogLevel)
	}
	return nil
}

// portOf is the port of a listen address. Port 0 would be another one for everybody at every start.
func portOf(listen string) (string, error) {
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("%q is not HOST:PORT or :PORT", listen)
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		return "", fmt.Errorf("%q has no port from 1 to 65535", listen)
	}
	return port, nil
}

// addresses are how others reach the parts of this member.
func (c *Config) addresses() (api, agent, raft string) {
	at := func(listen string) string {
		port, _ := portOf(listen) // checked by complete
		return net.JoinHostPort(c.Advertise, port)
	}
	return at(c.Listen.API), at(c.Listen.Agent), at(c.Listen.Raft)
}

// resolveTimeout is how long the name service may take to know this machine.
const resolveTimeout = 5 * time.Second

// checkAdvertise refuses a name that nobody could connect to.
func (c *Config) checkAdvertise(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	if _, err := net.DefaultResolver.LookupHost(ctx, c.Advertise); err != nil {
		return fmt.Errorf("%w: the other machines are to reach this one as %q, and that does not resolve: "+
			"give an address or a known name with --advertise or the key advertise: %w", ErrConfig, c.Advertise, err)
	}
	return nil
}

// settled is a configuration that init or join goes by, and what the file at its path has yet to be told of it.
type settled struct {
	Config
	path    string
	missing []string // lines for the file
}

// settle joins the file at path, if there is one, with what the flags say. The two must not contradict each other, for
// 'berth coordinator run' reads only the file.
func settle(path string, flags Config) (settled, error) {
	s := settled{path: path}
	if err := config.Load(path, &s.Config); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	for _, key := range []struct {
		name       string
		flag, file *string
	}{
		{"name", &flags.Name, &s.Name},
		{"advertise", &flags.Advertise, &s.Advertise},
		{"data_dir", &flags.DataDir, &s.DataDir},
	} {
		switch {
		case *key.flag == "" || *key.flag == *key.file:
		case *key.file == "":
			*key.file = *key.flag
			s.missing = append(s.missing, fmt.Sprintf("%s: %q", key.name, *key.flag))
		default:
			return s, fmt.Errorf("%w: the flag says %s %q, and %s says %q: change one of them",
				ErrConfig, key.name, *key.flag, path, *key.file)
		}
	}
	if err := s.complete(); err != nil {
		return s, err
	}
	if !s.named { // a machine may be renamed, a member may not
		s.missing = append(s.missing, fmt.Sprintf("name: %q", s.Name))
	}
	return s, nil
}

// save adds to the file what it does not say yet, and makes it if it is not there. What stands in it stays, comments
// included. It tells whether there was anything to write.
func (s *settled) save() (bool, error) {
	if len(s.missing) == 0 {
		return false, nil
	}
	text, err := os.ReadFile(s.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	text = append(text, strings.Join(s.missing, "\n")+"\n"...)
	return true, config.WriteFile(s.path, text, 0o644)
}
