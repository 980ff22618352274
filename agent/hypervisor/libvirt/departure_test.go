package libvirt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/departures"
	"berth/agent/hypervisor/processes"
)

const guestUUID = "11111111-2222-4333-8444-555555555555"

func openTestDriver(t *testing.T) *Hypervisor {
	t.Helper()
	h := open(t, "test:///default")
	await(t, "connected", func() bool { up, _ := h.Connected(); return up })
	return h
}

// standIn starts a process that has the UUID on its command line, and writes its number down as libvirt does.
func standIn(t *testing.T, dir, name string) *exec.Cmd {
	t.Helper()
	guest := exec.Command("sleep", "1000")
	guest.Args[0] = guestUUID // what it is called does not matter to it
	if err := guest.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(guest) })
	await(t, "the stand-in's command line", func() bool { // the kernel sets it a moment after Start has returned
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", guest.Process.Pid))
		return bytes.Contains(line, []byte(guestUUID))
	})
	if err := os.WriteFile(filepath.Join(dir, name+".pid"), []byte(strconv.Itoa(guest.Process.Pid)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return guest
}

func end(guest *exec.Cmd) {
	_ = guest.Process.Kill()
	_ = guest.Wait()
}

var (
	stopsForSwitchover = libvirtgo.DomainEventLifecycle{
		Event: libvirtgo.DOMAIN_EVENT_SUSPENDED, Detail: int(libvirtgo.DOMAIN_EVENT_SUSPENDED_MIGRATED),
	}
	isPaused = libvirtgo.DomainEventLifecycle{
		Event: libvirtgo.DOMAIN_EVENT_SUSPENDED, Detail: int(libvirtgo.DOMAIN_EVENT_SUSPENDED_PAUSED),
	}
	runsOn = libvirtgo.DomainEventLifecycle{
		Event: libvirtgo.DOMAIN_EVENT_RESUMED, Detail: int(libvirtgo.DOMAIN_EVENT_RESUMED_MIGRATED),
	}
)

// The end of its process alone does not show that a guest was handed over: it has to have stood still since the switchover.
func TestDepartureByTheEndOfTheProcess(t *testing.T) {
	for name, c := range map[string]struct {
		told   []libvirtgo.DomainEventLifecycle
		missed bool // events may have been, after these
		left   bool
	}{
		"it stood still":               {told: []libvirtgo.DomainEventLifecycle{stopsForSwitchover}, left: true},
		"again, after another attempt": {told: []libvirtgo.DomainEventLifecycle{stopsForSwitchover, runsOn, stopsForSwitchover}, left: true},
		"nothing was told":             {},
		"somebody had paused it":       {told: []libvirtgo.DomainEventLifecycle{isPaused}},
		"it ran on":                    {told: []libvirtgo.DomainEventLifecycle{stopsForSwitchover, runsOn}},
		"it may have run on":           {told: []libvirtgo.DomainEventLifecycle{stopsForSwitchover}, missed: true},
	} {
		t.Run(name, func(t *testing.T) {
			h, dir := openTestDriver(t), t.TempDir()
			guest := standIn(t, dir, "web-1")
			life, err := processes.FindLife(dir, "web-1", guestUUID)
			if err != nil {
				t.Fatal(err)
			}
			defer life.Close()
			one := departures.New()
			h.departures.Begin(guestUUID, one)
			for i := range c.told {
				h.departures.Saw("another", stoppedForMove(&runsOn))
				h.departures.Saw(guestUUID, stoppedForMove(&c.told[i]))
			}
			if c.missed {
				h.departures.Missed()
			}
			if h.departures.Gone(guestUUID) {
				t.Error("it has left while its process lives")
			}
			end(guest)
			if left := h.awaitDeparture(guestUUID, life); left != c.left || one.HasLeft() != c.left || h.departures.Gone(guestUUID) != c.left {
				t.Errorf("it has left: %t, %t, %t; want %t", left, one.HasLeft(), h.departures.Gone(guestUUID), c.left)
			}
			domain, lookErr := h.Lookup(t.Context(), guestUUID)
			_, jobErr := h.Job(t.Context(), guestUUID, true)
			if c.left && (lookErr != nil || domain.State != hypervisor.Absent || !domain.JobActive || !errors.Is(jobErr, hypervisor.ErrNotFound)) {
				t.Errorf("libvirtd is asked, and it has left: %+v, %v, %v", domain, lookErr, jobErr)
			}
			h.departures.End(guestUUID, departures.New())
			if h.departures.Gone(guestUUID) != c.left {
				t.Error("another migration's end has ended this one")
			}
			h.departures.End(guestUUID, one)
			if h.departures.Gone(guestUUID) {
				t.Error("libvirtd has answered, and is not asked")
			}
		})
	}
}

// What holds the guest open here executes still, so nobody may let it run elsewhere.
func TestNoDepartureWhileTheProcessLives(t *testing.T) {
	h, dir := openTestDriver(t), t.TempDir()
	standIn(t, dir, "web-1")
	life, err := processes.FindLife(dir, "web-1", guestUUID)
	if err != nil {
		t.Fatal(err)
	}
	h.departures.Begin(guestUUID, departures.New())
	h.departures.Saw(guestUUID, stoppedForMove(&stopsForSwitchover))
	left := make(chan bool)
	go func() { left <- h.awaitDeparture(guestUUID, life) }()
	life.Close() // libvirtd has answered, that it failed
	if <-left || h.departures.Gone(guestUUID) {
		t.Error("it has left, and its process lives")
	}
}

func TestNoDepartureWhenLibvirtIsAway(t *testing.T) {
	h, dir := openTestDriver(t), t.TempDir()
	guest := standIn(t, dir, "web-1")
	life, err := processes.FindLife(dir, "web-1", guestUUID)
	if err != nil {
		t.Fatal(err)
	}
	defer life.Close()
	h.departures.Begin(guestUUID, departures.New())
	h.departures.Saw(guestUUID, stoppedForMove(&stopsForSwitchover))
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	end(guest)
	if h.awaitDeparture(guestUUID, life) {
		t.Error("nobody could tell whether it ran on, and it has left")
	}
}

func TestLifeIsTheGuests(t *testing.T) {
	dir := t.TempDir()
	guest := standIn(t, dir, "web-1")
	if _, err := processes.FindLife(dir, "web-1", "22222222-2222-4333-8444-555555555555"); !errors.Is(err, processes.ErrNotHere) {
		t.Errorf("somebody else's process was taken for the guest's: %v", err)
	}
	if _, err := processes.FindLife(dir, "web-2", guestUUID); !errors.Is(err, processes.ErrNotHere) {
		t.Errorf("a guest without a process: %v", err)
	}
	life, err := processes.FindLife(dir, "web-1", guestUUID)
	if err != nil {
		t.Fatal(err)
	}
	defer life.Close()
	end(guest)
	if err := life.AwaitEnd(); err != nil {
		t.Error(err)
	}
	if _, err := processes.FindLife(dir, "web-1", guestUUID); !errors.Is(err, processes.ErrNotHere) {
		t.Errorf("of a process that has ended: %v", err)
	}
}
