package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"berth/coordinator/affinity"
	"berth/coordinator/control/drifts"
	"berth/coordinator/control/lead"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/moving"
	"berth/coordinator/state"
	"berth/shared/units"
)

// StartVMs starts several VMs that are stopped, in the order of their names; what each came to is told in the order of the
// request. VMs that hard rules tie together are placed as one: the node that the largest gets has room for all of them, and
// the others follow. Each VM has its own operation and decision, and one that is refused does not stop the others. A dry run
// looks at each unit as if it were the only one.
func (l *Lifecycle) StartVMs(ctx context.Context, request StartVMs) ([]StartedVM, error) {
	if !l.Leading() {
		return nil, lead.ErrNotLeading
	}
	snapshot := l.Store.Snapshot()
	results := make(map[string]StartedVM, len(request.VMs))
	for _, unit := range unitsOf(snapshot, request.VMs) {
		l.startUnit(ctx, snapshot, request, unit, results)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	started := make([]StartedVM, 0, len(request.VMs))
	for _, id := range request.VMs {
		one, known := results[id]
		if !known {
			one = StartedVM{VMName: id, Err: &lead.Error{
				Code: lead.NotFound, Subject: "vm/" + id, Message: fmt.Sprintf("there is no VM %q", id), NextStep: "see 'berth vm list'",
			}}
		}
		started = append(started, one)
	}
	return started, nil
}

// unitsOf are the VMs that exist, cut into those that are placed together: the largest first in each.
func unitsOf(snapshot *state.Snapshot, ids []string) [][]model.VM {
	wanted := map[string]model.VM{}
	for _, id := range ids {
		if vm, there := snapshot.VM(id); there {
			wanted[id] = vm
		}
	}
	var units [][]model.VM
	clusters := estate.ClusterNames(snapshot)
	if len(wanted) < 2 {
		clusters = nil // one VM is its own unit, and who is in a group is worked out from all VMs
	}
	for _, name := range clusters {
		for _, tied := range affinity.Merged(estate.GroupsOf(snapshot, name)) {
			var unit []model.VM
			for _, id := range tied {
				if vm, asked := wanted[id]; asked {
					delete(wanted, id)
					unit = append(unit, vm)
				}
			}
			if len(unit) > 0 {
				units = append(units, unit)
			}
		}
	}
	for _, vm := range wanted {
		units = append(units, []model.VM{vm})
	}
	for _, unit := range units {
		slices.SortFunc(unit, func(a, b model.VM) int {
			return cmp.Or(cmp.Compare(b.Spec.Memory, a.Spec.Memory), cmp.Compare(a.Name, b.Name))
		})
	}
	slices.SortFunc(units, func(a, b []model.VM) int { return cmp.Compare(a[0].Name, b[0].Name) })
	return units
}

// startUnit starts VMs that belong together, the first with the room for all. Nothing else is decided in between.
func (l *Lifecycle) startUnit(
	ctx context.Context, snapshot *state.Snapshot, request StartVMs, unit []model.VM, results map[string]StartedVM,
) {
	var open []model.VM // those that are not refused whatever their unit
	now := scene{snapshot: snapshot, survey: l.surveyOf(snapshot)}
	for _, vm := range unit {
		results[vm.ID] = StartedVM{VMName: vm.Name, Unit: othersOf(unit, vm.ID)}
		_, err := l.startable(now, startRequest{StartVM: StartVM{Name: vm.Name}, last: l.askLastNode(ctx, vm.Name)})
		may := err == nil || errors.Is(err, errAskFirst) || isEarly(err) || drifts.GoesSoon(err)
		if _, repeated := OperationOf(snapshot, requestOf(request.RequestID, vm.ID)); may || repeated {
			open = append(open, vm)
			continue
		}
		one := results[vm.ID]
		one.Err = err
		results[vm.ID] = one
	}
	next, goal := 0, ""
	err := lead.Again(ctx, "vm", func() (lead.Retry, error) {
		said := map[string]lastWord{}
		for i := range open[next:] {
			said[open[next+i].ID] = l.askLastNode(ctx, open[next+i].Name)
		}
		l.Placing.Lock()
		defer l.Placing.Unlock()
		for next < len(open) {
			vm := open[next]
			wanted := startRequest{last: said[vm.ID], StartVM: StartVM{
				Name: vm.Name, Node: request.Node, DryRun: request.DryRun, RequestID: requestOf(request.RequestID, vm.ID), Caller: request.Caller,
			}}
			if next == 0 {
				wanted.unit = moving.UnitOf(open[1:], func(vm *model.VM) (units.Bytes, int) { return vm.Spec.Memory, vm.Spec.VCPUs })
			} else if request.DryRun && goal != "" {
				wanted.among = []string{goal} // nothing was reserved that it could follow
			}
			made, again, err := l.startOnce(ctx, wanted)
			if again != lead.Decided {
				return again, nil
			}
			one := results[vm.ID]
			one.Started, one.Err = made, err
			results[vm.ID] = one
			if next == 0 {
				goal = made.Decision.Winner
			}
			if next++; err != nil && next == 1 {
				break
			}
		}
		return lead.Decided, nil
	})
	for i := range open {
		one := results[open[i].ID]
		if one.Err == nil && i >= next {
			one.Err = cmp.Or(err, results[open[0].ID].Err)
			results[open[i].ID] = one
		}
	}
}

// requestOf is the idempotency key of one VM's start among several.
func requestOf(request, vm string) string {
	if request == "" {
		return ""
	}
	return request + "/" + vm
}

// othersOf are the names of the unit without the VM, ascending.
func othersOf(unit []model.VM, id string) []string {
	var names []string
	for i := range unit {
		if unit[i].ID != id {
			names = append(names, unit[i].Name)
		}
	}
	slices.Sort(names)
	return names
}
