package jobs

import (
	"strings"
	"testing"

	"berth/agent/hypervisor"
	berthv1 "berth/shared/gen/berth/v1"
)

// withDisk starts the VM with a volume of a pool, of which nobody has seen how its guest ended last.
func withDisk(path string) func(*berthv1.Command) {
	return func(c *berthv1.Command) {
		startOrder(c)
		c.GetStart().Unwatched = true
		c.GetStart().Spec.Disks = []*berthv1.Disk{{Path: path, Format: "qcow2", Bus: "virtio"}}
	}
}

// snapshotted makes a disk, and what is on top of it.
func (b *bench) snapshotted(tops ...string) {
	b.Helper()
	b.node.AddPool("images", 1<<30)
	for _, name := range append([]string{"disk"}, tops...) {
		wanted := hypervisor.NewVolume{Pool: "images", Name: name, Format: hypervisor.FormatQCOW2, CapacityBytes: 1 << 20}
		if name != "disk" {
			wanted.BackingPool, wanted.BackingName, wanted.BackingFormat = "images", "disk", hypervisor.FormatQCOW2
		}
		if err := b.node.CreateVolume(b.Context(), wanted); err != nil {
			b.Fatal(err)
		}
	}
}

const (
	diskFile = "/pools/n1/images/disk"
	snapFile = "/pools/n1/images/snap"
)

// A guest whose end nobody saw is not started from a disk under which somebody has put a snapshot that was written to.
func TestAStartFromUnderASnapshotIsRefused(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.snapshotted("snap")
		b.node.WriteDisk("images", "snap", []byte("news"))
		r := b.do(command("op", 1, 2, withDisk(diskFile)))
		b.want(r, failed, "overlaid", absentState)
		if b.asked("start") || len(r.GetOverlays()) != 1 {
			t.Fatalf("it was started, or nothing is told: %v, %v", b.node.Calls(), r)
		}
		if one := r.GetOverlays()[0]; one.GetTarget() != "vda" || one.GetPath() != diskFile || one.GetOverlay() != snapFile ||
			one.GetFormat() != "qcow2" || !strings.Contains(r.GetError(), "disk vda is "+diskFile+", and "+snapFile+" is on top of it") {
			t.Errorf("%v", r)
		}
		b.want(b.do(command("op-2", 1, 3, withDisk(snapFile))), done_, "", running)
	})
}

// Who does not ask is not kept waiting, what has nothing in it is in nobody's way, and what cannot be told is said.
func TestAStartThatNoSnapshotIsInTheWayOf(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*bench)
		order   func(*berthv1.Command)
		note    string
	}{
		"an empty one": {func(*bench) {}, withDisk(diskFile), ""},
		"its end was seen": {func(b *bench) { b.node.WriteDisk("images", "snap", []byte("news")) }, func(c *berthv1.Command) {
			withDisk(diskFile)(c)
			c.GetStart().Unwatched = false
		}, ""},
		"it was written back": {func(b *bench) {
			b.node.WriteDisk("images", "snap", []byte("news"))
			b.node.WriteDisk("images", "disk", []byte("news"))
		}, withDisk(diskFile), ""},
		"no pool has it": {func(*bench) {}, withDisk("/srv/disk"), "could not be checked: disk vda is in no storage pool"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.snapshotted("snap")
				c.prepare(b)
				r := b.do(command("op", 1, 2, c.order))
				b.want(r, done_, "", running)
				if !strings.Contains(r.GetNote(), c.note) || (c.note == "") != (r.GetNote() == "") {
					t.Errorf("it says %q", r.GetNote())
				}
			})
		})
	}
}
