package control

import (
	"errors"
	"fmt"
	"sync/atomic"
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

func TestADiskGrowsAndNeverShrinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.put(pools()...)
		vm := w.began("p-fast")
		disk := w.disk("web1-root")
		grown, err := w.GrowDisk(t.Context(), volumes.GrowDisk{Disk: disk.ID, Size: 20 * units.GiB, RequestID: "g"})
		if err != nil || grown.Volume.Capacity != 20*units.GiB || estate.SizeWanted(&grown) != 20*units.GiB {
			t.Fatal(grown, err)
		}
		task := w.agents.tasks[0]
		if task.node != vm.Holder || task.task.Grow.VM != vm.ID || task.task.Grow.Volume.Capacity != 20*units.GiB {
			t.Errorf("%s did %+v", task.node, task.task.Grow)
		}
		if _, err := w.GrowDisk(
			t.Context(), volumes.GrowDisk{Disk: disk.ID, Size: 20 * units.GiB, RequestID: "g"},
		); err != nil || len(w.agents.tasks) != 1 {
			t.Errorf("again: %v after %d tasks", err, len(w.agents.tasks))
		}
		_, err = w.GrowDisk(t.Context(), volumes.GrowDisk{Disk: disk.ID, Size: 5 * units.GiB})
		refusedAs(t, "smaller", err, lead.Invalid, "never shrinks")
		_, err = w.GrowDisk(t.Context(), volumes.GrowDisk{Disk: disk.ID, Size: 200 * units.GiB})
		refusedAs(t, "larger than its pool", err, lead.Conflict, "pool fast of node")
		_, err = w.GrowDisk(t.Context(), volumes.GrowDisk{Disk: disk.ID, Size: 2 * model.MaxVolume})
		refusedAs(t, "absurd", err, lead.Invalid, "more than a disk can have")
		w.put(model.Resource{ID: "f", Kind: model.KindDisk, Name: "file", Settings: map[string]string{"path": "/srv/x", "format": "raw"}})
		_, err = w.GrowDisk(t.Context(), volumes.GrowDisk{Disk: "f", Size: units.GiB})
		refusedAs(t, "a file", err, lead.Invalid, "/srv/x")
		w.put(model.Resource{ID: "n", Kind: model.KindDisk, Name: "new", Settings: map[string]string{"size": fmt.Sprint(int64(units.GiB))}})
		if grown, err := w.GrowDisk(
			t.Context(), volumes.GrowDisk{Disk: "n", Size: 2 * units.GiB},
		); err != nil || estate.SizeWanted(&grown) != 2*units.GiB || len(w.agents.tasks) != 1 {
			t.Errorf("one that is not made yet: %+v, %v", grown, err)
		}
	})
}

func TestAGrowthThatFailedChangesNothingAndOneInDoubtIsFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var silent atomic.Bool
		w := newWorld(t, func(order operation.Order) *operation.Answer {
			if silent.Load() {
				return nil
			}
			return obedient(order)
		})
		defer w.lose()
		w.put(pools()...)
		w.halted("p-wide")
		disk := w.disk("web1-root")
		grow := func(size units.Bytes) error {
			_, err := w.GrowDisk(t.Context(), volumes.GrowDisk{Disk: disk.ID, Size: size})
			return err
		}
		w.agents.task = func(string, lead.Task) error {
			return &lead.TaskError{Code: "no_space", Message: "the disk is full"}
		}
		refusedAs(t, "refused by the node", grow(20*units.GiB), lead.Conflict, "the disk is full")
		if after := w.disk("web1-root"); estate.SizeWanted(&after) != 10*units.GiB || after.Volume.Capacity != 10*units.GiB {
			t.Errorf("after that: %+v, %+v", after.Settings, after.Volume)
		}
		w.agents.task = func(string, lead.Task) error { return errors.New("the session ended") }
		refusedAs(t, "in doubt", grow(20*units.GiB), lead.Unavailable, "the session ended")
		_, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "web1"})
		refusedAs(t, "a start meanwhile", err, lead.Busy, "is being made larger")
		refusedAs(t, "another size meanwhile", grow(30*units.GiB), lead.Busy, "is being made larger, to 20 GiB")
		w.agents.task = nil
		if err := grow(20 * units.GiB); err != nil {
			t.Fatal(err)
		}
		silent.Store(true)
		w.must(lifecycle.StartVM{Name: "web1"})
		refusedAs(t, "while it starts", grow(30*units.GiB), lead.Busy, "works on VM")
	})
}

// Starts and growths of the same disk exclude each other also when they are asked for at the same moment.
func TestAStartIsDecidedAnewWhenItsDiskChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.put(pools()...)
		w.halted("p-wide")
		done := false
		w.log.before = func(command state.Command) {
			if command.Kind == "start vm" && !done {
				done = true
				disk := w.disk("web1-root")
				disk.Settings["size"] = fmt.Sprint(int64(20 * units.GiB))
				w.put(disk)
			}
		}
		_, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "web1"})
		refusedAs(t, "a start", err, lead.Busy, "is being made larger")
	})
}
