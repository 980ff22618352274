package evidence

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/coordinator/model"
	"berth/shared/units"
)

// Room comes and goes, and so do VMs to restart. Never is one begun while another one of a higher priority waits that could start now,
// and none waits for longer than its rest once there is room for it.
func TestNoRestartTakesTheRoomOfAHigherPriority(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		free := make([]units.Bytes, rapid.IntRange(1, 3).Draw(t, "nodes"))
		fits := func(vm *model.VM) int {
			for node := range free {
				if vm.Spec.Memory <= free[node] {
					return node
				}
			}
			return -1
		}
		var (
			vms       []model.VM
			restarter Restarter
		)
		now := time.Unix(1_000_000, 0)
		look := func() {
			ready, _ := Restartable(vms, now, func(vm *model.VM) bool { return vm.HA })
			for _, vm := range restarter.Due(ready, now) {
				node := fits(&vm)
				if node < 0 {
					restarter.Waits(vm.ID, now)
					continue
				}
				for i := range vms {
					if other := &vms[i]; other.Holder == "" && turn(other) < turn(&vm) && fits(other) >= 0 {
						t.Fatalf("%s (%q) starts while %s (%q) waits, which could", vm.ID, vm.RestartPriority, other.ID, other.RestartPriority)
					}
				}
				free[node] -= vm.Spec.Memory
				for i := range vms {
					if vms[i].ID == vm.ID {
						vms[i].Holder = fmt.Sprint("n", node)
					}
				}
			}
			now = now.Add(time.Second)
		}
		for range rapid.IntRange(1, 60).Draw(t, "seconds") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				node := rapid.IntRange(0, len(free)-1).Draw(t, "node")
				free[node] = units.Bytes(rapid.IntRange(0, 4).Draw(t, "free"))
			case 1:
				vms = append(vms, model.VM{
					ID: fmt.Sprint("v", len(vms)), HA: true, Desired: model.Running,
					RestartPriority: rapid.SampledFrom([]model.RestartPriority{
						model.RestartHigh, model.RestartNormal, model.RestartLow,
					}).Draw(t, "priority"),
					Spec: model.VMSpec{Memory: units.Bytes(rapid.IntRange(1, 3).Draw(t, "memory"))},
				})
			}
			look()
		}
		for range restartRest / time.Second {
			look()
		}
		for i := range vms {
			if vms[i].Holder == "" && fits(&vms[i]) >= 0 {
				t.Fatalf("%s (%q) waits, and has room", vms[i].ID, vms[i].RestartPriority)
			}
		}
	})
}
