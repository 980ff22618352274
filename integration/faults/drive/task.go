package drive

import (
	"context"
	"errors"

	"github.com/hashicorp/go-hclog"

	"berth/agent/hypervisor"
	"berth/agent/tasks"
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
