// Package hoststat reads what the operating system knows of the node: memory, load, CPU times, what KSM saves, and
// pressure stall information. A reading that fails is an error, never a zero.
package hoststat

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/shirou/gopsutil/v3/common"
	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/load"
	"github.com/shirou/gopsutil/v3/mem"
)

// Reader reads below three roots, /proc, /sys and /etc unless HOST_PROC, HOST_SYS and HOST_ETC say otherwise.
type Reader struct {
	proc, sys, etc string
	pageSize       int64
}

// New makes a reader of this machine.
func New() *Reader {
	root := func(name, otherwise string) string {
		if path := os.Getenv(name); path != "" {
			return path
		}
		return otherwise
	}
	return &Reader{
		proc: root("HOST_PROC", "/proc"), sys: root("HOST_SYS", "/sys"), etc: root("HOST_ETC", "/etc"),
		pageSize: int64(os.Getpagesize()),
	}
}

// At makes a reader of a copy of the three trees, for tests.
func At(root string) *Reader {
	return &Reader{
		proc: filepath.Join(root, "proc"), sys: filepath.Join(root, "sys"), etc: filepath.Join(root, "etc"), pageSize: 4096,
	}
}

// roots tells gopsutil where to look, for one call.
func (r *Reader) roots(ctx context.Context) context.Context {
	return context.WithValue(ctx, common.EnvKey, common.EnvMap{
		common.HostProcEnvKey: r.proc, common.HostSysEnvKey: r.sys, common.HostEtcEnvKey: r.etc,
	})
}

// Memory is physical memory in bytes. Available is what new work can have without swapping.
type Memory struct {
	Total, Free, Available int64
}

// Memory reads /proc/meminfo.
func (r *Reader) Memory(ctx context.Context) (Memory, error) {
	stat, err := mem.VirtualMemoryWithContext(r.roots(ctx))
	if err != nil {
		return Memory{}, fmt.Errorf("read memory: %w", err)
	}
	if stat.Total == 0 || stat.Available == 0 || stat.Available > stat.Total || stat.Free > stat.Total {
		return Memory{}, fmt.Errorf("read memory: %s/meminfo makes no sense: total %d, free %d, available %d bytes",
			r.proc, stat.Total, stat.Free, stat.Available)
	}
	return Memory{Total: int64(stat.Total), Free: int64(stat.Free), Available: int64(stat.Available)}, nil
}

// Load is the load averages over 1, 5 and 15 minutes.
type Load struct {
	Load1, Load5, Load15 float64
}

// Load reads /proc/loadavg.
func (r *Reader) Load(ctx context.Context) (Load, error) {
	stat, err := load.AvgWithContext(r.roots(ctx))
	if err != nil {
		return Load{}, fmt.Errorf("read load: %w", err)
	}
	return Load{stat.Load1, stat.Load5, stat.Load15}, nil
}

// CPUTimes are seconds since boot, summed over all CPUs. They grow; a share is the quotient of two differences.
type CPUTimes struct {
	Busy  float64 // in user, system or interrupts; guests are user
	Steal float64 // ready, but the hypervisor below gave the CPU to somebody else
	Total float64 // of all, idle included
}

// CPUTimes reads /proc/stat.
func (r *Reader) CPUTimes(ctx context.Context) (CPUTimes, error) {
	all, err := cpu.TimesWithContext(r.roots(ctx), false)
	if err != nil {
		return CPUTimes{}, fmt.Errorf("read CPU times: %w", err)
	}
	if len(all) != 1 {
		return CPUTimes{}, fmt.Errorf("read CPU times: %s/stat has no line for all CPUs", r.proc)
	}
	t := all[0]
	busy := t.User + t.Nice + t.System + t.Irq + t.Softirq
	return CPUTimes{Busy: busy, Steal: t.Steal, Total: busy + t.Steal + t.Idle + t.Iowait}, nil
}

// KSMSaved is the memory in bytes that kernel samepage merging saves now. All of it can be needed at any moment.
func (r *Reader) KSMSaved() (int64, error) {
	path := filepath.Join(r.sys, "kernel/mm/ksm/pages_sharing")
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("read KSM: %w", err)
	}
	pages, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || pages < 0 {
		return 0, fmt.Errorf("read KSM: %s holds %q", path, text)
	}
	return pages * r.pageSize, nil
}

// Pressure is the share of the last 10 s, 0 to 100, in which some or all work waited for a resource.
type Pressure struct {
	Some, Full float64
}

// Pressure reads one of cpu, memory and io. It is nil where the kernel does not measure it.
func (r *Reader) Pressure(resource string) (*Pressure, error) {
	text, err := os.ReadFile(filepath.Join(r.proc, "pressure", resource))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EOPNOTSUPP) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read pressure: %w", err)
	}
	var pressure Pressure
	if pressure.Some, err = avg10(string(text), "some"); err != nil {
		return nil, fmt.Errorf("read %s pressure: %w", resource, err)
	}
	// Older kernels have no second line for the CPU, because somebody always runs there.
	if strings.Contains(string(text), "full ") {
		if pressure.Full, err = avg10(string(text), "full"); err != nil {
			return nil, fmt.Errorf("read %s pressure: %w", resource, err)
		}
	}
	return &pressure, nil
}

func avg10(text, kind string) (float64, error) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != kind {
			continue
		}
		number, found := strings.CutPrefix(fields[1], "avg10=")
		if !found {
			break
		}
		return strconv.ParseFloat(number, 64)
	}
	return 0, fmt.Errorf("no avg10 in %q", text)
}

// BootID changes with every boot of the node.
func (r *Reader) BootID() (string, error) {
	return r.word(filepath.Join(r.proc, "sys/kernel/random/boot_id"), "boot ID")
}

// MachineID stays with the installed system.
func (r *Reader) MachineID() (string, error) {
	return r.word(filepath.Join(r.etc, "machine-id"), "machine ID")
}

func (r *Reader) word(path, what string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the %s: %w", what, err)
	}
	word := strings.TrimSpace(string(text))
	if word == "" {
		return "", fmt.Errorf("read the %s: %s is empty", what, path)
	}
	return word, nil
}
