package hypervisortest

import (
	"context"
	"errors"
	"testing"
	"time"

	"berth/agent/hypervisor"
)

// reboot has no guest that could be asked, only firmware. So the case asks, and a restart is seen when it is reset.
func reboot(t *testing.T, bench Bench) {
	hv, g := bench.Source.Hypervisor, newGuest(t, bench)
	g.start(t, hv)
	before, err := hv.Lookup(t.Context(), g.id.UUID)
	if err != nil {
		t.Fatal(err)
	}
	within := func(limit time.Duration, how hypervisor.RebootMode) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		return hv.Reboot(ctx, g.id.UUID, 1, how)
	}
	wantErr(t, "waiting for a guest that nobody asked", within(time.Second, hypervisor.RebootWatch), hypervisor.ErrAmbiguous)
	if err := within(5*time.Second, hypervisor.RebootAsk); err != nil && !errors.Is(err, hypervisor.ErrAmbiguous) {
		t.Errorf("asking: %v", err)
	}
	watched := make(chan error, 1)
	go func() { watched <- within(patience, hypervisor.RebootWatch) }()
	time.Sleep(time.Second) // until it listens
	if err := within(patience, hypervisor.RebootReset); err != nil {
		t.Errorf("a reset: %v", err)
	}
	if err := <-watched; err != nil {
		t.Errorf("who only waited was told: %v", err)
	}
	if after, err := hv.Lookup(t.Context(), g.id.UUID); err != nil || after.State != hypervisor.Running || after.Epoch != before.Epoch {
		t.Errorf("it was %+v, and is %+v, %v", before, after, err)
	}
	if err := hv.Destroy(t.Context(), g.id.UUID, 1); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "a guest that is gone", within(patience, hypervisor.RebootAsk), hypervisor.ErrNotFound)
}
