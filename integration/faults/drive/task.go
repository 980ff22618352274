package drive

import (
	"context"
	"errors"

	"github.com/hashicorp/go-hclog"

	"berth/agent/hypervisor"
	"berth/agent/tasks"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

// Task has an agent do one task with its libvirt.
func Task(libvirt hypervisor.Hypervisor, order *berthv1.Task) (*berthv1.TaskResult, error) {
	all := tasks.Tasks{Hypervisor: libvirt, Logger: hclog.NewNullLogger()}
	result := all.Do(context.Background(), order, nil)
	if !result.GetDone() {
		return nil, errors.New(result.GetError())
	}
	return result, nil
}

// Unpause has an agent let a guest run on that found no room.
func Unpause(libvirt hypervisor.Hypervisor, vm *model.VM) error {
	_, err := Task(libvirt, &berthv1.Task{Action: &berthv1.Task_Unpause{Unpause: &berthv1.UnpauseTask{VmId: vm.ID, Epoch: vm.Epoch}}})
	return err
}

// RemoveVolumes removes those that are there.
func RemoveVolumes(storage hypervisor.Storage, volumes []model.VolumeOrder) error {
	for _, order := range volumes {
		err := storage.DeleteVolume(context.Background(), order.PoolName, order.Name)
		if err != nil && !errors.Is(err, hypervisor.ErrNoVolume) {
			return err
		}
	}
	return nil
}
