package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"berth/agent/hypervisor/libvirt"
	"berth/agent/hypervisor/statusfiles"
	"berth/agent/watchdog"
	"berth/shared/config"
	"berth/shared/pki"
	"berth/shared/scrape"
	"berth/shared/tracing"
)

// Settings are the agent's configuration file.
type Settings struct {
	Coordinators       []string `yaml:"coordinators"` // host:port of their agent listeners
	DataDir            string   `yaml:"data_dir"`
	LibvirtURI         string   `yaml:"libvirt_uri"`
	MinimumLibvirt     string   `yaml:"minimum_libvirt,omitempty"` // refuse an older one, for instance 9.0.0
	VirtType           string   `yaml:"virt_type"`                 // auto, kvm or qemu
	MigrationURI       string   `yaml:"migration_uri,omitempty"`   // how other nodes reach this libvirt
	MigrateDataAddress string   `yaml:"migrate_data_address,omitempty"`
	LogLevel           string   `yaml:"log_level"`
	// Watchdog is a watchdog of the kernel that resets this node when its leases end; used if the node is fenced by watchdog.
	Watchdog        string        `yaml:"watchdog,omitempty"`         // for instance /dev/watchdog
	WatchdogTimeout time.Duration `yaml:"watchdog_timeout,omitempty"` // 10s to 5m; 0: defaultWatchdogTimeout
	WatchdogUnsafe  bool          `yaml:"watchdog_unsafe,omitempty"`  // also softdog, and in a virtual machine
	// Metrics is where the host's figures are read from; default: this machine alone, on scrape.PortAgent.
	Metrics scrape.Config `yaml:"metrics,omitempty"`
	// Traces is where spans of orders are sent; default: nowhere.
	Traces tracing.Config `yaml:"traces,omitempty"`
}

const (
	defaultConfig  = "/etc/berth/agent.yaml"
	defaultDataDir = "/var/lib/berth/agent"

	// An agent that is restarted has to be back before the watchdog's time is over.
	defaultWatchdogTimeout = time.Minute
	leastWatchdogTimeout   = 10 * time.Second
	mostWatchdogTimeout    = 5 * time.Minute
)

func defaults() Settings {
	return Settings{DataDir: defaultDataDir, LibvirtURI: "qemu:///system", VirtType: "auto", LogLevel: "info"}
}

func addConfigFlag(cmd *cobra.Command) {
	cmd.Flags().String("config", defaultConfig, "configuration file")
}

// load reads the configuration that the command's --config names and checks it.
func load(cmd *cobra.Command) (Settings, error) {
	path, _ := cmd.Flags().GetString("config")
	settings := defaults()
	if err := config.Load(path, &settings); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return settings, fmt.Errorf("there is no configuration %s: enrol this node first with 'berth-agent join COORDINATOR TOKEN'", path)
		}
		return settings, err
	}
	if err := settings.check(); err != nil {
		return settings, fmt.Errorf("%s: %w", path, err)
	}
	return settings, nil
}

func (s *Settings) check() error {
	if !slices.Contains([]string{"auto", "kvm", "qemu"}, s.VirtType) {
		return fmt.Errorf("virt_type %q: want auto, kvm or qemu", s.VirtType)
	}
	for _, address := range s.Coordinators {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return fmt.Errorf("coordinators: %q: want host:port", address)
		}
	}
	if t := s.WatchdogTimeout; t != 0 && (t < leastWatchdogTimeout || t > mostWatchdogTimeout) {
		return fmt.Errorf("watchdog_timeout %s: want %s to %s", t, leastWatchdogTimeout, mostWatchdogTimeout)
	}
	if s.Watchdog != "" && !filepath.IsAbs(s.Watchdog) {
		return fmt.Errorf("watchdog %q: want the absolute path of a device, for instance /dev/watchdog", s.Watchdog)
	}
	if err := errors.Join(s.Metrics.Complete(scrape.PortAgent), s.Traces.Complete()); err != nil {
		return err
	}
	if s.MinimumLibvirt != "" {
		if _, err := libvirt.ParseVersion(s.MinimumLibvirt); err != nil {
			return fmt.Errorf("minimum_libvirt: %w", err)
		}
	}
	if s.MigrateDataAddress != "" && net.ParseIP(s.MigrateDataAddress) == nil {
		return fmt.Errorf("migrate_data_address %q: want an address of this node, for instance 10.0.1.1", s.MigrateDataAddress)
	}
	if s.MigrationURI != "" {
		if parsed, err := url.Parse(s.MigrationURI); err != nil || parsed.Host == "" {
			return fmt.Errorf("migration_uri %q: want a libvirt URI with a host, for instance qemu+tls://node1/system", s.MigrationURI)
		}
	}
	return nil
}

// migrationURI is the configured one, or the one that the host's name gives.
func (s *Settings) migrationURI(hostName string) string {
	if s.MigrationURI != "" {
		return s.MigrationURI
	}
	return "qemu+tls://" + hostName + "/system"
}

// domainTypes limits what the capabilities offer. Nil: no limit.
func (s *Settings) domainTypes() []string {
	if s.VirtType == "auto" {
		return nil
	}
	return []string{s.VirtType}
}

func (s *Settings) files() pki.Files {
	dir := filepath.Join(s.DataDir, "tls")
	return pki.Files{
		CA: filepath.Join(dir, "ca.pem"), Certificate: filepath.Join(dir, "agent.pem"), Key: filepath.Join(dir, "agent.key"),
	}
}

// libvirt starts to connect to the configured libvirt.
func (s *Settings) libvirt(log hclog.Logger) *libvirt.Hypervisor {
	minimum, _ := libvirt.ParseVersion(s.MinimumLibvirt) // checked; empty gives 0, which is no demand
	return libvirt.OpenWith(s.LibvirtURI, log, libvirt.Options{
		MinVersion: minimum, VirtType: s.VirtType, StatusSocket: statusfiles.DefaultSocket,
	})
}

// watchdog is the configured one, not armed; nil if there is none.
func (s *Settings) watchdog(log hclog.Logger, guests watchdog.Guests) *watchdog.Watchdog {
	if s.Watchdog == "" {
		return nil
	}
	return watchdog.New(watchdog.Config{Logger: log, Guests: guests, Open: func() (watchdog.Device, error) {
		if err := watchdog.Usable(watchdog.HostOf("/proc", "/sys", s.Watchdog)); err != nil && !s.WatchdogUnsafe {
			return nil, err
		}
		return watchdog.OpenDevice(s.Watchdog, cmp.Or(s.WatchdogTimeout, defaultWatchdogTimeout))
	}})
}

func (s *Settings) membersPath() string  { return filepath.Join(s.DataDir, "coordinators.json") }
func (s *Settings) identityPath() string { return filepath.Join(s.DataDir, "identity.json") }
func (s *Settings) sharedPath() string   { return filepath.Join(s.DataDir, "shared-pools.json") }
func (s *Settings) profilesPath() string { return filepath.Join(s.DataDir, "profiles.json.gz") }
func (s *Settings) journalPath() string  { return filepath.Join(s.DataDir, "journal.db") }

// members are the addresses to dial: the configured ones, and those that coordinators have named since. The configuration
// is the administrator's, so what is learnt stands in a file of its own.
func (s *Settings) members() []string {
	known := slices.Clone(s.Coordinators)
	text, err := os.ReadFile(s.membersPath())
	if err != nil {
		return known
	}
	var learnt []string
	if json.Unmarshal(text, &learnt) != nil {
		return known // a hint that is lost costs nothing: any coordinator tells it again
	}
	for _, address := range learnt {
		if !slices.Contains(known, address) {
			known = append(known, address)
		}
	}
	return known
}

func (s *Settings) rememberMembers(addresses []string) error {
	text, err := json.Marshal(addresses)
	if err != nil {
		return err
	}
	return config.WriteFile(s.membersPath(), append(text, '\n'), 0o600)
}

// enrolment is who this node became when it joined.
type enrolment struct {
	NodeID    string `json:"node_id"`
	Name      string `json:"name"`
	ClusterID string `json:"cluster_id"`
}

func (s *Settings) enrolment() (enrolment, error) {
	var e enrolment
	text, err := os.ReadFile(s.identityPath())
	if errors.Is(err, fs.ErrNotExist) {
		return e, fmt.Errorf("this node is not enrolled (no %s): run 'berth-agent join COORDINATOR TOKEN'", s.identityPath())
	}
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(text, &e); err != nil || e.NodeID == "" {
		return e, fmt.Errorf("%s is damaged: remove the node with 'berth node delete', then join again with --force", s.identityPath())
	}
	return e, nil
}
