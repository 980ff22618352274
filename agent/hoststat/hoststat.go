// Package hoststat reads the operating system's side of a node: memory, load, CPU time, pressure and what KSM saves.
//
// A reading that fails is named, never replaced by zero. gopsutil honours HOST_PROC and HOST_SYS, and so do the readings
// that it does not have.
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
	"time"

	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/host"
	"github.com/shirou/gopsutil/v3/load"
	"github.com/shirou/gopsutil/v3/mem"

	"berth/agent/psi"
)

// Sample is one look at the operating system. A nil field could not be read; Errors says why.
type Sample struct {
	At             time.Time
	TotalBytes     *int64
	FreeBytes      *int64
	AvailableBytes *int64 // the kernel's MemAvailable: free plus what it can reclaim without swapping
	KSMSavedBytes  *int64
	Load1          *float64
	Load5          *float64
	Load15         *float64
	CPU            *CPUTimes
	CPUPressure    *psi.Pressure // nil without an error where the kernel has no PSI
	MemoryPressure *psi.Pressure
	IOPressure     *psi.Pressure
	Errors         []ReadingError
}

// CPUTimes are seconds since boot, summed over all CPUs. They only grow.
type CPUTimes struct {
	Total, Idle, Steal float64
}

// ReadingError says which reading failed.
type ReadingError struct {
	Reading string
	Err     error
}

// Identity is what tells this machine and this boot from all others.
type Identity struct {
	HostName  string
	MachineID string // empty when the system has none
	BootID    string

	// Hardware tells the machine from one that has a copy of its system disk. HardwareSource says what it is: SourceProduct, or
	// SourceSystem where the firmware's cannot be read. Both are empty when there is neither.
	Hardware, HardwareSource string
}

// Sources of the identity of a machine.
const (
	SourceProduct = "product UUID" // the firmware's (SMBIOS)
	SourceSystem  = "machine ID"   // the operating system's, which a copied disk has, too
)

// Reader reads the trees under Proc and Sys.
type Reader struct {
	Proc string // normally /proc
	Sys  string // normally /sys
	Run  string // the service's runtime directory, normally /run/berth-agent
}

// New reads the trees that HOST_PROC and HOST_SYS name, as gopsutil does.
func New() *Reader {
	return &Reader{
		Proc: fromEnvironment("HOST_PROC", "/proc"), Sys: fromEnvironment("HOST_SYS", "/sys"),
		Run: fromEnvironment("RUNTIME_DIRECTORY", "/run/berth-agent"),
	}
}

func fromEnvironment(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// hardware is the identity of the machine. Only root may read the firmware's: the service unit has it copied where the agent may.
func (r *Reader) hardware(machineID string) (id, source string) {
	for _, path := range []string{filepath.Join(r.Sys, "class/dmi/id/product_uuid"), filepath.Join(r.Run, "product_uuid")} {
		text, err := os.ReadFile(path)
		id := strings.ToLower(strings.TrimSpace(string(text)))
		if err == nil && strings.Trim(id, "0f-") != "" { // some firmware has none, and says so with these
			return id, SourceProduct
		}
	}
	if machineID == "" {
		return "", ""
	}
	return machineID, SourceSystem
}

// Read takes one sample.
func (r *Reader) Read(ctx context.Context) Sample {
	sample := Sample{At: time.Now()}
	failed := func(reading string, err error) {
		sample.Errors = append(sample.Errors, ReadingError{Reading: reading, Err: err})
	}
	if memory, err := mem.VirtualMemoryWithContext(ctx); err != nil || memory.Total == 0 {
		// The library takes a file that it cannot read for an empty one.
		failed("memory", errors.Join(err, errors.New("meminfo has no total")))
	} else {
		sample.TotalBytes, sample.FreeBytes, sample.AvailableBytes = amount(memory.Total), amount(memory.Free), amount(memory.Available)
	}
	if average, err := load.AvgWithContext(ctx); err != nil {
		failed("load", err)
	} else {
		sample.Load1, sample.Load5, sample.Load15 = &average.Load1, &average.Load5, &average.Load15
	}
	if times, err := cpu.TimesWithContext(ctx, false); err != nil || len(times) != 1 {
		failed("cpu", errors.Join(err, fmt.Errorf("%d totals instead of one", len(times))))
	} else {
		t := times[0]
		// The kernel counts guest time in user time already.
		total := t.User + t.System + t.Idle + t.Nice + t.Iowait + t.Irq + t.Softirq + t.Steal
		sample.CPU = &CPUTimes{Total: total, Idle: t.Idle + t.Iowait, Steal: t.Steal}
	}
	if saved, err := r.ksmSaved(); err != nil {
		failed("ksm", err)
	} else {
		sample.KSMSavedBytes = saved
	}
	for _, pressure := range []struct {
		name string
		into **psi.Pressure
	}{{"cpu", &sample.CPUPressure}, {"memory", &sample.MemoryPressure}, {"io", &sample.IOPressure}} {
		var err error
		if *pressure.into, err = psi.Read(filepath.Join(r.Proc, "pressure", pressure.name)); err != nil {
			failed("pressure."+pressure.name, err)
		}
	}
	return sample
}

// Identity reads who this machine is. A missing machine ID is no error: the caller may have to do without.
func (r *Reader) Identity(context.Context) (Identity, error) {
	name, err := os.Hostname()
	if err != nil {
		return Identity{}, fmt.Errorf("read the host name: %w", err)
	}
	boot, err := os.ReadFile(filepath.Join(r.Proc, "sys/kernel/random/boot_id"))
	if err != nil {
		return Identity{}, fmt.Errorf("read the boot ID: %w", err)
	}
	machine, err := os.ReadFile("/etc/machine-id")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Identity{}, fmt.Errorf("read the machine ID: %w", err)
	}
	is := Identity{HostName: name, MachineID: strings.TrimSpace(string(machine)), BootID: strings.TrimSpace(string(boot))}
	is.Hardware, is.HardwareSource = r.hardware(is.MachineID)
	return is, nil
}

// Uptime is how long the machine is up.
func (r *Reader) Uptime(ctx context.Context) (time.Duration, error) {
	seconds, err := host.UptimeWithContext(ctx)
	return time.Duration(seconds) * time.Second, err
}

// ksmSaved is what page sharing saves now: sites that share, times the page size. 0 where the kernel has no KSM.
func (r *Reader) ksmSaved() (*int64, error) {
	text, err := os.ReadFile(filepath.Join(r.Sys, "kernel/mm/ksm/pages_sharing"))
	if errors.Is(err, fs.ErrNotExist) {
		return amount(0), nil
	}
	if err != nil {
		return nil, err
	}
	pages, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 63)
	if err != nil {
		return nil, err
	}
	return amount(pages * uint64(os.Getpagesize())), nil
}

// Busy is the share of CPU time, 0 to 1, that was neither idle nor stolen between two samples, and the share stolen.
// It reports false when no time has passed.
func Busy(before, after CPUTimes) (busy, steal float64, ok bool) {
	total := after.Total - before.Total
	if total <= 0 {
		return 0, 0, false
	}
	share := func(part float64) float64 { return min(1, max(0, part/total)) }
	idle, stolen := after.Idle-before.Idle, after.Steal-before.Steal
	return share(total - idle - stolen), share(stolen), true
}

func amount(n uint64) *int64 {
	value := int64(n)
	return &value
}
