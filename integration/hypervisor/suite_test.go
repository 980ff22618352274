package hypervisor

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/agent/hypervisor/hypervisortest"
	"berth/agent/hypervisor/libvirt"
	"berth/integration/lab"
)

func TestMain(m *testing.M) {
	lab.Child()
	m.Run()
}

// ownPool is a pool that each host has for itself, in folders of different names.
const ownPool = "own"

// raise gives two hosts without Berth, and the seam to each.
func raise(t *testing.T) (l *lab.Lab, bench hypervisortest.Bench) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	l, err := lab.Up(ctx, lab.Options{Name: "seam", Hosts: 2, Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(); err != nil {
			t.Error(err)
		}
	})
	var hosts []hypervisortest.Host
	for i, folder := range []string{"/var/lib/libvirt/own", "/var/lib/libvirt/another"} {
		host := l.Hosts[i]
		if err := host.AddPool(ctx, ownPool, folder); err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, hypervisortest.Host{
			Hypervisor: open(t, host), URI: "qemu+tls://" + host.Name + "/system",
			Forget:     func(t *testing.T, name, _ string) { forget(t, host, name) },
			EndProcess: func(t *testing.T, _, uuid string) { endProcess(t, host, uuid) },
		})
	}
	// Software emulation is there on every machine.
	return l, hypervisortest.Bench{Source: hosts[0], Target: hosts[1], DomainType: "qemu", Pool: ownPool, Shared: "shared"}
}

// open connects to a host's libvirtd from outside.
func open(t *testing.T, host *lab.Host) *libvirt.Hypervisor {
	t.Helper()
	return openWith(t, host, libvirt.Options{
		RunDir: host.Path("/run/libvirt/qemu"), LogDir: host.Path("/var/log/libvirt/qemu"), ProcDir: host.Path("/proc"), RootDir: host.Path("/"),
		VirtType: "qemu",
	})
}

// forget restarts the host's libvirtd without what it has written down of a guest that runs.
func forget(t *testing.T, host *lab.Host, name string) {
	t.Helper()
	if err := host.Forget(t.Context(), name); err != nil {
		t.Fatal(err)
	}
}

// endProcess ends a guest's process from outside.
func endProcess(t *testing.T, host *lab.Host, uuid string) {
	t.Helper()
	for _, guest := range host.QEMUs() {
		if guest.UUID == uuid {
			if err := guest.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("%s has no process of %s", host.Name, uuid)
}

func openWith(t *testing.T, host *lab.Host, options libvirt.Options) *libvirt.Hypervisor {
	t.Helper()
	h := libvirt.OpenWith("qemu:///system?socket="+host.Path("/run/libvirt/libvirt-sock"), hclog.NewNullLogger(), options)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		up, err := h.Connected()
		if up {
			return h
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func TestSuite(t *testing.T) {
	l, bench := raise(t)
	before := volumes(t, l)
	for _, c := range hypervisortest.Cases() {
		t.Run(c.Name, func(t *testing.T) { c.Run(t, bench) })
	}
	if after := volumes(t, l); !slices.Equal(before, after) {
		t.Errorf("left in the pools: %v, before there were %v", after, before)
	}
}

// volumes are all that lies in any pool of the lab.
func volumes(t *testing.T, l *lab.Lab) []string {
	t.Helper()
	all, err := l.Volumes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, strings.Compare)
	return all
}
