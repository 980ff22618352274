package hypervisor

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/hypervisortest"
	"berth/agent/jobs"
	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

const (
	vmID     = "6e0f5d0a-3b51-4c8e-9d27-5d8f8a3f0003"
	vmName   = "orders"
	rootDisk = "berth-0root.qcow2"
	dataDisk = "berth-0data.qcow2"
	seedDisk = "berth-" + vmID + "-seed.iso"
)

// ordersOf are the jobs of an agent on a host.
func ordersOf(t *testing.T, host hypervisortest.Host) func(step uint32, epoch uint64, change func(*berthv1.Command)) {
	t.Helper()
	work, err := jobs.Open(jobs.Config{
		Journal: filepath.Join(t.TempDir(), "journal.db"), Hypervisor: host.Hypervisor, NodeID: host.URI, VirtType: "qemu",
		Logger: hclog.NewNullLogger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := work.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(step uint32, epoch uint64, change func(*berthv1.Command)) {
		t.Helper()
		order := &berthv1.Command{OperationId: "op", Step: step, Term: 1, Epoch: epoch, VmId: vmID, VmName: vmName}
		change(order)
		work.Do(t.Context(), order)
		select {
		case result := <-work.Results():
			if result.GetOutcome() != berthv1.CommandOutcome_COMMAND_OUTCOME_DONE {
				t.Fatalf("%T: %v", order.GetAction(), result)
			}
		case <-time.After(3 * time.Minute):
			t.Fatalf("%T: no answer", order.GetAction())
		}
	}
}

// tick waits for what the guest says of its disks. Booting in software on a busy machine takes longer than one reading.
func tick(t *testing.T, host *lab.Host) lab.DiskTick {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; {
		said, err := host.ReadDiskTick(t.Context(), vmName)
		if err == nil {
			return said
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// A guest boots from a thin copy of an image, finds its seed, and moves to the other host with what is in its own pool,
// while what is in the shared one stays where it is. Afterwards nothing is left but what it has.
func TestOrdersWithVolumes(t *testing.T) {
	l, bench := raise(t)
	if err := l.MakeDiskImage(t.Context()); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(filepath.Join(l.Dir, "shared", filepath.Base(lab.DiskImage)))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if err := bench.Source.Hypervisor.UploadVolume(t.Context(), "shared", "base.qcow2", info.Size(), file); err != nil {
		t.Fatal(err)
	}
	before := volumes(t, l)
	source, target := ordersOf(t, bench.Source), ordersOf(t, bench.Target)

	root := &berthv1.Volume{
		DiskName: "root", Pool: ownPool, Name: rootDisk, Format: hypervisor.FormatQCOW2, CapacityBytes: diskSize,
		BackingPool: "shared", BackingName: "base.qcow2", BackingFormat: hypervisor.FormatQCOW2,
	}
	data := &berthv1.Volume{
		DiskName: "data", Pool: "shared", Name: dataDisk, Format: hypervisor.FormatQCOW2, CapacityBytes: diskSize, Shared: true,
	}
	seed := &berthv1.Volume{Pool: ownPool, Name: seedDisk, Format: hypervisor.FormatRaw, Seed: true}
	spec := &berthv1.VMSpec{
		MemoryBytes: 192 * mebibyte, Vcpus: 1, UserData: "#cloud-config\n", Machine: "pc", Cpu: "Westmere",
		Disks: []*berthv1.Disk{{Pool: ownPool, Volume: rootDisk, Format: hypervisor.FormatQCOW2}},
	}
	// The guest tells the label of its second disk. So the seed is that one, and the shared disk is on another bus.
	spec.Disks = append(spec.Disks, &berthv1.Disk{Pool: "shared", Volume: dataDisk, Format: hypervisor.FormatQCOW2, Bus: "scsi"})
	source(1, 1, func(c *berthv1.Command) {
		c.Action = &berthv1.Command_Start{Start: &berthv1.StartCommand{Spec: spec, Volumes: []*berthv1.Volume{root, data, seed}}}
	})
	here := tick(t, l.Hosts[0])
	if here.Label != "CIDATA" || here.Size != diskSize || !here.Intact {
		t.Errorf("the guest says %+v", here)
	}

	whole := &berthv1.Volume{DiskName: "root", Pool: ownPool, Name: rootDisk, Format: hypervisor.FormatQCOW2, CapacityBytes: diskSize}
	along := []*berthv1.Volume{whole, seed}
	target(2, 2, func(c *berthv1.Command) {
		c.Action = &berthv1.Command_Prepare{Prepare: &berthv1.PrepareCommand{Volumes: along, Spec: spec}}
	})
	source(3, 1, func(c *berthv1.Command) {
		c.Action = &berthv1.Command_Migrate{Migrate: &berthv1.MigrateCommand{
			TargetUri: bench.Target.URI, TargetNode: "node2", TargetEpoch: 2, CopyStorage: true, From: along, To: along,
		}}
	})
	target(4, 2, func(c *berthv1.Command) { c.Action = &berthv1.Command_Resume{Resume: &berthv1.ResumeCommand{}} })
	there := tick(t, l.Hosts[1])
	if err := there.After(here); err != nil || there.Label != "CIDATA" {
		t.Errorf("after its move the guest says %+v: %v", there, err)
	}
	source(5, 1, func(c *berthv1.Command) {
		c.Action = &berthv1.Command_Clear{Clear: &berthv1.ClearCommand{Volumes: along}}
	})
	tick(t, l.Hosts[1]) // it needs nothing of what was there

	target(6, 2, func(c *berthv1.Command) { c.Action = &berthv1.Command_Stop{Stop: &berthv1.StopCommand{Force: true}} })
	target(7, 2, func(c *berthv1.Command) {
		c.Action = &berthv1.Command_Clear{Clear: &berthv1.ClearCommand{Volumes: append(slices.Clone(along), data)}}
	})
	if after := volumes(t, l); !slices.Equal(before, after) {
		t.Errorf("left in the pools: %v, before there were %v", after, before)
	}
}
