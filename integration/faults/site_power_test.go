package faults

import (
	"slices"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/integration/faults/plant"
	"berth/integration/faults/script"
	"berth/integration/faults/stage"
	"berth/shared/units"
)

// FAULTS.md, W13. The power of a whole site is cut and comes back, and its storage up to five minutes after the last host. All that ran
// runs again within five minutes of that, with HA and without, and nobody has lifted a hand.
func TestAfterThePowerOfAllThatRanRuns(t *testing.T) {
	const vms = 6
	var worst time.Duration
	each(1, 40, func(seed uint64) bool {
		s := script.Script{
			Seed: seed, Hosts: 5, HostMemory: int64(8 * units.GiB), Members: 3, VMs: vms, HA: vms / 2, Chaos: time.Hour, Mix: script.Mix{
				Delay: 50 * time.Millisecond, CopyLeast: time.Second, CopyMost: 5 * time.Second, AgentBack: time.Second, FenceTakes: time.Second,
			},
			Fences: slices.Repeat([]model.FenceMethod{model.FenceCommand, model.FenceNone}, 3)[:5],
		}
		w := newWorld(s, nil, plant.None)
		for _, h := range w.hosts {
			h.live()
		}
		w.elect(0, time.Second)
		w.Play(stage.Began.Add(10 * time.Second))
		for vm := range vms {
			w.happen(script.Happening{What: script.Start, VM: vm})
		}
		w.Play(stage.Began.Add(5 * time.Minute))
		w.happen(script.Happening{What: script.SitePower, For: time.Minute})
		w.Play(w.StorageFrom)
		for began := w.Now; w.Now.Sub(began) < 5*time.Minute; w.Play(w.Now.Add(time.Second)) {
			if runs(w, vms) == vms {
				worst = max(worst, w.Now.Sub(began))
				break
			}
		}
		if n := runs(w, vms); n != vms {
			t.Errorf("seed %d: %d of %d VMs run: %+v", seed, n, vms, w.store.Snapshot().VMs())
		}
		for _, breach := range w.Breaches {
			t.Errorf("seed %d at %s: %s %s", seed, breach.At, breach.Rule, breach.Text)
		}
		for _, h := range w.hosts {
			h.life.Kill(0)
		}
		w.Play(w.Now)
		return t.Failed()
	})
	t.Logf("after the power of everything and the storage were back, all that ran ran within %s", worst)
}

// runs is how many of the VMs run.
func runs(w *World, vms int) (n int) {
	for vm := range vms {
		if w.rules.truth(uuidOf(vmName(vm))) != nil {
			n++
		}
	}
	return n
}
