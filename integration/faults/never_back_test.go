package faults

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/integration/faults/script"
	"berth/integration/faults/stage"
	"berth/shared/units"
)

// One host is dead, nothing can prove that it is off, and nobody speaks for it. Every highly available VM of the others is back
// within a minute of the silence after which its host is fenced.
func TestAHostThatNeverComesBackStopsNoRestart(t *testing.T) {
	const vms = 4
	for name, fault := range map[string]script.Happening{
		"guests crash":      {What: script.GuestDies},
		"hosts reboot":      {What: script.PowerCut, For: 20 * time.Second},
		"hosts die":         {What: script.PowerCut, For: 4 * time.Minute},
		"an agent upgrades": {What: script.AgentDies, For: 2 * time.Second}, // what ran on is not started a second time
	} {
		t.Run(name, func(t *testing.T) {
			each(1, 15, func(seed uint64) bool {
				s := script.Script{
					Seed: seed, Hosts: 10, HostMemory: int64(8 * units.GiB), Members: 3, VMs: vms, HA: vms, Chaos: time.Hour, Mix: script.Mix{
						Delay: 50 * time.Millisecond, CopyLeast: time.Second, CopyMost: 5 * time.Second, AgentBack: time.Second,
						FenceTakes: time.Second,
					},
					Fences: append([]model.FenceMethod{model.FenceNone}, slices.Repeat([]model.FenceMethod{model.FenceCommand}, 9)...),
				}
				w := newWorld(s, nil, None)
				for _, h := range w.hosts {
					h.live()
				}
				w.elect(0, time.Second)
				w.Play(stage.Began.Add(10 * time.Second))
				w.happen(script.Happening{What: script.Dies})
				for vm := range vms {
					w.After(time.Minute, func() { w.happen(script.Happening{What: script.Start, VM: vm}) })
				}
				// It is dead for a week, of which ten minutes tell the same.
				w.Play(stage.Began.Add(10 * time.Minute))
				for vm := range vms {
					d := w.rules.truth(uuidOf(fmt.Sprintf("vm-%d", vm)))
					if d == nil {
						t.Errorf("seed %d: vm-%d does not run", seed, vm)
						return true
					}
					one := fault
					one.VM, one.Host = vm, hostOf(w, d.At.ID)
					w.After(time.Duration(vm)*5*time.Minute, func() { w.happen(one) })
				}
				if took := longestDown(w, vms, 5*vms*time.Minute); took > model.DefaultFenceAfter+time.Minute {
					t.Errorf("seed %d: a VM was down for %s", seed, took)
				}
				for _, breach := range w.Breaches {
					t.Errorf("seed %d at %s: %s %s", seed, breach.At, breach.Rule, breach.Text)
				}
				if record, _ := w.store.Snapshot().Node("n1"); record.Fenced() {
					t.Errorf("seed %d: what nothing can prove to be off counts as off", seed)
				}
				for _, h := range w.hosts {
					h.life.Kill(0)
				}
				w.Play(w.Now)
				return t.Failed()
			})
		})
	}
}

func hostOf(w *World, id string) int {
	for i, h := range w.hosts {
		if h.ID == id {
			return i
		}
	}
	return -1
}

// longestDown plays for a while, and tells how long a VM was down that runs nowhere for longest.
func longestDown(w *World, vms int, lasts time.Duration) (longest time.Duration) {
	down := make([]time.Duration, vms)
	for end := w.Now.Add(lasts); w.Now.Before(end); {
		w.Play(w.Now.Add(time.Second))
		for vm := range vms {
			if w.rules.truth(uuidOf(fmt.Sprintf("vm-%d", vm))) != nil {
				down[vm] = 0
				continue
			}
			down[vm] += time.Second
			longest = max(longest, down[vm])
		}
	}
	return longest
}
