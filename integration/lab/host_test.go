package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"berth/shared/units"
)

// awaitTick waits until a guest made from GuestXML has written a tick later than the given one.
func (l *Lab) awaitTick(ctx context.Context, guest string, than Tick) (Tick, error) {
	var last Tick
	return last, await(ctx, "a tick of "+guest, 90*time.Second, func() (bool, error) {
		ticks, err := l.SerialLog(guest)
		if len(ticks) == 0 || err != nil {
			return false, err
		}
		last = ticks[len(ticks)-1]
		return last.Count > than.Count, nil
	})
}

// The kind of migration that the product does, by hand: peer to peer, TLS on both connections, the guest left paused
// on the target until someone resumes it.
func TestAGuestMigratesLiveOverTLS(t *testing.T) {
	l := raise(t, Options{Hosts: 2})
	source, target := l.Hosts[0], l.Hosts[1]
	watch := l.Observe()
	defer watch.Stop()
	if _, err := source.startGuest(t.Context(), "mover", ""); err != nil {
		t.Fatal(err)
	}
	before, err := l.awaitTick(t.Context(), "mover", Tick{})
	if err != nil {
		t.Fatal(err)
	}

	const to = "qemu+tls://node2/system"
	if _, err := source.Virsh(t.Context(), "migrate", "--live", "--p2p", "mover", to); err == nil {
		t.Fatal("a migration in clear text was not refused")
	}
	begin := time.Now()
	if _, err := source.Virsh(t.Context(), "migrate", "--live", "--p2p", "--tls", "--suspend", "mover", to); err != nil {
		t.Fatal(err)
	}
	t.Logf("migrated in %v", time.Since(begin).Round(time.Millisecond))
	if _, err := source.Virsh(t.Context(), "domstate", "mover"); err == nil {
		t.Error("the source still has the guest")
	}
	if state, err := target.Virsh(t.Context(), "domstate", "mover"); err != nil || strings.TrimSpace(state) != "paused" {
		t.Fatalf("on the target the guest is %q: %v", state, err)
	}
	if running := watch.Running("mover"); running != 0 {
		t.Errorf("between hand-over and resume the guest runs in %d processes", running)
	}
	if _, err := target.Virsh(t.Context(), "resume", "mover"); err != nil {
		t.Fatal(err)
	}
	later, err := l.awaitTick(t.Context(), "mover", before)
	if err != nil {
		t.Fatal(err)
	}
	if err := later.After(before); err != nil {
		t.Error(err)
	}
	where, err := l.HostOf("mover")
	if err != nil || where != target {
		t.Errorf("the guest's process is on %v: %v", where, err)
	}

	watch.Stop()
	runs := watch.Runs()
	if len(runs) != 2 || runs[0].Host != "node1" || runs[1].Host != "node2" || runs[0].To.IsZero() {
		t.Errorf("the observer saw %+v, want a run on node1 and then one on node2", runs)
	}
	if faults, errs := watch.Overlaps(), watch.Errors(); len(faults) != 0 || len(errs) != 0 {
		t.Errorf("the observer saw %v, %v", faults, errs)
	}
}

// libvirt lets one UUID run on two hosts. The observer must not miss it.
func TestTheObserverSeesADoubleRun(t *testing.T) {
	l := raise(t, Options{Hosts: 2})
	watch := l.Observe()
	defer watch.Stop()
	const uuid = "8d3f0c6e-1f0e-4a53-9f4c-3c0f7c0de222"
	for _, host := range l.Hosts {
		if _, err := host.startGuest(t.Context(), "double", "", "</name>", "</name><uuid>"+uuid+"</uuid>"); err != nil {
			t.Fatal(err)
		}
	}
	err := await(t.Context(), "two runs", 10*time.Second, func() (bool, error) { return watch.Running(uuid) == 2, nil })
	if err != nil {
		t.Fatalf("%v, the observer saw %+v %v", err, watch.Runs(), watch.Errors())
	}
	if _, err := l.Hosts[0].Virsh(t.Context(), "suspend", "double"); err != nil {
		t.Fatal(err)
	}
	err = await(t.Context(), "the first to stand still", 5*time.Second, func() (bool, error) { return watch.Running(uuid) == 1, nil })
	if err != nil {
		t.Error(err)
	}
	faults := watch.Overlaps()
	if len(faults) != 1 || faults[0].First.Host != "node1" || faults[0].Second.Host != "node2" || faults[0].Length <= 0 {
		t.Errorf("the observer reports %v", faults)
	}
	if guest, err := l.HostOf("double"); err == nil {
		t.Errorf("a guest with two processes was said to be on %s", guest.Name)
	}
}

func TestAHostShowsTheMemoryAndLoadItWasGiven(t *testing.T) {
	l := raise(t, Options{Hosts: 2, HostMemory: []units.Bytes{8 * units.GiB}, HostReserve: units.GiB})
	host := l.Hosts[0]
	memory := func(host *Host) (total, free units.Bytes) {
		t.Helper()
		text, err := host.Virsh(t.Context(), "nodememstats")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text) {
			var kib units.Bytes
			if _, err := fmt.Sscanf(line, "total : %d", &kib); err == nil {
				total = kib * units.KiB
			}
			if _, err := fmt.Sscanf(line, "free : %d", &kib); err == nil {
				free = kib * units.KiB
			}
		}
		return total, free
	}
	// A QEMU that libvirt starts to ask what it can do takes memory for a moment, too.
	err := await(t.Context(), "8 GiB, of which 7 GiB are free", 10*time.Second, func() (bool, error) {
		total, free := memory(host)
		return total == 8*units.GiB && free == 7*units.GiB, nil
	})
	if err != nil {
		total, free := memory(host)
		t.Errorf("libvirt sees %d bytes, %d free: %v", total, free, err)
	}
	if _, err := host.startGuest(t.Context(), "eater", ""); err != nil {
		t.Fatal(err)
	}
	err = await(t.Context(), "the guest to take memory", 10*time.Second, func() (bool, error) {
		_, free := memory(host)
		return free < 7*units.GiB-50*units.MiB, nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := host.SetMemory(t.Context(), 16*units.GiB, 15*units.GiB); err != nil {
		t.Fatal(err)
	}
	if total, free := memory(host); total != 16*units.GiB || free >= units.GiB {
		t.Errorf("after a change libvirt sees %v, %v free, want 16 GiB, less than 1 GiB free", total, free)
	}
	if err := host.SetLoad(t.Context(), 20); err != nil {
		t.Fatal(err)
	}
	load := func(host *Host) (one float64) {
		t.Helper()
		text, err := host.Exec(t.Context(), "cat", "/proc/loadavg")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(text, &one); err != nil {
			t.Fatal(err)
		}
		return one
	}
	if got := load(host); got < 20 || got > 24 {
		t.Errorf("load is %v, want 20 and a little", got)
	}
	if total, _ := memory(l.Hosts[1]); total != 8*units.GiB || load(l.Hosts[1]) > 4 {
		t.Errorf("the other host has changed: %v, load %v", total, load(l.Hosts[1]))
	}
}

func TestFaultsOfAHost(t *testing.T) {
	l := raise(t, Options{Hosts: 2})
	host, other := l.Hosts[0], l.Hosts[1]
	ctx := t.Context()
	if _, err := host.startGuest(ctx, "survivor", ""); err != nil {
		t.Fatal(err)
	}

	// A paused libvirtd does not answer, a thawed one does.
	if err := host.Pause(Libvirtd); err != nil {
		t.Fatal(err)
	}
	impatient, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	if _, err := host.Virsh(impatient, "list"); err == nil {
		t.Error("a paused libvirtd answers")
	}
	cancel()
	if err := host.Continue(Libvirtd); err != nil {
		t.Fatal(err)
	}
	if _, err := host.Virsh(ctx, "list"); err != nil {
		t.Error(err)
	}

	// Guests outlive libvirtd, and the next one finds them.
	if err := host.Kill(Libvirtd); err != nil {
		t.Fatal(err)
	}
	if guests := host.QEMUs(); len(guests) != 1 {
		t.Errorf("without libvirtd %d guests live", len(guests))
	}
	if err := host.StartLibvirtd(ctx); err != nil {
		t.Fatal(err)
	}
	if state, err := host.Virsh(ctx, "domstate", "survivor"); err != nil || strings.TrimSpace(state) != "running" {
		t.Errorf("the new libvirtd says %q: %v", state, err)
	}

	// Power off ends everything at once; the disk stays, and the machine boots again.
	if _, err := host.Exec(ctx, "sh", "-c", "echo kept > /etc/berth/test; echo kept > /var/lib/berth/test"); err != nil {
		t.Fatal(err)
	}
	guest := host.QEMUs()[0]
	if err := host.PowerOff(); err != nil {
		t.Fatal(err)
	}
	if guest.alive() || host.Running() || host.Pid(Libvirtd) != 0 {
		t.Error("processes outlive the power")
	}
	if _, err := host.Exec(ctx, "true"); !errors.Is(err, ErrPoweredOff) {
		t.Errorf("a command on a dead host: %v", err)
	}
	if err := host.PowerOn(ctx); err != nil {
		t.Fatal(err)
	}
	if err := host.StartLibvirtd(ctx); err != nil {
		t.Fatal(err)
	}
	if text, err := host.Exec(ctx, "cat", "/etc/berth/test", "/var/lib/berth/test"); err != nil || text != "kept\nkept\n" {
		t.Errorf("the disk has %q: %v", text, err)
	}
	if _, err := other.Virsh(ctx, "-c", "qemu+tls://node1/system", "hostname"); err != nil {
		t.Errorf("the host is not reached after its reboot: %v", err)
	}

	// A full disk is full, and can be freed.
	const directory = "/var/lib/berth"
	if err := host.FillDisk(ctx, directory); err == nil {
		t.Fatal("a directory on this machine's own disk was filled")
	}
	if err := host.LimitDisk(ctx, directory, 1<<20); err != nil {
		t.Fatal(err)
	}
	if err := host.FillDisk(ctx, directory); err != nil {
		t.Fatal(err)
	}
	write := []string{"cp", "/var/lib/berth/test", "/var/lib/berth/other"}
	if _, err := host.Exec(ctx, write...); err == nil || !strings.Contains(err.Error(), "No space left") {
		t.Errorf("writing to a full disk: %v", err)
	}
	if text, err := host.Exec(ctx, "cat", "/var/lib/berth/test"); err != nil || text != "kept\n" {
		t.Errorf("what was there before is now %q: %v", text, err)
	}
	if err := host.FreeDisk(directory); err != nil {
		t.Fatal(err)
	}
	if _, err := host.Exec(ctx, write...); err != nil {
		t.Error(err)
	}
}

func TestFaultsOfTheNetwork(t *testing.T) {
	l := raise(t, Options{Hosts: 3})
	a, b, c := l.Hosts[0], l.Hosts[1], l.Hosts[2]
	ctx := t.Context()
	// dial measures a connection, which takes one round trip.
	dial := func(from, to *Host) (time.Duration, error) {
		begin := time.Now()
		_, err := from.Exec(ctx, "timeout", "2", "bash", "-c", "echo >/dev/tcp/"+to.Name+"/16514")
		return time.Since(begin), err
	}
	check := func(what string, from, to *Host, want bool) {
		t.Helper()
		if _, err := dial(from, to); (err == nil) != want {
			t.Errorf("%s: %s reaches %s: %v, want %v (%v)", what, from.Name, to.Name, err == nil, want, err)
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check("at first", a, b, true)

	do(l.Partition(ctx, a.Machine, b.Machine))
	check("partition", a, b, false)
	check("partition", b, a, false)
	check("partition", a, c, true)
	check("partition", c, b, true)
	do(l.Heal(ctx))
	check("healed", a, b, true)

	do(a.CutLink(ctx))
	check("no link", c, a, false)
	do(a.RestoreLink(ctx))
	do(await(ctx, "the link", 10*time.Second, func() (bool, error) {
		_, err := dial(c, a)
		return err == nil, err
	}))

	const delay = 150 * time.Millisecond
	do(a.ShapeLink(ctx, delay, 0))
	check("slow link", b, a, true) // also resolves the addresses
	if took, err := dial(b, a); err != nil || took < 2*delay {
		t.Errorf("a round trip over a slow link took %v: %v", took, err)
	}
	do(l.Cut(ctx, b.Machine, a.Machine))
	check("one-way cut of a slow link", b, a, false)
	do(l.Heal(ctx))
	do(a.ShapeLink(ctx, 0, 1))
	check("a link that loses all", b, a, false)
	do(a.UnshapeLink(ctx))
	check("unshaped", b, a, true)
	// Bulk traffic passes a shaped link whole.
	do(a.ShapeLink(ctx, time.Millisecond, 0))
	do(os.WriteFile(l.Dir+"/shared/bulk", make([]byte, 8<<20), 0o644))
	if _, err := a.Exec(ctx, "true"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.startGuest(ctx, "slow", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Virsh(ctx, "migrate", "--live", "--p2p", "--tls", "slow", "qemu+tls://node2/system"); err != nil {
		t.Errorf("a migration over a shaped link: %v", err)
	}
}

// Berth gives its VMs a console on a pty. The lab reads their ticks from there, and they honour the power button.
func TestTheConsoleAndPowerButtonOfAGuest(t *testing.T) {
	l := raise(t, Options{Hosts: 1})
	host := l.Hosts[0]
	serial := `<serial type="file">
      <source path="` + SharedDir + `/serial/talker.log" append="on"/>
    </serial>`
	if _, err := host.startGuest(t.Context(), "talker", "", serial, `<serial type="pty"/>`); err != nil {
		t.Fatal(err)
	}
	first, err := l.ReadTick(t.Context(), "talker")
	if err != nil {
		t.Fatal(err)
	}
	second, err := l.ReadTick(t.Context(), "talker")
	if err != nil {
		t.Fatal(err)
	}
	if err := second.After(first); err != nil {
		t.Error(err)
	}
	// The guest loads its drivers after its first ticks.
	err = await(t.Context(), "the guest to power off", 20*time.Second, func() (bool, error) {
		_, err := host.Virsh(t.Context(), "shutdown", "talker")
		if len(host.QEMUs()) == 0 {
			return true, nil
		}
		return false, err
	})
	if err != nil {
		t.Error(err)
	}
}
