package control

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// FAULTS.md, W8. While a stranger's domain writes to a disk of a VM the VM is started nowhere: the refusal names the domain, the node and
// the disk. It starts when that has ended.
func TestAStartWaitsForADiskThatAnotherDomainHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer func() { w.lose() }()
		start := lifecycle.StartVM{Name: "db", Caller: "operator/admin", VM: &model.VM{
			Spec: model.VMSpec{Memory: 1 << 30, VCPUs: 1, Disks: []model.Disk{{Path: "/srv/db.qcow2", Format: "qcow2", Bus: "virtio"}}},
		}}
		w.foreign("n2", "aaaaaaaa-0000-4000-8000-000000000001", "stray", func(d *model.Domain) {
			d.Sources = []model.DiskSource{{Path: "/srv/db.qcow2"}}
		})
		_, err := w.StartVM(t.Context(), start)
		var refused *lead.Error
		if !errors.As(err, &refused) || refused.Code != lead.Conflict || !strings.Contains(refused.Message, `domain "stray" on `) ||
			!strings.Contains(refused.Message, `writes to disk /srv/db.qcow2 of VM "db"`) ||
			!strings.Contains(refused.NextStep, "virsh shutdown stray") {
			t.Fatalf("beside a stray with its disk: %v", err)
		}
		w.facts.change("n2", func(f *model.NodeFacts) { f.Domains = nil })
		if _, err := w.StartVM(t.Context(), start); err != nil {
			t.Errorf("when the stray has ended: %v", err)
		}
	})
}

// A start has failed on a node, and its VM went with it, if it was new. The node has not told yet that the domain is gone: the next start,
// on another node, waits for that, and says so where it lasts.
func TestAStartWaitsForWhatAFailedOneHasLeft(t *testing.T) {
	for name, tc := range map[string]struct{ old, tells bool }{
		"a new VM, and the node tells that it is gone": {tells: true}, "a new VM, and it does not": {},
		"an old VM, and the node tells that it is gone": {old: true, tells: true}, "an old VM, and it does not": {old: true},
	} {
		tells := tc.tells
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, func(order operation.Order) *operation.Answer {
				if order.Action != operation.ActStart || order.Node != "n2" {
					return obedient(order)
				}
				return &operation.Answer{
					Outcome: operation.OutcomeFailed, Code: operation.Internal, Error: "QEMU ended",
					Seen: operation.Observation{State: model.DomainAbsent},
				}
			})
			defer func() { w.lose() }()
			start := lifecycle.StartVM{Name: "db", Caller: "operator/admin", Node: "n2", VM: &model.VM{
				Spec: model.VMSpec{Memory: 1 << 30, VCPUs: 1, Disks: []model.Disk{{Path: "/srv/db.qcow2", Format: "qcow2", Bus: "virtio"}}},
			}}
			if tc.old {
				if _, err := w.AddVM(t.Context(), lifecycle.AddVM{Name: "db", Caller: "operator/admin", VM: start.VM}); err != nil {
					t.Fatal(err)
				}
				start.VM = nil
			}
			first, err := w.StartVM(t.Context(), start)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if op := w.operation(first.Operation.ID); op.Result != operation.Failed {
				t.Fatalf("the first start is %s", op.Result)
			}
			w.foreign("n2", first.VM.ID, "db", func(d *model.Domain) {
				d.Managed, d.Operation, d.Sources = true, first.Operation.ID, []model.DiskSource{{Path: "/srv/db.qcow2"}}
			})
			if tells {
				time.AfterFunc(2*time.Second, func() { w.facts.change("n2", func(f *model.NodeFacts) { f.Domains = nil }) })
			}
			start.Node = "n1"
			began := time.Now()
			_, err = w.StartVM(t.Context(), start)
			var refused *lead.Error
			switch {
			case tells && err != nil:
				t.Errorf("%s: %v", name, err)
			case tells && time.Since(began) < 2*time.Second:
				t.Errorf("%s: it has not waited", name)
			case tells:
			case !errors.As(err, &refused) || refused.Code != lead.Busy || strings.Contains(refused.NextStep, "virsh shutdown") ||
				!strings.Contains(refused.Message, "(operation "+first.Operation.ID+")"):
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// A domain that took the disk after the check of a start makes QEMU refuse it. The failure says who holds the disk, and what ends that; of
// a process that no node shows it says what the node itself has found.
func TestAFailedStartSaysWhoHoldsTheDisk(t *testing.T) {
	for name, shown := range map[string]bool{"a node shows it": true, "nobody does": false} {
		synctest.Test(t, func(t *testing.T) {
			var w *world
			w = newWorld(t, func(order operation.Order) *operation.Answer {
				if order.Action != operation.ActStart {
					return obedient(order)
				}
				if shown {
					w.foreign("n2", "aaaaaaaa-0000-4000-8000-000000000001", "stray", func(d *model.Domain) {
						d.Sources = []model.DiskSource{{Path: "/srv/db.qcow2"}}
					})
				}
				return &operation.Answer{
					Outcome: operation.OutcomeFailed, Code: operation.InUse, Error: "disk /srv/db.qcow2 is held by another QEMU",
					Seen: operation.Observation{State: model.DomainAbsent},
				}
			})
			defer func() { w.lose() }()
			started, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "db", Caller: "operator/admin", Node: "n1", VM: &model.VM{
				Spec: model.VMSpec{Memory: 1 << 30, VCPUs: 1, Disks: []model.Disk{{Path: "/srv/db.qcow2", Format: "qcow2", Bus: "virtio"}}},
			}})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			n1, _ := w.Store.Snapshot().Node("n1")
			n2, _ := w.Store.Snapshot().Node("n2")
			want := fmt.Sprintf("%s: disk /srv/db.qcow2 is held by another QEMU", n1.Name)
			if shown {
				want = fmt.Sprintf("its disk /srv/db.qcow2 is held by %[1]s, where domain \"stray\" has it: end that domain "+
					"('virsh shutdown stray' on %[1]s), or take the disk from it ('virsh detach-disk') or from the VM", n2.Name)
			}
			if op := w.operation(started.Operation.ID); op.Result != operation.Failed || op.Message != want {
				t.Errorf("%s: %s, %q, want %q", name, op.Result, op.Message, want)
			}
		})
	}
}
