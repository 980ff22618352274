package evidence

import (
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// Twice judges copies of a VM of which more than one runs. Those that are not its holder's under its epoch are to be
// suspended: both memories stay, and a person decides. While a migration is under way two copies are as they should be, and
// what it comes to is judged by its own rules; it counts once that has parked it. Live is the operation that works on the VM;
// nil: none does. Why is empty when there is nothing to be done.
func Twice(vm model.VM, live *operation.Operation, copies []Copy) (why string, suspend []Copy) {
	running := slices.DeleteFunc(slices.Clone(copies), func(c Copy) bool { return c.Domain.State != model.DomainRunning })
	if len(running) < 2 || live != nil && live.Kind == operation.Migrate && live.Result != operation.Parked {
		return "", nil
	}
	right := func(c *Copy) bool {
		if c.Node == vm.Holder && c.Is(&vm) {
			return true
		}
		if live == nil || c.Node != live.Target || !c.Domain.Managed && live.Kind != operation.Adopt {
			return false
		}
		return live.Kind == operation.Adopt && vm.Holder == "" || live.Kind == operation.Start && c.Domain.Epoch == live.Epoch
	}
	holder := ""
	for i := range running {
		if right(&running[i]) {
			holder = running[i].Node
		} else {
			suspend = append(suspend, running[i])
		}
	}
	return twice(vm, live, holder, running), suspend
}

// twice says on which nodes one VM runs, and how to end it.
func twice(vm model.VM, live *operation.Operation, holder string, copies []Copy) string {
	var on, steps []string
	for i := range copies {
		one := &copies[i]
		mark := one.mark()
		if one.Node == holder {
			mark += ", its holder"
		}
		on = append(on, fmt.Sprintf("%s (%s)", one.Name, mark))
		var ends []string
		for j := range copies {
			if j != i {
				ends = append(ends, fmt.Sprintf("'virsh destroy %s' on %s", copies[j].argument(), copies[j].Name))
			}
		}
		step := fmt.Sprintf("to keep the one on %s, %s", one.Name, strings.Join(ends, " and "))
		if one.Node != holder {
			step += fmt.Sprintf(", then 'virsh resume %s' on %s", one.argument(), one.Name)
		}
		if one.Node != holder && !one.Is(&vm) {
			step += fmt.Sprintf(" and 'berth vm adopt %s'", vm.Name)
		}
		steps = append(steps, step)
	}
	if live != nil && live.Result == operation.Parked {
		steps = []string{fmt.Sprintf("'berth operation resolve %s' decides which one is the VM", live.ID)}
	}
	return fmt.Sprintf(
		"on %s; what is not its holder's is suspended, and nothing is killed: %s", strings.Join(on, " and "), strings.Join(steps, "; "),
	)
}

// TwiceCondition is the condition of a VM that runs on more than one node.
func TwiceCondition(why string) model.Condition {
	return model.Condition{Kind: model.RunsTwice, Text: "runs twice: " + why}
}
