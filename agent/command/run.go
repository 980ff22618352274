package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"berth/agent/hoststat"
	"berth/agent/hypervisor/statusfiles"
	"berth/agent/jobs"
	"berth/agent/metrics"
	"berth/agent/profile/recorder"
	"berth/agent/session"
	"berth/agent/tasks"
	"berth/agent/telemetry"
	"berth/agent/watchdog"
	"berth/shared/buildinfo"
	"berth/shared/logging"
	"berth/shared/pki"
	"berth/shared/renewal"
	"berth/shared/rpc"
	"berth/shared/scrape"
)

func runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the agent in the foreground",
		Long: `Runs the agent until it gets SIGTERM. It works without libvirt as well: it reports that libvirt does not answer, and
connects as soon as it does.`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := load(cmd)
			if err != nil {
				return err
			}
			path, _ := cmd.Flags().GetString("config")
			return run(cmd, settings, path)
		},
	}
	addConfigFlag(cmd)
	return cmd
}

// heapGrowth is how far the heap may grow before it is collected, in per cent. The agent allocates little and shares its
// machine with guests, so memory counts for more than the time of a collection.
const heapGrowth = 50

func run(cmd *cobra.Command, settings Settings, path string) error {
	ctx := cmd.Context()
	debug.SetGCPercent(heapGrowth)
	log, err := logging.New("berth-agent", settings.LogLevel, cmd.ErrOrStderr())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	who, err := settings.enrolment()
	if err != nil {
		return err
	}
	if len(settings.members()) == 0 {
		return fmt.Errorf("%s names no coordinators: add 'coordinators: [host:7421]', or join again with --force", path)
	}
	tlsConfig, err := pki.Client(settings.files(), pki.RolePeer)
	if err != nil {
		return err
	}
	host := hoststat.New()
	identity, err := host.Identity(ctx)
	if err != nil {
		return err
	}
	hypervisor := settings.libvirt(log.Named("libvirt"))
	defer hypervisor.Close()
	work, err := jobs.Open(jobs.Config{
		Journal: settings.journalPath(), Hypervisor: hypervisor, NodeID: who.NodeID, VirtType: settings.VirtType,
		Logger: log.Named("jobs"),
	})
	if err != nil {
		return err
	}
	defer work.Close()
	hearLastWords(ctx, statusfiles.DefaultSocket, hypervisor.Left, work.Saw, log)

	weeks := recorder.Open(telemetry.NewSampler(hypervisor, host), settings.profilesPath(), who.NodeID, log.Named("profiles"))
	figures := &metrics.Host{
		Sampler: weeks,
		Collector: &telemetry.Collector{
			Hypervisor: hypervisor, Identity: identity, MigrationURI: settings.migrationURI(identity.HostName),
			MigrationAddress: settings.MigrateDataAddress, DomainTypes: settings.domainTypes(),
			Expected: work.Known, MetricsPort: settings.Metrics.Port(),
		},
		Connected: func() bool { connected, _ := hypervisor.Connected(); return connected },
		Orders:    func() int { return len(work.Running()) },
	}
	begun := time.Now()
	news := make(chan struct{}, 1)
	log.Info("starting", "version", buildinfo.Version(), "node", who.Name, "node_id", who.NodeID, "libvirt", settings.LibvirtURI)
	about := session.Config{
		NodeID: who.NodeID, ClusterID: who.ClusterID, Version: buildinfo.Version(),
		Hardware: identity.Hardware, HardwareSource: identity.HardwareSource,
		Incarnation: fmt.Sprintf("%s/%d", identity.BootID, begun.UnixNano()),
		Addresses:   settings.members(),
		Remember: func(addresses []string) {
			if err := settings.rememberMembers(addresses); err != nil {
				log.Warn("the coordinators' addresses could not be stored", "error", err)
			}
		},
		Trusted:    askingAnew(&settings, news),
		Client:     rpc.NewNames(filepath.Join(filepath.Dir(settings.journalPath()), "addresses.yaml")).Following(tlsConfig),
		Hypervisor: hypervisor,
		Sampler:    figures,
		Collector:  figures,
		Alive:      figures.Heard,
		Jobs:       settings.traced(ctx, work, who.Name, log.Named("traces")),
		Tasks: &tasks.Tasks{
			Hypervisor: hypervisor, Refuse: work.Refuse, Discard: work.Discard, EndCrashed: work.EndCrashed, Reading: work.Reading,
			Week: weeks.Week, Minutes: weeks.Minutes, Shared: tasks.NewSharedPools(settings.sharedPath()), Logger: log.Named("tasks"),
		},
		Logger: log.Named("session"),
	}
	if dog := settings.watchdog(log.Named("watchdog"), &watchdog.Sleepers{
		Hypervisor: hypervisor, Logger: log.Named("watchdog"),
	}); dog != nil {
		about.Watchdog = dog
		go dog.Run(ctx)
	}
	health := hoststat.NewHealth(filepath.Dir(settings.journalPath()))
	about.Health = health
	go health.Run(ctx)
	if what, next := expired(&settings, who.Name, begun); what != "" {
		log.Error("no coordinator lets this node in: "+what, "next_step", next)
	}
	go renewal.Keep(ctx, settings.files(), asking(&settings), news, log.Named("certificate"))
	reader := &scrape.Server{Config: settings.Metrics, Collect: figures.Collect, Log: log.Named("metrics")}
	go reader.Run(ctx)
	s := session.New(about)
	go keepAlive(ctx, log, func() {
		// Neither may ever block. If one does, a restart is what mends it.
		_ = work.Running()
		_, _ = hypervisor.Connected()
	})
	saved := keeping(ctx, weeks)
	err = s.Run(ctx)
	saved()
	_, _ = daemon.SdNotify(false, daemon.SdNotifyStopping)
	if errors.Is(err, context.Canceled) {
		log.Info("stopped; the guests run on")
		return nil
	}
	return err
}

// saveLimit is how long the agent's end waits for weekly profiles to be saved. They are not worth more where a disk hangs.
const saveLimit = 2 * time.Second

// keeping has weekly profiles saved until the context ends, and gives what waits for the last time.
func keeping(ctx context.Context, weeks *recorder.Recorder) (saved func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		weeks.Run(ctx)
	}()
	return func() {
		select {
		case <-done:
		case <-time.After(saveLimit):
		}
	}
}

// askingAnew has the certificate renewed when the cluster trusts other authorities than this node knows.
func askingAnew(settings *Settings, news chan<- struct{}) func(authorities []string) {
	return func(authorities []string) {
		if renewal.Stale(settings.files(), authorities) {
			select {
			case news <- struct{}{}:
			default: // it is about to ask
			}
		}
	}
}

// keepAlive tells the service manager that the agent lives. It is ready from the start: being without libvirt or without a
// leader is a state that it reports, not one that a restart would mend.
func keepAlive(ctx context.Context, log hclog.Logger, probe func()) {
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		log.Warn("the service manager could not be told", "error", err)
	}
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil || every == 0 {
		return
	}
	ticker := time.NewTicker(every / 2)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			probe()
			_, _ = daemon.SdNotify(false, daemon.SdNotifyWatchdog)
		}
	}
}
