package model

import (
	"testing"
	"time"
)

func TestWhatIsSaidOfBindings(t *testing.T) {
	since := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	const leave = "shut it down to move it"
	for _, tc := range []struct {
		binding   Binding
		text, out string
	}{
		{Binding{Kind: BoundByHostDevice, What: "pci", Name: "0000:01:00.0"}, "has PCI device 0000:01:00.0 of its node", leave},
		{Binding{Kind: BoundByHostDevice, What: "usb", Name: "bus 1 device 4"}, "has USB device bus 1 device 4 of its node", ""},
		{Binding{Kind: BoundByHostDevice, What: "odd"}, "has device of its node", ""},
		{
			Binding{Kind: BoundByHostDevice, What: "interface", Name: "52:54:00:aa:bb:01"},
			"has the network device behind interface 52:54:00:aa:bb:01 of its node", "",
		},
		{
			Binding{Kind: BoundByFilesystem, What: "virtiofs", Name: "share0"},
			"has virtiofs tag share0, which libvirt does not migrate", "",
		},
		{
			Binding{Kind: BoundBySharedMemory, What: "ivshmem", Name: "shm0"},
			"has shared memory shm0 (ivshmem), which libvirt does not migrate", leave,
		},
		{
			Binding{Kind: BoundByGraphics, What: "3d", Name: "virtio"},
			"has a display with 3D acceleration, which QEMU does not migrate", "",
		},
		{
			Binding{Kind: BoundByGraphics, What: "vhost-user", Name: "virtio"},
			"has a vhost-user display, which QEMU does not migrate", "",
		},
		{
			Binding{Kind: BoundByMedia, What: "cdrom", Name: "sda", Source: DiskSource{Path: "/srv/x.iso"}},
			"has /srv/x.iso in its CD drive sda, and no other node is known to have that",
			"eject it with 'virsh change-media web1 sda --eject', or put it into a pool that is declared as shared",
		},
		{Binding{Kind: BoundByTransient, What: "disk", Name: "vdb"}, "has transient disk vdb, which libvirt does not migrate", ""},
		{Binding{Kind: BoundByCPU, Name: "invtsc"}, "has CPU feature invtsc without a TSC frequency, which QEMU does not migrate", ""},
		{
			Binding{Kind: BoundBySnapshots, Name: "before", Count: 1},
			"has snapshot before, and libvirt migrates no domain that has any",
			"delete each with 'virsh snapshot-delete web1 before', with --metadata if it is an external one",
		},
		{
			Binding{Kind: BoundBySnapshots, Name: "a; reboot", Count: 3},
			"has 3 snapshots (a; reboot ...), and libvirt migrates no domain that has any",
			"delete each with 'virsh snapshot-delete web1 NAME', with --metadata if it is an external one",
		},
		{
			Binding{Kind: BoundByJob, What: "backup", Since: since},
			"has a backup job of somebody else, which runs since 2026-11-22 03:00:00 UTC",
			"wait until it ends, or end it with 'virsh domjobabort web1'",
		},
		{
			Binding{Kind: BoundByBlockJob, What: "copy", Name: "vda", Since: since},
			"has a block copy of disk vda by somebody else, which runs since 2026-11-22 03:00:00 UTC",
			"wait until it ends, or end it with 'virsh blockjob web1 vda --abort'",
		},
		{
			Binding{Kind: BoundByBlockJob, What: "copy", Name: "--all"},
			"has a block copy of disk --all by somebody else, which runs since some time ago",
			"wait until it ends, or end it with 'virsh blockjob web1 NAME --abort'",
		},
		{Binding{Kind: BoundByOther, What: "warp", Name: "w0"}, "has warp w0, which its node's agent says cannot move", ""},
	} {
		if got := tc.binding.Text(); got != tc.text {
			t.Errorf("got %q, want %q", got, tc.text)
		}
		if got := tc.binding.WayOut("web1"); tc.out != "" && got != tc.out {
			t.Errorf("got %q, want %q", got, tc.out)
		}
	}
}

func TestWhatAStopBreaks(t *testing.T) {
	for want, one := range map[string]Binding{
		"what the backup has written is not whole": {Kind: BoundByJob, What: "backup"},
		"the migration does not finish":            {Kind: BoundByJob, What: MigrationJob},
		"the copy of disk vda does not finish":     {Kind: BoundByBlockJob, What: "copy", Name: "vda"},
	} {
		if got := one.Breaks(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
