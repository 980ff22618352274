package control

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
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
