package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"berth/agent/hostpki"
	"berth/shared/units"
)

// Host is a hypervisor: a machine with libvirtd, QEMU and, when Berth runs in the lab, an agent.
type Host struct{ *Machine }

// Names of the services on a host, for Machine.Kill and its kind.
const (
	Libvirtd    = "libvirtd"
	Agent       = "berth-agent"
	StatusFiles = "berth-status-files"
)

// configure writes what libvirtd and QEMU on this host read.
func (h *Host) configure(shape Shape) error {
	if err := h.writeShape(shape); err != nil {
		return err
	}
	files := map[string]string{
		"etc/libvirt/libvirtd.conf":         fmt.Sprintf(libvirtdConf, randomUUID()),
		"etc/libvirt/qemu.conf":             qemuConf,
		"etc/libvirt/qemu/networks/lab.xml": fmt.Sprintf(networkXML, randomUUID(), guestBridge),
		"etc/libvirt/storage/default.xml":   fmt.Sprintf(poolXML, "default", randomUUID(), "/var/lib/libvirt/images"),
		"etc/libvirt/storage/shared.xml":    fmt.Sprintf(poolXML, "shared", randomUUID(), SharedPoolDir),
		"etc/libvirt/storage/local.xml":     fmt.Sprintf(poolXML, "local", randomUUID(), LocalPoolDir),
	}
	for name, text := range files {
		if err := h.write(name, text); err != nil {
			return err
		}
	}
	for _, autostart := range []string{"qemu/networks/lab.xml", "storage/default.xml", "storage/shared.xml", "storage/local.xml"} {
		link := filepath.Join(h.dir(), "etc/libvirt", filepath.Dir(autostart), "autostart", filepath.Base(autostart))
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			return err
		}
		if err := os.Symlink(filepath.Join("/etc/libvirt", autostart), link); err != nil {
			return err
		}
	}
	return nil
}

// StartLibvirtd starts libvirtd and returns when it answers.
func (h *Host) StartLibvirtd(ctx context.Context) error {
	command := []string{"libvirtd"}
	if _, err := os.Stat(h.Path(hostpki.ControlCertificate)); err == nil {
		command = append(command, "--listen") // without certificates it would not start
	}
	if err := h.Start(ctx, Libvirtd, command...); err != nil {
		return err
	}
	return await(ctx, "libvirtd on "+h.Name, time.Minute, func() (bool, error) {
		if h.Pid(Libvirtd) == 0 {
			return true, fmt.Errorf("libvirtd on %s has ended%s", h.Name, h.tail(Libvirtd))
		}
		if _, err := os.Stat(h.Path("/run/libvirt/libvirt-sock")); err != nil {
			return false, err
		}
		_, err := h.Virsh(ctx, "version")
		return err == nil, err
	})
}

// RestartLibvirtd ends libvirtd in an orderly way and starts it again. Guests run on.
func (h *Host) RestartLibvirtd(ctx context.Context) error {
	if err := h.Stop(Libvirtd); err != nil {
		return err
	}
	return h.StartLibvirtd(ctx)
}

// Forget restarts libvirtd in a way that it does not know a guest any more: what it has written down of the guest is gone, as after
// a failed write. The guest's process runs on.
func (h *Host) Forget(ctx context.Context, guest string) error {
	if err := h.Stop(Libvirtd); err != nil {
		return err
	}
	if err := os.Remove(h.Path("/run/libvirt/qemu/" + guest + ".xml")); err != nil {
		return err
	}
	return h.StartLibvirtd(ctx)
}

// Virsh runs virsh against this host's libvirtd.
func (h *Host) Virsh(ctx context.Context, args ...string) (string, error) {
	return h.Exec(ctx, append([]string{"virsh", "-q", "-c", "qemu:///system"}, args...)...)
}

// SetMemory changes what the host believes to have and to lose to other than guests, and waits until it does.
func (h *Host) SetMemory(ctx context.Context, total, reserve units.Bytes) error {
	shape, err := h.Shape()
	if err != nil {
		return err
	}
	shape.Memory, shape.Reserve = total, reserve
	return h.reshape(ctx, shape)
}

// SetLoad adds to the host's load averages, from now on, and waits until it shows.
func (h *Host) SetLoad(ctx context.Context, load float64) error {
	shape, err := h.Shape()
	if err != nil {
		return err
	}
	shape.Load = load
	return h.reshape(ctx, shape)
}

// Shape is what the host believes about itself.
func (h *Host) Shape() (Shape, error) {
	var shape Shape
	text, err := os.ReadFile(filepath.Join(h.dir(), shapeFile))
	if err != nil {
		return shape, err
	}
	return shape, json.Unmarshal(text, &shape)
}

// reshape changes the figures and waits until the host's init has taken them up.
func (h *Host) reshape(ctx context.Context, shape Shape) error {
	if err := h.writeShape(shape); err != nil {
		return err
	}
	written := time.Now()
	return await(ctx, "the figures of "+h.Name, 10*shapePeriod, func() (bool, error) {
		info, err := os.Stat(h.Path("/proc/loadavg"))
		if err != nil {
			return false, err
		}
		return info.ModTime().After(written.Add(shapePeriod / 2)), nil
	})
}

// writeShape replaces the file at once, so that the init never reads half of it.
func (h *Host) writeShape(shape Shape) error {
	text, err := json.Marshal(shape)
	if err != nil {
		return err
	}
	if err := h.write(shapeFile+".new", string(text)); err != nil {
		return err
	}
	path := filepath.Join(h.dir(), shapeFile)
	return os.Rename(path+".new", path)
}

// QEMU is a guest's process.
type QEMU struct {
	Name     string
	UUID     string
	PID      int  // as seen from outside
	Incoming bool // it was started to receive a migration

	namespace string
}

// QEMUs lists the guests' processes from the process table, whatever libvirtd knows of them.
func (h *Host) QEMUs() []QEMU {
	first := h.initPid()
	if first == 0 {
		return nil
	}
	namespace, err := pidNamespace(first)
	if err != nil {
		return nil
	}
	// The host's own /proc has a few processes where this machine's has hundreds.
	own := fmt.Sprintf("/proc/%d/root/proc", first)
	entries, _ := os.ReadDir(own)
	var guests []QEMU
	for _, entry := range entries {
		inner, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		args := argumentsIn(filepath.Join(own, entry.Name(), "cmdline"))
		if len(args) == 0 || args[0] != qemuMoved || !slices.Contains(args, "-uuid") {
			continue
		}
		pid := h.known.outer(namespace, inner)
		if pid == 0 {
			continue // it has just ended
		}
		name, _, _ := strings.Cut(after(args, "-name"), ",")
		guests = append(guests, QEMU{
			Name: strings.TrimPrefix(name, "guest="), UUID: after(args, "-uuid"), PID: pid,
			Incoming: slices.Contains(args, "-incoming"), namespace: namespace,
		})
	}
	return guests
}

// after is the argument that follows an option.
func after(args []string, option string) string {
	if i := slices.Index(args, option); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// Signal sends a signal to the guest's process.
func (q QEMU) Signal(signal syscall.Signal) error { return signalIn(q.namespace, q.PID, signal) }

// alive tells whether the process still exists.
func (q QEMU) alive() bool {
	namespace, err := pidNamespace(q.PID)
	return err == nil && namespace == q.namespace
}

// started is when the process began, to the hundredth of a second; the given time if it has ended.
func (q QEMU) started(otherwise time.Time) time.Time {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", q.PID))
	if err != nil {
		return otherwise
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return otherwise
	}
	age := time.Duration(now.Nano()) - time.Duration(statField(text, 22))*time.Second/clockTicks
	return time.Now().Add(-age)
}
