package evidence

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"berth/coordinator/model"
)

// Bounds of restarts that nobody has asked for.
const (
	MaxRestarts   = 3                // of a VM, before it rests
	RestartWindow = 10 * time.Minute // for which a VM has to run for the count to begin anew; its first rest, and each next is twice as long
	LastRestart   = 6                // after as many in a row only a person starts it

	restartRest = 15 * time.Second // before a VM is tried again that no node had room for
)

// Restartable are the VMs that again says are to be started again, and that positively run nowhere: a holder is only taken from a record by
// evidence. After a restore those that no node shows wait for somebody's word. High restart priorities come first. Within one, those with
// most memory do, while there is room for them: smaller ones fit between. Resting are those that were restarted too often lately, with
// what is to be said of them, and those that only a person starts: host after host was lost with them, or they end again and again.
func Restartable(vms []model.VM, now time.Time, again func(*model.VM) bool) (ready []model.VM, resting map[string]model.Condition) {
	resting = map[string]model.Condition{}
	for i := range vms {
		vm := &vms[i]
		if vm.Desired != model.Running || vm.Holder != "" || vm.Operation != "" || !again(vm) || storageIsLate(vm, now) {
			continue
		}
		if vm.LostTooMany() {
			resting[vm.ID] = model.Condition{Kind: model.RestartHeld, About: vm.LastNode, Text: fmt.Sprintf(
				"it is not restarted any more, because its hosts were lost soon after it had started: %s; look into its guest and the logs of "+
					"those hosts; 'berth vm start %s' starts it again",
				vm.LossesText(), vm.Name,
			)}
			continue
		}
		if vm.Condition.Is(model.NowhereSeen) {
			continue // nobody knows whether it was stopped after the backup that was restored
		}
		if vm.Restarts >= LastRestart && ranSince(vm) && endsSoon(vm, now) {
			resting[vm.ID] = model.Condition{Kind: model.RestartHeld, About: vm.LastNode, Text: fmt.Sprintf(
				"it is not restarted any more, because it was restarted %d times, and has ended again within minutes each time: look into its "+
					"guest, its console and its nodes; 'berth vm start %s' starts it again",
				vm.Restarts, vm.Name,
			)}
			continue
		}
		if rests := rest(vm); rests > 0 && now.Sub(vm.RestartedAt) < rests && endsSoon(vm, now) {
			resting[vm.ID] = model.Condition{Kind: model.RestartRests, About: vm.LastNode, Text: fmt.Sprintf(
				"it was restarted %d times within minutes, and is gone again: look into its guest and its nodes; it is tried again in %s, or by "+
					"'berth vm start %s'",
				vm.Restarts, rests, vm.Name,
			)}
			continue
		}
		ready = append(ready, *vm)
	}
	slices.SortFunc(ready, func(a, b model.VM) int {
		return cmp.Or(cmp.Compare(turn(&a), turn(&b)), cmp.Compare(b.Spec.Memory, a.Spec.Memory), cmp.Compare(a.ID, b.ID))
	})
	return ready, resting
}

// turn is when a VM's restart comes among others: the lowest first.
func turn(vm *model.VM) int {
	switch vm.RestartPriority {
	case model.RestartHigh:
		return 0
	case model.RestartLow:
		return 2
	default:
		return 1
	}
}

// rest is for how long a VM is left alone after its last restart, if it was restarted so often in a row. One that does not even start
// need not be at fault.
func rest(vm *model.VM) time.Duration {
	switch {
	case vm.Restarts < MaxRestarts:
		return 0
	case !ranSince(vm):
		return RestartWindow
	}
	return RestartWindow << (min(vm.Restarts, LastRestart) - MaxRestarts)
}

// ranSince tells whether a VM has come to run by its last restart.
func ranSince(vm *model.VM) bool { return !vm.StartedAt.Before(vm.RestartedAt) }

// endsSoon tells whether a VM that runs nowhere has ended soon after its last restart. Once it rests its condition says so.
func endsSoon(vm *model.VM, now time.Time) bool {
	return vm.Condition.Is(model.RestartRests, model.RestartHeld) || now.Sub(vm.RestartedAt) < RestartWindow
}

// Restarted counts a restart. The count begins anew once a VM has run for long enough.
func Restarted(vm *model.VM, now time.Time) {
	if !endsSoon(vm, now) {
		vm.Restarts = 0
	}
	vm.Restarts++
	vm.RestartedAt = now
}

// turnedAway is since when a VM waits for others, and when it was last found to.
type turnedAway struct{ since, seen time.Time }

// Restarter remembers which VMs no node had room for: they are tried again after a while. It also remembers which wait for others. It is
// not safe for concurrent use.
type Restarter struct {
	tried  map[string]time.Time  // by VM ID: when
	behind map[string]turnedAway // by VM ID: for others that are to start before it
}

// Due are those of the VMs that are to be started now, in their order. The others wait. When one of a lower priority is due, those of
// higher ones do not wait: there may be room by now, and it is theirs.
func (r *Restarter) Due(ready []model.VM, now time.Time) []model.VM {
	lately := func(vm *model.VM) bool {
		at, tried := r.tried[vm.ID]
		return tried && now.Sub(at) < restartRest
	}
	last := 0 // turn of those that are due
	for i := range ready {
		if !lately(&ready[i]) {
			last = max(last, turn(&ready[i]))
		}
	}
	waits := map[string]time.Time{}
	due := slices.DeleteFunc(slices.Clone(ready), func(vm model.VM) bool {
		if turn(&vm) < last || !lately(&vm) {
			return false
		}
		waits[vm.ID] = r.tried[vm.ID]
		return true
	})
	r.tried = waits
	return due
}

// Waits tells that a VM could not be started.
func (r *Restarter) Waits(vm string, now time.Time) { r.tried[vm] = now }
