package watchdog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"berth/agent/hypervisor"
)

// slept is for how long the host has been asleep: one of the kernel's clocks counts that, the other does not.
func slept() time.Duration {
	var all, awake unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &all) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &awake) != nil {
		return 0
	}
	// The two are not read at the same moment.
	return max(time.Duration(all.Nano()-awake.Nano()).Round(100*time.Millisecond), 0)
}

// Guests are those of a host that has slept for too long.
type Guests interface {
	// Pause pauses all that run with Berth's mark, and Resume lets run what Pause has paused.
	Pause(ctx context.Context)
	Resume(ctx context.Context)
}

// Sleepers are the guests of a hypervisor. It is safe for concurrent use.
type Sleepers struct {
	Hypervisor hypervisor.Hypervisor
	Logger     hclog.Logger

	mu     sync.Mutex
	paused map[string]uint64 // epochs by UUID
}

// pauseLimit bounds each call.
const pauseLimit = 10 * time.Second

// Pause implements Guests.
func (s *Sleepers) Pause(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused == nil {
		s.paused = map[string]uint64{}
	}
	ctx, cancel := context.WithTimeout(ctx, pauseLimit)
	defer cancel()
	domains, err := s.Hypervisor.Domains(ctx)
	if err != nil {
		s.Logger.Error("the guests could not be paused", "error", err)
		return
	}
	for i := range domains {
		one := &domains[i]
		if !one.Managed || one.State != hypervisor.Running {
			continue
		}
		if err := s.Hypervisor.Suspend(ctx, one.UUID, one.Epoch); err != nil {
			s.Logger.Error("a guest could not be paused", "vm", one.Name, "error", err)
			continue
		}
		s.paused[one.UUID] = one.Epoch
	}
}

// Resume implements Guests. A guest that has another epoch by now, or is gone, is left alone.
func (s *Sleepers) Resume(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, pauseLimit)
	defer cancel()
	for uuid, epoch := range s.paused {
		if err := s.Hypervisor.Resume(ctx, uuid, epoch); err != nil {
			s.Logger.Error("a guest that was paused could not be resumed", "vm_id", uuid, "error", err)
		}
		delete(s.paused, uuid)
	}
}

// Host is what tells whether a watchdog resets a host whatever becomes of it.
type Host struct {
	Virtual bool   // it is a virtual machine
	Driver  string // how the watchdog's driver calls itself; empty: not known
}

// Usable refuses a watchdog that stands still with its host: a virtual machine that is paused and goes on later has not been reset, and
// neither has a host whose kernel, which is softdog's only clock, has hung. The error says what lets it be used all the same.
func Usable(host Host) error {
	const although = "its silence proves nothing; another device is set with 'berth node set NODE --fence command', and " +
		"watchdog_unsafe: true in agent.yaml counts on it all the same"
	switch {
	case host.Virtual:
		return fmt.Errorf("this host is a virtual machine, whose watchdog stands still while it is paused: %s", although)
	case host.Driver == "Software Watchdog":
		return fmt.Errorf("softdog is a timer of the kernel that it is to watch: %s", although)
	}
	return nil
}

// HostOf reads what Usable has to know about the host and a device, below the given /proc and /sys.
func HostOf(proc, sys, device string) Host {
	var host Host
	text, _ := os.ReadFile(filepath.Join(proc, "cpuinfo"))
	for line := range strings.Lines(string(text)) {
		if name, flags, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "flags" {
			host.Virtual = strings.Contains(" "+strings.TrimSpace(flags)+" ", " hypervisor ")
			break
		}
	}
	name := filepath.Base(device)
	if name == "watchdog" {
		name = "watchdog0"
	}
	driver, _ := os.ReadFile(filepath.Join(sys, "class/watchdog", name, "identity"))
	host.Driver = strings.TrimSpace(string(driver))
	return host
}
