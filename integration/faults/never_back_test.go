package faults

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/integration/faults/plant"
	"berth/integration/faults/script"
	"berth/integration/faults/stage"
	"berth/shared/units"
)

// Of ten hosts one is dead, nothing can prove that it is off, and nobody speaks for it. Every highly available VM of the others is back
// within a minute of the silence after which its host is fenced.
func TestAHostThatNeverComesBackStopsNoRestart(t *testing.T) {
	const vms, sites = 4, 12
	for _, kind := range []struct {
		name   string
		fault  script.Happening
		downs  bool          // it ends guests
		within time.Duration // they are back
	}{
		{"a guest crashes", script.Happening{What: script.GuestDies}, true, time.Minute},
		{"somebody destroys a guest", script.Happening{What: script.VirshDestroy}, true, time.Minute},
		{"a host reboots", script.Happening{What: script.PowerCut, For: 20 * time.Second}, true, model.DefaultFenceAfter + time.Minute},
		{"a host loses power", script.Happening{What: script.PowerCut, For: 4 * time.Minute}, true, model.DefaultFenceAfter + time.Minute},
		{"an agent restarts", script.Happening{What: script.AgentDies, For: 2 * time.Second}, false, 0}, // what ran on is not started twice
	} {
		t.Run(kind.name, func(t *testing.T) {
			var mu sync.Mutex
			var took []time.Duration
			each(1, sites, func(seed uint64) bool {
				w := withADeadHost(t, seed, vms)
				if w == nil {
					return true
				}
				for vm := range vms {
					one := kind.fault
					one.VM, one.Host = vm, hostOf(w, w.rules.truth(uuidOf(fmt.Sprintf("vm-%d", vm))).At.ID)
					w.After(time.Duration(vm)*5*time.Minute, func() { w.happen(one) })
				}
				outages := outagesOf(w, vms, 5*vms*time.Minute)
				for _, breach := range w.Breaches {
					t.Errorf("seed %d at %s: %s %s", seed, breach.At, breach.Rule, breach.Text)
				}
				if record, _ := w.store.Snapshot().Node("n1"); record.Fenced() {
					t.Errorf("seed %d: what nothing can prove to be off counts as off", seed)
				}
				w.end()
				mu.Lock()
				defer mu.Unlock()
				took = append(took, outages...)
				return t.Failed()
			})
			slices.Sort(took)
			if kind.downs != (len(took) >= sites*vms) || !kind.downs && len(took) > 0 {
				t.Fatalf("guests were down %d times", len(took))
			}
			if len(took) == 0 {
				return
			}
			at := func(percent int) time.Duration { return took[(len(took)-1)*percent/100].Round(100 * time.Millisecond) }
			t.Logf("from failure to running again, one of ten hosts dead, %s: %d times, p50 %s, p99 %s, worst %s, wanted %s",
				kind.name, len(took), at(50), at(99), at(100), kind.within)
			if worst := at(100); worst > kind.within {
				t.Errorf("a guest was down for %s", worst)
			}
		})
	}
}

// withADeadHost is a site of ten hosts whose first one is dead for ten minutes, which a week would show alike, and whose highly available
// VMs run; nil: they do not.
func withADeadHost(t *testing.T, seed uint64, vms int) *World {
	w := newWorld(script.Script{
		Seed: seed, Hosts: 10, HostMemory: int64(8 * units.GiB), Members: 3, VMs: vms, HA: vms, Chaos: time.Hour, Mix: script.Mix{
			Delay: 50 * time.Millisecond, CopyLeast: time.Second, CopyMost: 5 * time.Second, AgentBack: time.Second,
			FenceTakes: time.Second,
		},
		Fences: append([]model.FenceMethod{model.FenceNone}, slices.Repeat([]model.FenceMethod{model.FenceCommand}, 9)...),
	}, nil, plant.None)
	for _, h := range w.hosts {
		h.live()
	}
	w.elect(0, time.Second)
	w.Play(stage.Began.Add(10 * time.Second))
	w.happen(script.Happening{What: script.Dies})
	for vm := range vms {
		w.After(time.Minute, func() { w.happen(script.Happening{What: script.Start, VM: vm}) })
	}
	w.Play(stage.Began.Add(10 * time.Minute))
	for vm := range vms {
		if w.rules.truth(uuidOf(fmt.Sprintf("vm-%d", vm))) == nil {
			t.Errorf("seed %d: vm-%d does not run", seed, vm)
			w.end()
			return nil
		}
	}
	return w
}

// end ends what runs in a world.
func (w *World) end() {
	for _, h := range w.hosts {
		h.life.Kill(0)
	}
	w.Play(w.Now)
}

func hostOf(w *World, id string) int {
	return slices.IndexFunc(w.hosts, func(h *host) bool { return h.ID == id })
}

// outagesOf plays for a while, and tells how long guests ran nowhere, each time that one did.
func outagesOf(w *World, vms int, lasts time.Duration) (outages []time.Duration) {
	const step = 100 * time.Millisecond
	down := make([]time.Duration, vms)
	for end := w.Now.Add(lasts); w.Now.Before(end); {
		w.Play(w.Now.Add(step))
		for vm := range vms {
			switch d := w.rules.truth(uuidOf(fmt.Sprintf("vm-%d", vm))); {
			case d == nil:
				down[vm] += step
			case down[vm] > 0:
				outages = append(outages, down[vm])
				down[vm] = 0
			}
		}
	}
	for _, still := range down {
		if still > 0 {
			outages = append(outages, still)
		}
	}
	return outages
}
