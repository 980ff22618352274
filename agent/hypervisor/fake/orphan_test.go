package fake_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/fake"
)

const uuid = "11111111-2222-4333-8444-555555555555"

func document(name string) string {
	return `<domain type="kvm"><name>` + name + `</name><uuid>` + uuid + `</uuid><memory>65536</memory><vcpu>1</vcpu>` +
		`<os><type>hvm</type></os></domain>`
}

// A list tells of every guest that has a process, and is none where processes cannot be seen.
func TestEveryListLooksForProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := fake.NewWire().Host("a")
		if err := h.Start(t.Context(), document("web_1")); err != nil {
			t.Fatal(err)
		}
		hidden := errors.New("hidden")
		h.Inject("processes", fake.Fault{Err: hidden})
		var lister hypervisor.Lister
		if _, err := lister.List(t.Context(), h, nil); !errors.Is(err, hidden) {
			t.Errorf("nobody can tell what else has a process: %v", err)
		}
		h.Heal("processes")
		if all, err := lister.List(t.Context(), h, nil); err != nil || len(all) != 1 || all[0].State != hypervisor.Running {
			t.Errorf("%+v, %v", all, err)
		}
		h.Forget(uuid)
		h.Inject("processes", fake.Fault{Err: hidden})
		if d, err := hypervisor.Look(t.Context(), h, uuid, "web_1"); !errors.Is(err, hidden) {
			t.Errorf("Look: %+v, %v", d, err)
		}
		h.Heal("processes")
		if all, err := lister.List(t.Context(), h, nil); err != nil || len(all) != 1 || all[0].State != hypervisor.Orphan {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// Somebody moves a guest here by hand, and the daemon forgets it, before anybody has made a list.
func TestAGuestThatNoListHasShownIsAnOrphan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := fake.NewWire().Host("a")
		if err := h.Start(t.Context(), document("web_1")); err != nil {
			t.Fatal(err)
		}
		h.Forget(uuid)
		var lister hypervisor.Lister
		all, err := lister.List(t.Context(), h, nil)
		if err != nil || len(all) != 1 || all[0].State != hypervisor.Orphan || all[0].UUID != uuid || all[0].PID == 0 {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// onlyScope is a host on which only a machine scope is left of a guest.
type onlyScope struct {
	*fake.Hypervisor
	left hypervisor.Process
}

// Processes implements hypervisor.Hypervisor.
func (o onlyScope) Processes(context.Context) ([]hypervisor.Process, error) {
	return []hypervisor.Process{o.left}, nil
}

func TestAMachineScopeWithProcessesIsNoAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := hypervisor.Process{PID: 77, Name: "web1", Scope: `machine-qemu\x2d3\x2dweb1.scope`}
		h := onlyScope{fake.NewWire().Host("a"), left}
		d, err := hypervisor.Look(t.Context(), h, uuid, "web_1") // systemd-machined drops the character
		if err != nil || d.State != hypervisor.Orphan || d.PID != 77 || d.Name != "web_1" || !strings.Contains(d.Reason, left.Scope) {
			t.Errorf("%+v, %v", d, err)
		}
		if d, err := hypervisor.Look(t.Context(), h, uuid, "web-2"); !errors.Is(err, hypervisor.ErrNotFound) {
			t.Errorf("another guest's scope: %+v, %v", d, err)
		}
	})
}
