package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// layers, from the bottom up (law 9). A package imports from layers below its own, and from its own subtree. What stands
// in one layer does not import its neighbours.
var layers = []struct {
	why      string
	packages []string
}{
	{"words and wire that both programs share; they know neither", []string{
		"shared/units", "shared/gen/...", "shared/buildinfo", "shared/config", "shared/logging", "shared/domxml", "shared/qcow2",
		"shared/reach", "shared/destination", "shared/plaintext", "shared/pause", "shared/exposition",
		"shared/week",
	}},
	{"the listener that a program's figures are read from", []string{"shared/scrape"}},
	{"where a program sends spans of what it does", []string{"shared/tracing"}},
	{"which agents may be given which messages, and what documents put onto hosts", []string{"shared/capability", "shared/domxml/guard"}},
	{"identity is below the transport that proves it", []string{"shared/pki"}},
	{"transport", []string{"shared/rpc"}},
	{"certificates are renewed over the connections that they prove", []string{"shared/renewal"}},
	{"pure: the mark of a node that answers no starts, which its record has", []string{"coordinator/unanswered"}},
	{"pure model: the records that are stored, and the facts that agents report", []string{"coordinator/model"}},
	{"pure: what a browser has instead of a certificate, what nodes tell of a week, joined, and which CPU models are newer", []string{
		"coordinator/session", "coordinator/profile", "coordinator/cpumodel",
	}},
	{"pure: records and facts joined, with all accounting done", []string{"coordinator/view/..."}},
	{"pure: what groups of it want", []string{"coordinator/affinity"}},
	{"pure engines: what should happen; they do not know each other", []string{
		"coordinator/placement/...", "coordinator/operation",
	}},
	{"pure: what is known about where a VM may run, and what that proves", []string{"coordinator/evidence"}},
	{"pure: which moves the engines together propose", []string{"coordinator/balance/..."}},
	{"pure: what people declare of records, field by field", []string{"coordinator/schema"}},
	{"pure: how files that people write are read, field by field", []string{"coordinator/strictyaml", "coordinator/yamlnode"}},
	{"pure: the YAML form of an estate", []string{"coordinator/document"}},
	{"pure: what keeps a running VM on its node, which networks it has, and what may be put onto hosts", []string{
		"coordinator/binding", "coordinator/connected", "coordinator/admission",
	}},
	{"pure: what is declared, and what an engine is asked of it", []string{"coordinator/estate"}},
	{"pure: what a guest runs with that its record does not have", []string{"coordinator/drift"}},
	{"pure: what a live migration will take, by those before it", []string{"coordinator/prediction"}},
	{"pure: what is told Prometheus of a moment", []string{"coordinator/metrics"}},
	{"pure: how VMs are moved for plans, step by step", []string{"coordinator/moving"}},
	{"pure: what would happen, in a world in memory", []string{"coordinator/scenario/..."}},
	{"pure: what a value is after it was written and read", []string{"coordinator/roundtrip"}},
	{"how entries of the log become small, and what is to be looked at when", []string{"coordinator/packing", "coordinator/agenda"}},
	{"pure: who counts after a backup was restored, and what each may do", []string{"coordinator/returning"}},
	{"pure: by what records are found, and which others they name", []string{"coordinator/state/naming"}},
	{"replicated facts: compares and stores what the engines made", []string{"coordinator/state"}},
	{"what was applied, kept for months beside the state", []string{"coordinator/history"}},
	{"who may hold connections of a listener, and how many", []string{"coordinator/doorkeeper"}},
	{"pure: whose certificates count, by the records", []string{"coordinator/identities"}},
	{"pure: how one authority follows another", []string{"coordinator/authorities"}},
	{"the authorities of libvirt and QEMU in a coordinator's files", []string{"coordinator/keyring"}},
	{"what keeps backups from being changed", []string{"coordinator/seal"}},
	{"what coordinators may send each other, and what they may claim in it", []string{
		"coordinator/consensus/sieve", "coordinator/consensus/claims",
	}},
	{"where facts come from: the log for hard ones, agents for soft ones", []string{"coordinator/consensus", "coordinator/inventory"}},
	{"what the rooms of the leader's work share", []string{"coordinator/control/lead"}},
	{"rooms of the leader's work: disks, images, their locks, changes beside Berth, proof that nodes are off, plans, profiles", []string{
		"coordinator/control/volumes", "coordinator/control/locks", "coordinator/control/fencing", "coordinator/control/plans",
		"coordinator/control/drifts", "coordinator/control/profiles", "coordinator/control/answering",
	}},
	{"the room that starts, moves and stops single VMs", []string{"coordinator/control/lifecycle"}},
	{"rooms that begin work on VMs by themselves or by evidence", []string{"coordinator/control/adoption", "coordinator/control/recovery"}},
	{"the room that follows what somebody else has done to VMs", []string{"coordinator/control/outofband"}},
	{"the leader's work: engines, facts and orders meet here", []string{"coordinator/control"}},
	{"what the coordinator knows as messages, and messages as what it knows: one place for both edges", []string{"coordinator/wire"}},
	{
		"what other programs are sent of what was applied, and whose figures they read",
		[]string{"coordinator/webhook", "coordinator/tracing", "coordinator/targets"},
	},
	{
		"edges: the agents' streams and the API drive control, programs reach machines for it; none is known to it",
		[]string{"coordinator/agents", "coordinator/api/...", "coordinator/fence"},
	},
	{"faces: they see the API only as messages", []string{"coordinator/cli/...", "coordinator/console"}},
	{"wiring", []string{"coordinator/daemon"}},
	{"program", []string{"coordinator"}},

	{"files that the kernel makes up when they are read", []string{"agent/procfs"}},
	{"what the kernel tells of work that waits", []string{"agent/psi"}},
	{"the agent's seam to what runs domains", []string{"agent/hypervisor"}},
	{"what the host shows of guests without being asked through libvirtd", []string{
		"agent/hypervisor/guestlog", "agent/hypervisor/imagelock", "agent/hypervisor/processes",
		"agent/hypervisor/departures", "agent/hypervisor/statusfiles",
	}},
	{"what is known of the jobs and disks of guests, and how new it is", []string{
		"agent/hypervisor/domainjobs", "agent/hypervisor/disksizes", "agent/hypervisor/guestnews",
	}},
	{"what is said of snapshots to QEMU and libvirt", []string{"agent/hypervisor/disksnapshot"}},
	{"what stands behind the seam, and readings of the host", []string{
		"agent/hypervisor/libvirt", "agent/hypervisor/fake", "agent/hypervisor/hypervisortest", "agent/hoststat", "agent/watchdog",
		"agent/hostpki",
	}},
	{"the codes of errors", []string{"agent/errorcode"}},
	{"what is reported, and pure: what a week of it comes to", []string{"agent/telemetry", "agent/profile"}},
	{"what keeps such weeks across restarts", []string{"agent/profile/recorder"}},
	{"volumes, as orders and tasks name them, and what guests ran with last", []string{"agent/volumes", "agent/lastrun"}},
	{"orders by operation ID, and tasks of no operation", []string{"agent/jobs", "agent/tasks"}},
	{"the stream to the leader", []string{"agent/session"}},
	{"what is told Prometheus of a host, and a collector of its orders", []string{"agent/metrics", "agent/tracing"}},
	{"the agent's verbs", []string{"agent/command"}},
	{"program", []string{"agent"}},

	{"what tests of several packages stand on", []string{"integration/loopback", "integration/built"}},
	{"development: may look at everything, nothing looks at it", []string{
		"integration/...", "packaging/...", "coordinator/cli/clitest", "coordinator/state/statetest", "shared/exposition/expositiontest",
	}},
}

// layerOf is the index of p's layer and the pattern that put it there. The longest pattern wins.
func layerOf(path string) (layer int, pattern string) {
	layer = -1
	for i, l := range layers {
		for _, candidate := range l.packages {
			if within(path, candidate) && len(candidate) > len(pattern) {
				layer, pattern = i, candidate
			}
		}
	}
	return layer, pattern
}

func TestImportsPointDown(t *testing.T) {
	for _, p := range all(t) {
		own, pattern := layerOf(p.Path)
		if own < 0 {
			t.Errorf("%s has no layer: give it one in this file, with the reason", p.Path)
			continue
		}
		for _, path := range p.ours() {
			below, other := layerOf(path)
			switch {
			case pattern == other: // its own subtree
			case below == own:
				t.Errorf("%s imports %s, its neighbour (%s)", p.Path, path, layers[own].why)
			case below > own:
				t.Errorf("%s imports %s, which is above it (%s)", p.Path, path, layers[own].why)
			case within(p.Path, "agent/...") && within(path, "coordinator/..."):
				t.Errorf("%s imports %s: the programs meet in shared only", p.Path, path)
			}
		}
	}
}

// What needs cgo is one package, so that everything else builds anywhere and is tested without libvirt.
func TestOnlyOnePackageKnowsLibvirt(t *testing.T) {
	const seam = "agent/hypervisor/libvirt"
	var known bool
	for _, p := range all(t) {
		if p.Path == seam {
			known = slices.Contains(p.Imports, "libvirt.org/go/libvirt")
			continue
		}
		if p.Cgo {
			t.Errorf("%s uses cgo", p.Path)
		}
		if slices.Contains(p.Imports, "libvirt.org/go/libvirt") {
			t.Errorf("%s imports libvirt: go through agent/hypervisor", p.Path)
		}
	}
	if !known {
		t.Errorf("%s does not import libvirt: this test looks at the wrong place", seam)
	}
}

func TestTheCoordinatorBuildsWithoutCgo(t *testing.T) {
	build := exec.Command("go", "build", "-o", filepath.Join(t.TempDir(), "berth"), "./coordinator")
	build.Dir = "../.."
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
