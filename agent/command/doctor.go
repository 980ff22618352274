package command

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"berth/agent/hostpki"
	"berth/agent/hoststat"
	"berth/agent/hypervisor"
	"berth/agent/hypervisor/processes"
	"berth/agent/hypervisor/statusfiles"
	"berth/agent/tasks"
	"berth/agent/watchdog"
	"berth/shared/destination"
	"berth/shared/domxml"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// finding is one line of the doctor's report.
type finding struct {
	check, result, next string
	verdict             verdict
}

type verdict string

const (
	good    verdict = "ok"
	warning verdict = "warn" // works, but something is missing
	bad     verdict = "FAIL" // will not work
)

func doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what this node needs, and say what to do about the rest",
		Args:  exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := load(cmd)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), 30*time.Second)
			defer cancel()
			findings := examine(ctx, &settings)
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "CHECK\tVERDICT\tFOUND\tNEXT")
			failures := 0
			for _, f := range findings {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", f.check, f.verdict, f.result, f.next)
				if f.verdict == bad {
					failures++
				}
			}
			if err := table.Flush(); err != nil {
				return err
			}
			if failures > 0 {
				return fmt.Errorf("%d of %d checks failed", failures, len(findings))
			}
			return nil
		},
	}
	addConfigFlag(cmd)
	return cmd
}

func examine(ctx context.Context, settings *Settings) []finding {
	findings := append([]finding{examineEnrolment(settings)}, examineAuthority(settings, time.Now())...)
	findings = append(findings, examineCoordinators(ctx, settings)...)
	findings = append(findings, examineLibvirt(ctx, settings)...)
	findings = append(findings, examineStatusFiles(ctx, statusfiles.DefaultSocket))
	findings = append(findings, examineMigration(ctx, settings)...)
	if settings.Watchdog != "" {
		findings = append(findings, examineWatchdog(watchdog.HostOf("/proc", "/sys", settings.Watchdog), settings.WatchdogUnsafe))
	}
	findings = append(findings, examineLocks("/"))
	findings = append(findings, examineBoot("/")...)
	return append(findings, examineHost(ctx)...)
}

func examineEnrolment(settings *Settings) finding {
	who, err := settings.enrolment()
	if err != nil {
		return finding{"enrolment", err.Error(), "berth-agent join COORDINATOR TOKEN", bad}
	}
	pair, err := pki.LoadPair(settings.files())
	if err != nil {
		return finding{"enrolment", err.Error(), "berth-agent join --force COORDINATOR TOKEN", bad}
	}
	now := time.Now()
	if what, next := expired(settings, who.Name, now); what != "" {
		return finding{"enrolment", who.Name + ": " + what, next, bad}
	}
	until := pair.Certificate.NotAfter.Local().Format(time.DateOnly)
	if pki.Late(pair.Certificate, now) {
		return finding{
			"enrolment", fmt.Sprintf("%s (%s); the certificate should have been renewed, and ends on %s", who.Name, who.NodeID, until),
			"journalctl -u berth-agent | grep certificate; berth-agent renews it by itself as soon as a coordinator answers", warning,
		}
	}
	return finding{"enrolment", fmt.Sprintf("%s (%s); certificate until %s, renews itself", who.Name, who.NodeID, until), "", good}
}

// examineAuthority tells that the authority which has signed this node's certificate ends before long.
func examineAuthority(settings *Settings, now time.Time) []finding {
	text, err := os.ReadFile(settings.files().CA)
	if err != nil {
		return nil // the enrolment says it
	}
	ends, err := pki.AuthorityEnds(text) // the first of them signs
	if err != nil || ends.Sub(now) > pki.AuthorityNotice {
		return nil
	}
	return []finding{{
		"authority", "the cluster's authority ends on " + ends.Local().Format(time.DateOnly) + ", and this node's certificate with it",
		"on a coordinator: berth ca rotate", warning,
	}}
}

// How far a clock may be off: certificates are made valid from ten minutes ago.
const (
	clockWarning = 10 * time.Second
	clockFailure = 10 * time.Minute
)

// examineCoordinators opens the connection that the agent will open, certificates and all.
func examineCoordinators(ctx context.Context, settings *Settings) []finding {
	tlsConfig, err := pki.ClientConfig(settings.files(), pki.RolePeer)
	if err != nil {
		return []finding{{"coordinators", err.Error(), "berth-agent join --force COORDINATOR TOKEN", bad}}
	}
	client := rpc.NewHTTPClient(tlsConfig)
	defer client.CloseIdleConnections()
	var findings []finding
	for _, address := range settings.members() {
		findings = append(findings, examineCoordinator(ctx, client, address))
	}
	if len(findings) == 0 {
		return []finding{{"coordinators", "none is configured", "add 'coordinators: [host:7421]', or join again with --force", bad}}
	}
	return findings
}

func examineCoordinator(ctx context.Context, client *http.Client, address string) finding {
	check := "coordinator " + address
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/", nil)
	if err != nil {
		return finding{check, err.Error(), "mend 'coordinators'", bad}
	}
	response, err := client.Do(request)
	if err != nil {
		return finding{check, err.Error(), "is it up, and the port open?", warning}
	}
	_ = response.Body.Close()
	theirs, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return finding{check, "reachable; it does not tell the time", "", good}
	}
	off := time.Until(theirs).Abs()
	switch {
	case off > clockFailure:
		return finding{check, fmt.Sprintf("reachable; the clocks differ by %s", off.Round(time.Second)), "set the clock: chronyc makestep", bad}
	case off > clockWarning:
		return finding{
			check, fmt.Sprintf("reachable; the clocks differ by %s", off.Round(time.Second)), "run chronyd or systemd-timesyncd", warning,
		}
	}
	return finding{check, "reachable; the clocks agree", "", good}
}

func examineLibvirt(ctx context.Context, settings *Settings) []finding {
	h := settings.libvirt(hclog.NewNullLogger())
	defer h.Close()
	if err := awaitLibvirt(ctx, h, 5*time.Second); err != nil {
		return []finding{{"libvirt", err.Error(), "systemctl status libvirtd; may this user open its socket?", bad}}
	}
	info, err := h.Host(ctx)
	if err != nil {
		return []finding{{"libvirt", err.Error(), "virsh -c " + settings.LibvirtURI + " nodeinfo", bad}}
	}
	findings := []finding{{
		"libvirt", fmt.Sprintf("%s, hypervisor %s, host UUID %s", info.LibVersion, info.HypervisorVersion, info.HostUUID), "", good,
	}}
	findings = append(findings, examineGuests(ctx, h)...)
	findings = append(findings, examineStorage(info, exec.LookPath)...)
	findings = append(findings, examineShared(info.Pools, tasks.NewSharedPools(settings.sharedPath()))...)
	caps, err := domxml.ParseCapabilities(info.CapabilitiesXML)
	if err != nil {
		return append(findings, finding{"capabilities", err.Error(), "virsh capabilities", bad})
	}
	types := strings.Join(caps.DomainTypes, ", ")
	if strings.Contains(types, "kvm") || settings.VirtType == "qemu" {
		return append(findings, finding{"virtualisation", types + "; virt_type " + settings.VirtType, "", good})
	}
	return append(
		findings,
		finding{
			"virtualisation", types + ": no KVM, guests are emulated and slow", "enable virtualisation in the firmware; ls -l /dev/kvm",
			warning,
		},
	)
}

// examineStorage tells of what disks need; a node whose guests have none does without.
func examineStorage(info hypervisor.HostInfo, find func(string) (string, error)) []finding {
	var findings []finding
	for _, failure := range info.Errors {
		findings = append(findings, finding{failure.Reading, failure.Err.Error(), "the node takes no VM that needs it", warning})
	}
	var active []string
	for _, pool := range info.Pools {
		if pool.Active {
			active = append(active, pool.Name)
		} else {
			findings = append(findings, finding{"storage pool", pool.Name + " is not active", "virsh pool-start " + pool.Name, warning})
		}
	}
	if len(active) == 0 {
		return findings
	}
	findings = append(findings, finding{"storage pools", strings.Join(active, ", "), "", good})
	if _, err := find("qemu-img"); err != nil {
		findings = append(
			findings,
			finding{"qemu-img", "not found: libvirt makes no qcow2 volumes without it", "install qemu-utils (Debian) or qemu-img", warning},
		)
	}
	return findings
}

// examineShared tells of pools that the cluster calls shared, as this host has seen them when coordinators tried that last.
func examineShared(pools []hypervisor.Pool, kept *tasks.SharedPools) (findings []finding) {
	seen, err := kept.Read()
	if err != nil {
		return []finding{{"shared pools", err.Error(), "", warning}}
	}
	for _, pool := range pools {
		is, tried := seen[pool.Name]
		at := is.At.UTC().Format("2006-01-02 15:04:05 MST")
		switch check := "shared pool " + pool.Name; {
		case !tried:
		case !is.Found:
			findings = append(findings, finding{
				check, "it is called shared, and at " + at + " this host did not see what another one had just made there",
				"mount the same storage here as elsewhere, or declare the pool anew with --scope local: 'berth pool show' says who sees what", bad,
			})
		case !is.Held:
			findings = append(findings, finding{
				check, "this host sees the files of others, and at " + at + " not their locks: two QEMUs could write to one disk",
				"mount it with locks (NFS: without nolock), or set lock_manager in /etc/libvirt/qemu.conf", warning,
			})
		default:
			findings = append(findings, finding{check, "this host saw the files and the locks of another one at " + at, "", good})
		}
	}
	return findings
}

func examineMigration(ctx context.Context, settings *Settings) []finding {
	name, err := os.Hostname()
	if err != nil {
		return []finding{{"migration", err.Error(), "", bad}}
	}
	uri := settings.migrationURI(name)
	parsed, err := url.Parse(uri)
	if err != nil {
		return []finding{{"migration", err.Error(), "set migration_uri", bad}}
	}
	var findings []finding
	addresses, err := net.DefaultResolver.LookupHost(ctx, parsed.Hostname())
	switch {
	case err != nil:
		findings = append(
			findings,
			finding{
				"migration URI", fmt.Sprintf("%s: %v", uri, err), "make the name resolve on every node, or set migration_uri to an address",
				bad,
			},
		)
	case net.ParseIP(addresses[0]).IsLoopback():
		findings = append(
			findings,
			finding{
				"migration URI", uri + " is " + addresses[0],
				"it has to be this node's address for the others: mend /etc/hosts or set migration_uri", bad,
			},
		)
	default:
		findings = append(findings, finding{"migration URI", uri + " is " + addresses[0], "", good})
	}
	if parsed.Scheme != "qemu+tls" {
		return append(findings, finding{
			"migration TLS", "migration_uri is not qemu+tls, and is not used", "guests move encrypted or not at all: set qemu+tls://HOST/system",
			bad,
		})
	}
	// Whether an address is believed depends on where the agent calls from, which coordinators see.
	if who, err := settings.enrolment(); err == nil && who.Name != "" && net.ParseIP(parsed.Hostname()) == nil {
		if used, believed := destination.URI(who.Name, uri, ""); !believed {
			findings = append(findings, finding{
				"migration URI", fmt.Sprintf("%s is no name of node %s: guests are sent to %s", uri, who.Name, used),
				"name the host " + who.Name + " in migration_uri and in libvirt's certificate, or take migration_uri out", warning,
			})
		}
	}
	return append(findings, examineTLS((&hostpki.Host{Daemon: hostpki.NewService(settings.LibvirtURI).Daemon(ctx)}).Look())...)
}

// examineTLS is about the keys and certificates of libvirt and QEMU.
func examineTLS(faults []hostpki.Fault) []finding {
	if len(faults) == 0 {
		return []finding{{"migration TLS", "libvirt and QEMU have certificates of an authority each, and libvirt a list of names", "", good}}
	}
	var findings []finding
	for _, fault := range faults {
		judged := warning
		if fault.Grave {
			judged = bad
		}
		findings = append(findings, finding{"migration TLS", fault.Text, fault.Next, judged})
	}
	return findings
}

func examineWatchdog(host watchdog.Host, unsafe bool) finding {
	err := watchdog.Usable(host)
	switch {
	case err == nil:
		return finding{"watchdog", cmp.Or(host.Driver, "its driver is not known"), "", good}
	case unsafe:
		return finding{"watchdog", err.Error(), "remove watchdog_unsafe", warning}
	}
	return finding{"watchdog", err.Error(), "remove 'watchdog', or set watchdog_unsafe", bad}
}

// examineGroups tells whether what a guest waits for can be told from what its host waits for.
func examineGroups(mount string) finding {
	if mount == "" {
		return finding{
			"pressure of each VM", "there are no control groups of cgroup v2", "boot with systemd.unified_cgroup_hierarchy=1", warning,
		}
	}
	return finding{"pressure of each VM", "where libvirt makes control groups: in " + mount, "", good}
}

func examineHost(ctx context.Context) []finding {
	sample := hoststat.New().Read(ctx)
	var findings []finding
	if len(sample.Errors) == 0 {
		findings = append(findings, finding{"readings", "memory, load, CPU and KSM can be read", "", good})
	}
	for _, failure := range sample.Errors {
		findings = append(findings, finding{"reading " + failure.Reading, failure.Err.Error(), "decisions on this node lack it", warning})
	}
	if sample.CPUPressure == nil {
		findings = append(findings,
			finding{"pressure (PSI)", "the kernel has none", "boot with psi=1 for better load figures, and those of each VM", warning})
	} else {
		findings = append(findings, finding{"pressure (PSI)", "there", "", good}, examineGroups(processes.Groups()))
	}
	return findings
}
