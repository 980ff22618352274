package control

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/control/outofband"
	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// A guest whose process runs on although its libvirt has forgotten it is not absent: a highly available one is restarted when the
// process has ended, and not before. A start by hand is refused with the process in its text, also where another node holds it.
func TestAGuestThatLibvirtForgotIsNotStartedElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.on("n1", "web1", 1)
		w.record(vm.ID, func(vm *model.VM) { vm.HA = true })
		time.Sleep(time.Minute)
		w.edit("n1", vm, func(d *model.Domain) {
			*d = model.Domain{UUID: d.UUID, Name: d.Name, State: model.DomainOrphan, PID: 1234}
		})
		time.Sleep(time.Hour)
		if starts := w.agents.ordered(operation.ActStart); len(starts) != 1 || w.vm("web1").Holder != "n1" {
			t.Fatalf("it was started beside its own process: %+v, %+v", starts, w.vm("web1"))
		}
		_, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "web1", Caller: "operator/test"})
		const words = `process 1234 on node1 runs VM "web1" still, and libvirt there does not list it: a start would be a second copy`
		refusedAs(t, "by hand", err, lead.Conflict, words)
		wantNext(t, err, "end it with 'kill 1234' on node1, and start the VM then")
		w.facts.change("n1", without(vm.ID))
		time.Sleep(time.Minute + 3*outofband.Every)
		if starts := w.agents.ordered(operation.ActStart); len(starts) != 2 {
			t.Errorf("its process has ended, and it was not restarted: %+v, %+v", starts, w.vm("web1"))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.unheld("n1", func(d *model.Domain) {
			*d = model.Domain{UUID: d.UUID, Name: d.Name, State: model.DomainOrphan, PID: 77}
		})
		w.agents.does(func(string, lead.Task) error { return errors.New("it runs here") })
		_, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "web1", Caller: "operator/test"})
		refusedAs(t, "where nobody holds it", err, lead.Conflict, `process 77 on node1 runs VM "web1" still`)
	})
}
