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

// The libvirtd of a host hangs. Where the site wants it, the host is fenced and its guest runs again; where it does not, the host is left
// alone. Where too many hosts are sick at once none is fenced.
func TestASickHostIsFencedWhereThatIsWanted(t *testing.T) {
	for _, c := range []struct {
		name   string
		after  time.Duration
		sick   int
		fenced bool
	}{
		{"wanted", 5 * time.Minute, 1, true}, {"not wanted", 0, 1, false}, {"storage is gone for all", 5 * time.Minute, 5, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(1, 6, func(seed uint64) bool {
				w := newWorld(script.Script{
					Seed: seed, Hosts: 5, HostMemory: int64(8 * units.GiB), Members: 3, VMs: 1, HA: 1, Chaos: time.Hour, SickAfter: c.after,
					Mix: script.Mix{}.Quiet(), Fences: slices.Repeat([]model.FenceMethod{model.FenceCommand}, 5),
				}, nil, plant.None)
				for _, h := range w.hosts {
					h.live()
				}
				w.elect(0, time.Second)
				w.After(10*time.Second, func() { w.happen(script.Happening{What: script.Start}) })
				w.Play(stage.Began.Add(time.Minute))
				ran := w.rules.truth(uuidOf(vmName(0)))
				if ran == nil {
					t.Errorf("seed %d: it does not run", seed)
					return true
				}
				at, boot := hostOf(w, ran.At.ID), ran.At.BootID()
				for i := range c.sick {
					w.happen(script.Happening{What: script.Sick, Host: at + i, For: time.Hour})
				}
				w.Play(stage.Began.Add(5 * time.Minute))
				if w.result.Proven > 0 {
					t.Errorf("seed %d: fenced before its time", seed)
				}
				w.Play(stage.Began.Add(9 * time.Minute))
				fenced := !w.hosts[at].On || w.hosts[at].BootID() != boot
				if now := w.rules.truth(uuidOf(vmName(0))); fenced != c.fenced || now == nil {
					t.Errorf("seed %d: fenced: %t, the guest runs: %t", seed, fenced, now != nil)
				}
				for _, breach := range w.Breaches {
					t.Errorf("seed %d at %s: %s %s", seed, breach.At, breach.Rule, breach.Text)
				}
				w.end()
				return t.Failed()
			})
		})
	}
}
