package evidence

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// BehindPatience is how long a VM waits for those that it is to start after. A VM that never comes must not keep others off for ever, and
// two that wait for each other have to begin somewhere.
const BehindPatience = 10 * time.Minute

// Ahead tells which VMs one is to start after that are started by themselves and do not run yet, by their names, ascending: those of its
// cluster with one of the labels that it names.
func Ahead(r Moment, again func(*model.VM) bool) func(*model.VM) []string {
	waiting := map[string][]string{} // by cluster and label: names; made when it is first asked for
	cluster := func(vm *model.VM) string {
		node, _ := r.Node(vm.LastNode)
		return node.ClusterName()
	}
	look := func() {
		for vm := range r.SharedVMs() {
			if vm.Desired != model.Running || runsNow(r, vm) || vm.Holder == "" && (!again(vm) || vm.LostTooMany()) {
				continue
			}
			for _, label := range vm.Labels {
				key := cluster(vm) + "/" + label
				waiting[key] = append(waiting[key], vm.Name)
			}
		}
	}
	return func(vm *model.VM) (names []string) {
		if len(vm.RestartAfter) == 0 {
			return nil
		}
		if look != nil {
			look()
			look = nil
		}
		for _, label := range vm.RestartAfter {
			names = append(names, waiting[cluster(vm)+"/"+label]...)
		}
		slices.Sort(names)
		names = slices.Compact(names)
		return slices.DeleteFunc(names, func(name string) bool { return name == vm.Name })
	}
}

// runsNow tells whether the node that has the VM shows it, and no start of it is under way. A node that is silent has lost its power,
// perhaps, like all others.
func runsNow(r Moment, vm *model.VM) bool {
	if vm.Holder == "" {
		return false
	}
	facts := r.Facts(vm.Holder)
	domain := facts.Domain(vm.ID)
	op, works := r.LiveOperationOf(vm.ID)
	return facts.Liveness.Answers() && domain != nil && domain.State.Lives() && (!works || op.Kind != operation.Start)
}

// Behind takes out of VMs that are ready those that others are to start before, as ahead names them, and says of each what it waits for.
// None waits for longer than BehindPatience, counted from when this leader first had it wait.
func (r *Restarter) Behind(ready []model.VM, now time.Time, ahead func(*model.VM) []string) (
	free []model.VM, behind map[string]model.Condition,
) {
	since := map[string]turnedAway{}
	for id, one := range r.behind {
		if now.Sub(one.seen) < time.Minute { // one whose start fails is not ready for some seconds
			since[id] = one
		}
	}
	behind = map[string]model.Condition{}
	for _, vm := range ready {
		names := ahead(&vm)
		first := now
		if one, waits := since[vm.ID]; waits {
			first = one.since
		}
		if delete(since, vm.ID); len(names) > 0 {
			since[vm.ID] = turnedAway{first, now}
		}
		if len(names) == 0 || now.Sub(first) >= BehindPatience {
			free = append(free, vm)
			continue
		}
		behind[vm.ID] = model.Condition{Kind: model.RestartBehind, Text: fmt.Sprintf(
			"it is started again after %s (restart_after %s), for which it waits %s at most; 'berth vm start %s' starts it now",
			SomeOf(names), strings.Join(vm.RestartAfter, ", "), BehindPatience, vm.Name,
		)}
	}
	r.behind = since
	return free, behind
}
