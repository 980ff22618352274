package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// lostReply is a migration whose target finishes it, and whose source never hears of that.
type lostReply struct {
	name   string
	disk   bool     // the guest has a disk that both hosts see
	flags  []string // of the migration
	source string   // the state of the source's copy in the end
	target string
	says   string // the source's libvirtd, of why its copy does not run
}

// What libvirt alone does when the target of a migration has finished it and its answer is lost: the source, which knows
// nothing, lets its own copy run again. Whether the guest then runs twice depends on who else stands in the way. If this
// test fails, libvirt behaves otherwise than what Berth's hand-over is built for.
func TestLibvirtRunsAGuestTwiceWhenTheFinishReplyIsLost(t *testing.T) {
	l := raise(t, Options{Hosts: 2})
	l.loseReplies(t,
		lostReply{name: "bare", source: "running", target: "running"},
		lostReply{name: "imagelock", disk: true, source: "paused", target: "running", says: `Failed to get "write" lock`},
		lostReply{name: "strict", flags: []string{"--suspend"}, source: "running", target: "paused"},
		lostReply{name: "strictimagelock", disk: true, flags: []string{"--suspend"}, source: "running", target: "paused"},
	)
	for _, host := range l.Hosts {
		if err := host.lockDisks(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	l.loseReplies(t,
		lostReply{name: "lockd", disk: true, source: "paused", target: "running", says: "Lockspace resource"},
		lostReply{name: "strictlockd", disk: true, flags: []string{"--suspend"}, source: "running", target: "paused"},
	)
}

// loseReplies moves a guest in each of these ways and compares what becomes of it.
func (l *Lab) loseReplies(t *testing.T, cases ...lostReply) {
	ctx, source, target := t.Context(), l.Hosts[0], l.Hosts[1]
	watch := l.Observe()
	defer watch.Stop()
	before := map[string]Tick{}
	for _, c := range cases {
		var disk string
		if c.disk {
			disk = l.sharedDisk(t, c.name)
		}
		if _, err := source.startGuest(ctx, c.name, "", "<devices>", "<devices>"+disk); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range cases {
		tick, err := l.awaitTick(ctx, c.name, Tick{})
		if err != nil {
			t.Fatal(err)
		}
		before[c.name] = tick
	}

	// A copy of 1 MiB/s takes as long as is needed to bring them all that far.
	var migrations errgroup.Group
	for _, c := range cases {
		migrations.Go(func() error {
			flags := append([]string{"migrate", "--live", "--p2p", "--tls", "--unsafe", "--bandwidth", "1"}, c.flags...)
			_, err := source.Virsh(ctx, append(flags, c.name, "qemu+tls://node2/system")...)
			if err == nil {
				return fmt.Errorf("the migration of %s ended well, with its answer lost", c.name)
			}
			t.Logf("%s: %v", c.name, err)
			return nil
		})
	}
	for _, c := range cases {
		err := await(ctx, "the copy of "+c.name, 60*time.Second, func() (bool, error) {
			m, err := source.Migration(c.name)
			return err == nil && m.Status == "active" && m.Sent > 0, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	// The next thing that the source asks is Finish. That arrives, and its answer does not.
	if err := l.HoldAnswers(ctx, target, source); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if _, err := source.Virsh(ctx, "migrate-setspeed", c.name, "64"); err != nil {
			t.Fatal(err)
		}
	}
	if err := migrations.Wait(); err != nil {
		t.Error(err)
	}
	if err := l.Heal(ctx); err != nil {
		t.Fatal(err)
	}

	for _, c := range cases {
		for host, want := range map[*Host]string{source: c.source, target: c.target} {
			state, err := host.Virsh(ctx, "domstate", "--reason", c.name)
			if err != nil || !strings.HasPrefix(state, want) {
				t.Errorf("%s: %s shows %q (%v), want it %s", c.name, host.Name, strings.TrimSpace(state), err, want)
			}
			t.Logf("%s: %s shows it %s", c.name, host.Name, strings.TrimSpace(state))
		}
		if !strings.Contains(source.Log(Libvirtd), c.says) {
			t.Errorf("%s: the source's libvirtd does not say %q%s", c.name, c.says, source.tail(Libvirtd))
		}
		running := 1
		if c.source == c.target {
			running = 2
		}
		err := await(ctx, fmt.Sprint(running, " runs of ", c.name), 10*time.Second, func() (bool, error) {
			return watch.Running(c.name) == running, nil
		})
		if err != nil {
			t.Errorf("%v: the observer saw %+v", err, watch.Runs())
		}
		twice := slices.ContainsFunc(watch.Overlaps(), func(o Overlap) bool { return o.First.Name == c.name })
		if twice != (running == 2) {
			t.Errorf("%s: the observer saw it run twice: %t, of %v", c.name, twice, watch.Overlaps())
		}
		after, err := l.awaitTick(ctx, c.name, before[c.name])
		if err == nil && running == 1 {
			err = after.After(before[c.name])
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, host := range l.Hosts {
			if _, err := host.Virsh(ctx, "destroy", c.name); err != nil {
				t.Error(err)
			}
		}
	}
}

// sharedDisk makes an empty disk that every host sees, and is its device.
func (l *Lab) sharedDisk(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(SharedDir, "images", name+".raw")
	if _, err := l.Hosts[0].Exec(t.Context(), "qemu-img", "create", "-q", "-f", "raw", path, "8M"); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(
		`<disk type="file" device="disk"><driver name="qemu" type="raw"/><source file="%s"/><target dev="vda" bus="virtio"/></disk>`,
		path,
	)
}

// lockDisks makes libvirtd take a lock on each disk of its guests. The locks lie in a directory that all hosts see, and are
// the kernel's, so that they hold across hosts as they would on a shared file system.
func (h *Host) lockDisks(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Join(h.lab.Dir, "shared/locks"), 0o700); err != nil {
		return err
	}
	if err := h.write("etc/libvirt/qemu.conf", qemuConf+"lock_manager = \"lockd\"\n"); err != nil {
		return err
	}
	const space = "auto_disk_leases = 1\nrequire_lease_for_disks = 1\nfile_lockspace_dir = \"" + SharedDir + "/locks\"\n"
	if err := h.write("etc/libvirt/qemu-lockd.conf", space); err != nil {
		return err
	}
	if err := h.Start(ctx, "virtlockd", "virtlockd"); err != nil {
		return err
	}
	return h.RestartLibvirtd(ctx)
}
