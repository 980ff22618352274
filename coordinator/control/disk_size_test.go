package control

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/control/volumes"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/shared/units"
)

// withDisk starts a VM with a disk of 10 GiB in a pool, whose guest shows it with a size, at a level at which changes beside Berth are
// followed.
func (w *world) withDisk(pool string, size units.Bytes) (vm model.VM, shown model.Device) {
	w.Helper()
	w.store(state.RaiseLevel(state.FeatureLevel))
	w.put(pools()...)
	vm = w.began(pool)
	made := w.disk("web1-root").Volume
	settings, _ := w.Store.Snapshot().Resource(made.Pool)
	shown = model.Device{
		Kind: "disk", Key: "vda", Format: "qcow2", Capacity: size,
		Source: model.DiskSource{Pool: model.PoolSettingsOf(&settings).Source, Volume: made.Name},
	}
	w.runsWith(vm, shown)
	return vm, shown
}

// eventOf is the text of the last event of a kind.
func (w *world) eventOf(kind string) string {
	told := w.told(kind)
	if len(told) == 0 {
		return ""
	}
	return told[len(told)-1].Message
}

// A disk that somebody has made larger with virsh has that size in its record as soon as its node tells, and one that was made smaller
// keeps the size of its record.
func TestTheRecordHasTheSizeThatADiskHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm, shown := w.withDisk("p-wide", 10*units.GiB)
		before := w.guest(vm.ID)
		for _, c := range []struct{ told, want units.Bytes }{
			{10 * units.GiB, 10 * units.GiB},
			{0, 10 * units.GiB},
			{30 * units.GiB, 30 * units.GiB},
			{5 * units.GiB, 30 * units.GiB},
			{30 * units.GiB, 30 * units.GiB},
		} {
			shown.Capacity = c.told
			w.changedTo(vm, shown)
			if disk := w.disk("web1-root"); disk.Volume.Capacity != c.want || estate.SizeWanted(&disk) != c.want {
				t.Errorf("told %v, its record has %v and asks for %v, want %v", c.told, disk.Volume.Capacity, estate.SizeWanted(&disk), c.want)
			}
			if small := w.ShrunkVMs(); (len(small) == 1 && small[0] == vm.ID) != (c.told > 0 && c.told < c.want) || len(small) > 1 {
				t.Errorf("told %v, smaller than in their records are disks of %v", c.told, small)
			}
		}
		told := w.told("disk.changed-beside")
		if len(told) != 1 ||
			told[0].Subject != "disk/web1-root" || !strings.Contains(told[0].Message, "web1, has 30 GiB of it, and its record had 10 GiB") {
			t.Errorf("told are %+v", told)
		}
		if after := w.guest(vm.ID); after.Drift != nil || after.Spec.VCPUs != before.Spec.VCPUs || after.Condition.Text != "" {
			t.Errorf("the VM is %+v", after)
		}
	})
}

// A copied move makes the new volume as large as the disk is, also if nobody has told that yet, and is not begun with one that is smaller
// than its record says.
func TestACopiedMoveGoesByTheSizeThatADiskHas(t *testing.T) {
	for name, c := range map[string]struct {
		is     units.Bytes
		silent bool // the node has told that before, and does not answer now
		want   units.Bytes
	}{
		"as recorded": {10 * units.GiB, false, 10 * units.GiB}, "larger": {40 * units.GiB, false, 40 * units.GiB},
		"larger by a sector": {10*units.GiB + 512, false, 10*units.GiB + 512}, "told before": {40 * units.GiB, true, 40 * units.GiB},
		"smaller": {5 * units.GiB, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, obedient)
				defer w.lose()
				vm, _ := w.withDisk("p-fast", c.is)
				if c.silent {
					w.agents.task = func(_ string, task lead.Task) error {
						if task.Sizes == nil {
							return nil
						}
						return &lead.TaskError{Code: operation.Busy, Message: "it is busy"}
					}
				}
				move := lifecycle.MigrateVM{VM: vm.ID, Node: other(vm.Holder), CopyStorage: true}
				moved, err := w.MigrateVM(t.Context(), move)
				if c.want == 0 {
					refusedAs(t, "a copy", err, lead.Conflict, "has made disk web1-root smaller beside Berth: it has 5 GiB, and had 10 GiB")
					if orders := w.agents.ordered(operation.ActPrepare); len(orders) > 0 {
						t.Errorf("ordered all the same: %+v", orders)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				made := w.agents.ordered(operation.ActPrepare)[0].Volumes
				if len(made) != 1 || made[0].Capacity != c.want || w.operation(moved.Operation.ID).Result != operation.Done {
					t.Errorf("made is %+v by %+v", made, w.operation(moved.Operation.ID))
				}
				if disk := w.disk("web1-root"); disk.Volume.Capacity != c.want || !slices.Equal(disk.Volume.Nodes, []string{other(vm.Holder)}) {
					t.Errorf("its disk is %+v", disk.Volume)
				}
			})
		})
	}
}

// To grow a disk goes from the size that it has. One that was made smaller becomes as large as its record says, and what is between is
// refused with both figures.
func TestADiskThatWasResizedBesideBerthGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm, shown := w.withDisk("p-wide", 30*units.GiB)
		grow := func(size units.Bytes) error {
			_, err := w.GrowDisk(t.Context(), volumes.GrowDisk{Disk: w.disk("web1-root").ID, Size: size})
			return err
		}
		grows := func() (sizes []units.Bytes) {
			for _, done := range w.agents.tasks {
				if done.task.Grow != nil {
					sizes = append(sizes, done.task.Grow.Volume.Capacity)
				}
			}
			return sizes
		}
		refusedAs(t, "to less than it has", grow(20*units.GiB), lead.Invalid, `"web1-root" has 30 GiB already`)
		if err := grow(40 * units.GiB); err != nil || w.disk("web1-root").Volume.Capacity != 40*units.GiB {
			t.Errorf("to more: %v, %+v", err, w.disk("web1-root").Volume)
		}
		shown.Capacity = 5 * units.GiB
		w.runsWith(vm, shown)
		refusedAs(t, "between", grow(20*units.GiB), lead.Conflict, "has 40 GiB by its record, and 5 GiB as its guest runs")
		if err := grow(40 * units.GiB); err != nil || !slices.Equal(grows(), []units.Bytes{40 * units.GiB, 40 * units.GiB}) {
			t.Errorf("to what its record says: %v after growing to %v", err, grows())
		}
		if text := w.eventOf("disk.grown"); text != "from 5 GiB to 40 GiB" {
			t.Errorf("told is %q", text)
		}
	})
}

// Somebody has made the disk of a VM that is off larger than it is to become: its node finds that out.
func TestAStoppedDiskThatIsLargerAlreadyStaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.put(pools()...)
		w.halted("p-wide")
		w.agents.grown = 50 * units.GiB
		disk, err := w.GrowDisk(t.Context(), volumes.GrowDisk{Disk: w.disk("web1-root").ID, Size: 20 * units.GiB})
		if err != nil || disk.Volume.Capacity != 50*units.GiB || estate.SizeWanted(&disk) != 50*units.GiB {
			t.Errorf("%v: %+v that asks for %v", err, disk.Volume, estate.SizeWanted(&disk))
		}
		if text := w.eventOf("disk.grown"); text != "from 10 GiB to 50 GiB: somebody had made it that large beside Berth" {
			t.Errorf("told is %q", text)
		}
	})
}
