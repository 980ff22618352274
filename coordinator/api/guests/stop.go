package guests

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/refusal"
	"berth/coordinator/binding"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	berthv1 "berth/shared/gen/berth/v1"
)

// maxGrace is the longest time that a guest may be given to shut down.
const maxGrace = time.Hour

// Stop is the request for a stop, without whose it is and who asks for it.
func Stop(p *answer.Moment, vm *model.VM, action *berthv1.StopAction) (lifecycle.ActOnVM, error) {
	seconds := action.GetGraceSeconds()
	if math.IsNaN(seconds) || seconds < 0 || seconds > maxGrace.Seconds() {
		return lifecycle.ActOnVM{}, refusal.Invalid("vm/"+vm.Name, "give a shorter time, or --force to power it off at once",
			fmt.Errorf("a grace time of %g s is not between 0 and %g", seconds, maxGrace.Seconds()))
	}
	if err := stoppable(p, vm); err != nil && !action.GetForce() {
		return lifecycle.ActOnVM{}, err
	}
	grace := time.Duration(seconds * float64(time.Second))
	return lifecycle.ActOnVM{
		Kind: operation.Stop, Force: action.GetForce(), Grace: cmp.Or(grace, lifecycle.DefaultGrace),
		InterruptBackup: action.GetInterruptBackup(),
	}, nil
}

// Interrupted are the jobs of others that do not finish when a VM is stopped now, in words.
func Interrupted(p *answer.Moment, vm *model.VM) (texts []string) {
	if holder := p.View().Node(vm.Holder); holder != nil {
		for _, job := range binding.Jobs(vm, &holder.Facts) {
			texts = append(texts, "it "+job.Text()+": "+job.Breaks())
		}
	}
	return texts
}

// stop shuts a VM down.
func stop(action *berthv1.StopAction) asked {
	return func(p *answer.Moment, vm *model.VM) (lifecycle.ActOnVM, error) { return Stop(p, vm, action) }
}

// reboot asks a guest to restart.
func reboot(p *answer.Moment, vm *model.VM) (lifecycle.ActOnVM, error) {
	return lifecycle.ActOnVM{Kind: operation.Reboot}, Restartable(p, vm)
}
