package hypervisortest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"berth/agent/hypervisor"
)

func forgotten(t *testing.T, bench Bench) {
	hv, g := bench.Source.Hypervisor, newGuest(t, bench)
	var lister hypervisor.Lister
	if d, err := hypervisor.Look(t.Context(), hv, g.id.UUID, g.id.Name); !errors.Is(err, hypervisor.ErrNotFound) {
		t.Fatalf("before it is started: %+v, %v", d, err)
	}
	g.start(t, hv)
	if d, err := hypervisor.Look(t.Context(), hv, g.id.UUID, g.id.Name); err != nil || d.State != hypervisor.Running {
		t.Fatalf("it runs: %+v, %v", d, err)
	}
	if d := listed(t, &lister, hv, g); d == nil || d.State != hypervisor.Running {
		t.Fatalf("it runs: %+v", d)
	}
	bench.Source.Forget(t, g.id.Name, g.id.UUID)
	reconnected(t, hv)
	wantOrphan(t, hv, &lister, g)
	fresh := &hypervisor.Lister{} // as after a restart of the agent, whose journal has the guest
	if d := listed(t, fresh, hv, g, g.id.UUID); d == nil || d.State != hypervisor.Orphan {
		t.Errorf("expected by the journal: %+v", d)
	}
	bench.Source.EndProcess(t, g.id.Name, g.id.UUID)
	eventually(t, hv, g.id.UUID, "without a process", func(hypervisor.Domain, error) bool {
		_, err := hypervisor.Look(t.Context(), hv, g.id.UUID, g.id.Name)
		return errors.Is(err, hypervisor.ErrNotFound)
	})
	if d := listed(t, &lister, hv, g); d != nil {
		t.Errorf("its process has ended: %+v", d)
	}
}

func forgottenDefinition(t *testing.T, bench Bench) {
	hv, g := bench.Source.Hypervisor, newGuest(t, bench)
	var lister hypervisor.Lister
	g.start(t, hv)
	if err := hv.Define(t.Context(), g.xml); err != nil {
		t.Fatal(err)
	}
	if d := listed(t, &lister, hv, g); d == nil || d.State != hypervisor.Running {
		t.Fatalf("it runs: %+v", d)
	}
	bench.Source.Forget(t, g.id.Name, g.id.UUID)
	reconnected(t, hv)
	if d, err := hv.Lookup(t.Context(), g.id.UUID); err != nil || d.State != hypervisor.Shutoff {
		t.Fatalf("the daemon says %+v, %v", d, err)
	}
	wantOrphan(t, hv, &lister, g)
	bench.Source.EndProcess(t, g.id.Name, g.id.UUID)
	eventually(t, hv, g.id.UUID, "without a process", func(hypervisor.Domain, error) bool {
		d, err := hypervisor.Look(t.Context(), hv, g.id.UUID, g.id.Name)
		return err == nil && d.State == hypervisor.Shutoff
	})
	if err := hv.Undefine(t.Context(), g.id.UUID, 1); err != nil {
		t.Error(err)
	}
}

// listed is the guest in a list of the host; nil: it lacks it.
func listed(t *testing.T, lister *hypervisor.Lister, hv hypervisor.Hypervisor, g guest, expected ...string) *hypervisor.Domain {
	t.Helper()
	all, err := lister.List(t.Context(), hv, expected)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(d hypervisor.Domain) bool { return d.UUID == g.id.UUID })
	if at < 0 {
		return nil
	}
	return &all[at]
}

func wantOrphan(t *testing.T, hv hypervisor.Hypervisor, lister *hypervisor.Lister, g guest) {
	t.Helper()
	d, err := hypervisor.Look(t.Context(), hv, g.id.UUID, g.id.Name)
	says := fmt.Sprintf("process %d runs it, libvirt does not list it", d.PID)
	if err != nil || d.State != hypervisor.Orphan || d.PID == 0 || d.Reason != says || d.Name != g.id.Name || d.UUID != g.id.UUID {
		t.Errorf("Look: %+v, %v", d, err)
	}
	for range 2 {
		if d := listed(t, lister, hv, g); d == nil || d.State != hypervisor.Orphan || d.Reason != says {
			t.Errorf("List: %+v", d)
		}
	}
}

// reconnected waits until the daemon answers again.
func reconnected(t *testing.T, hv hypervisor.Hypervisor) {
	t.Helper()
	eventually(t, hv, "", "the daemon answers", func(hypervisor.Domain, error) bool {
		_, err := hv.Domains(t.Context())
		return err == nil
	})
}
