// Package tasks does the work that belongs to no operation. It grows and removes volumes, makes volumes from files that come
// through a tunnel, and connects consoles with tunnels. It also keeps a VM from being there twice: it suspends a surplus
// copy, removes a surplus definition, and has the jobs discard what a migration has left and refuse late orders. Doing a task
// again is harmless, so no task is journalled.
package tasks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/agent/errorcode"
	"berth/agent/hypervisor"
	"berth/agent/telemetry"
	"berth/agent/volumes"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/reach"
)

// Tunnel carries the bytes of one task between the coordinator and the agent.
type Tunnel interface {
	io.ReadWriteCloser

	// CloseWrite says that the agent will send nothing more.
	CloseWrite() error
}

// Dig opens the tunnel of a ticket. Its reads and writes end with the context.
type Dig func(ctx context.Context, ticket string) (Tunnel, error)

// Tasks are what one agent does. It is safe for concurrent use.
type Tasks struct {
	Hypervisor hypervisor.Hypervisor
	// Refuse makes the node refuse orders for a VM up to an epoch. Package jobs implements it.
	Refuse func(ctx context.Context, vm string, epoch uint64) error
	// Discard destroys the paused copy that a migration has left of a VM. Package jobs implements it.
	Discard func(ctx context.Context, vm string, epoch uint64) error
	// EndCrashed removes what is left of a guest that has crashed. Package jobs implements it.
	EndCrashed func(ctx context.Context, vm string, epoch uint64) error
	// Reading is told that the devices of a VM are about to be read, and then what they are. Package jobs implements it; nil: nobody
	// wants to know.
	Reading func(vm string) (read func(epoch uint64, devices *berthv1.Devices))
	// Week is the weekly profile of a guest, or of the node if none is named. Package recorder implements it; nil: there are none.
	Week func(guest string, now time.Time) []*berthv1.ProfileHour
	// Minutes is the same of the last hour, minute by minute; nil: they are not known.
	Minutes func(guest string, now time.Time) []*berthv1.ProfileHour
	// Shared keeps what was seen of pools that are called shared; nil: nobody wants to know.
	Shared *SharedPools
	Logger hclog.Logger

	mu       sync.Mutex
	fetching map[string]chan struct{} // by volume; closed when the fetch has ended
	locks    map[string]heldLock      // by volume
}

// Do does a task and returns how it ended. Dig opens the tunnel if the task has a ticket.
func (t *Tasks) Do(ctx context.Context, task *berthv1.Task, dig Dig) (result *berthv1.TaskResult) {
	defer func() {
		// A defect that panics must not end the agent.
		if defect := recover(); defect != nil {
			t.Logger.Error("a task met a defect of berth", "task", task.GetId(), "defect", defect, "stack", string(debug.Stack()))
			result = answer(task, fmt.Errorf("a defect of berth: %v: the agent's log has more about it", defect))
		}
	}()
	var allocated, capacity int64
	var described, reached string
	var locked bool
	var devices *berthv1.Devices
	var frozen bool
	var week, minutes []*berthv1.ProfileHour
	var err error
	switch {
	case task.GetGrow() != nil:
		capacity, err = t.grow(ctx, task.GetGrow())
	case task.GetRemove() != nil:
		err = volumes.Remove(ctx, t.Hypervisor, task.GetRemove().GetVolumes())
	case task.GetFetch() != nil:
		allocated, err = t.fetch(ctx, task.GetFetch(), dig)
	case task.GetConsole() != nil:
		err = t.console(ctx, task.GetConsole(), dig)
	case task.GetSuspend() != nil:
		err = t.suspend(ctx, task.GetSuspend())
	case task.GetDescribe().GetRunning():
		described, err = t.Hypervisor.Document(ctx, task.GetDescribe().GetVmId())
	case task.GetDescribe() != nil:
		described, err = t.Hypervisor.Definition(ctx, task.GetDescribe().GetVmId())
	case task.GetRefuse() != nil:
		err = t.Refuse(ctx, task.GetRefuse().GetVmId(), task.GetRefuse().GetEpoch())
	case task.GetUndefine() != nil:
		err = t.undefine(ctx, task.GetUndefine())
	case task.GetDiscard() != nil:
		err = t.Discard(ctx, task.GetDiscard().GetVmId(), task.GetDiscard().GetEpoch())
	case task.GetUnpause() != nil:
		err = t.unpause(ctx, task.GetUnpause())
	case task.GetEndCrashed() != nil:
		err = t.EndCrashed(ctx, task.GetEndCrashed().GetVmId(), task.GetEndCrashed().GetEpoch())
	case task.GetReach() != nil:
		reached = reach.Any(ctx, task.GetReach().GetAddresses())
	case task.GetLock() != nil:
		locked, err = t.lock(ctx, task.GetLock())
	case task.GetDevices() != nil:
		devices, err = t.devices(ctx, task.GetDevices())
		frozen = err == nil && task.GetDevices().GetFrozen() && t.frozen(ctx, task.GetDevices().GetVmId())
	case task.GetProfile() != nil && t.Week != nil:
		now := time.Now()
		week = t.Week(task.GetProfile().GetVmId(), now)
		if t.Minutes != nil {
			minutes = t.Minutes(task.GetProfile().GetVmId(), now)
		}
	default:
		err = fmt.Errorf("%w: this agent does not know the task: upgrade it", hypervisor.ErrUnsupported)
	}
	if err != nil {
		t.Logger.Warn("task failed", "task", task.GetId(), "error", err)
	}
	result = answer(task, err)
	result.AllocatedBytes, result.DomainXml, result.Reached, result.Locked = allocated, described, reached, locked
	result.Devices, result.Frozen, result.Profile, result.Minutes, result.CapacityBytes = devices, frozen, week, minutes, capacity
	return result
}

func answer(task *berthv1.Task, err error) *berthv1.TaskResult {
	result := &berthv1.TaskResult{Id: task.GetId(), Done: err == nil, Code: errorcode.Of(err)}
	if err != nil {
		result.Error, result.ErrorCode = err.Error(), errorcode.TaskWord(result.GetCode())
	}
	return result
}

// devices reads the devices of a domain that runs.
func (t *Tasks) devices(ctx context.Context, order *berthv1.DevicesTask) (*berthv1.Devices, error) {
	read := func(uint64, *berthv1.Devices) {}
	if t.Reading != nil {
		read = t.Reading(order.GetVmId())
	}
	domain, err := t.Hypervisor.Lookup(ctx, order.GetVmId())
	switch {
	case err != nil:
		return nil, err
	case domain.Epoch != order.GetEpoch():
		return nil, fmt.Errorf("%w: the VM is here under epoch %d, not %d", hypervisor.ErrOtherEpoch, domain.Epoch, order.GetEpoch())
	case domain.Devices == nil:
		return nil, fmt.Errorf("%w: it is %s, and its devices cannot be read", hypervisor.ErrInvalidState, domain.State)
	}
	sizes := domain.DiskSizes
	if order.GetCapacities() {
		if sizes, err = t.Hypervisor.DiskSizes(ctx, order.GetVmId()); err != nil {
			return nil, err
		}
	}
	devices := telemetry.Devices(domain.Devices, sizes, true)
	read(domain.Epoch, devices)
	return devices, nil
}

// frozen asks the agent in a guest whether the file systems there are frozen. Few guests have one.
func (t *Tasks) frozen(ctx context.Context, vm string) bool {
	is, err := t.Hypervisor.IsFrozen(ctx, vm)
	return err == nil && is
}

// copyLimit is for one change of a surplus copy.
const copyLimit = time.Minute

// suspend pauses a copy of a VM. Its memory stays as it is, for the person who decides which copy is the VM.
func (t *Tasks) suspend(ctx context.Context, order *berthv1.SuspendTask) error {
	ctx, cancel := context.WithTimeout(ctx, copyLimit)
	defer cancel()
	return t.Hypervisor.Suspend(ctx, order.GetVmId(), order.GetEpoch())
}

// unpause lets a guest run on that its hypervisor has paused because a disk found no room. What somebody else has paused stays so.
func (t *Tasks) unpause(ctx context.Context, order *berthv1.UnpauseTask) error {
	ctx, cancel := context.WithTimeout(ctx, copyLimit)
	defer cancel()
	domain, err := t.Hypervisor.Lookup(ctx, order.GetVmId())
	switch {
	case err != nil:
		return err
	case domain.State != hypervisor.Paused || domain.Reason != hypervisor.ReasonIOError || domain.JobActive:
		return fmt.Errorf("%w: it is %s (%s)", hypervisor.ErrInvalidState, domain.State, domain.Reason)
	}
	return t.Hypervisor.Resume(ctx, order.GetVmId(), order.GetEpoch())
}

// undefine removes the definition of a VM that another node has. A missing one counts as removed.
func (t *Tasks) undefine(ctx context.Context, order *berthv1.UndefineTask) error {
	ctx, cancel := context.WithTimeout(ctx, copyLimit)
	defer cancel()
	err := t.Hypervisor.Undefine(ctx, order.GetVmId(), order.GetEpoch())
	if errors.Is(err, hypervisor.ErrNotFound) {
		return nil
	}
	return err
}

// growLimit is for growing one volume.
const growLimit = 2 * time.Minute

// grow makes a volume larger: through the domain that runs with it, or on its own. Capacity is what it has then: somebody may have made it
// larger than that before.
func (t *Tasks) grow(ctx context.Context, order *berthv1.GrowTask) (capacity int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, growLimit)
	defer cancel()
	volume := order.GetVolume()
	found := hypervisor.Volume{}
	if order.GetVmId() == "" {
		err = t.Hypervisor.GrowVolume(ctx, volume.GetPool(), volume.GetName(), volume.GetCapacityBytes())
	} else if found, err = t.Hypervisor.LookupVolume(ctx, volume.GetPool(), volume.GetName()); err == nil {
		err = t.Hypervisor.GrowDisk(ctx, order.GetVmId(), found.Path, volume.GetCapacityBytes())
	}
	if err != nil {
		return 0, fmt.Errorf("grow %s: %w", volumes.Name(volume), err)
	}
	if order.GetVmId() != "" {
		_, _ = t.Hypervisor.DiskSizes(ctx, order.GetVmId()) // so that reports have the new size at once; without it they do in some minutes
	}
	if found, err = t.Hypervisor.LookupVolume(ctx, volume.GetPool(), volume.GetName()); err != nil {
		t.Logger.Warn("a volume was made larger, and how large it is now is not known", "volume", volumes.Name(volume), "error", err)
		return volume.GetCapacityBytes(), nil
	}
	return found.CapacityBytes, nil
}

// farewell is how long the coordinator has to end a tunnel after the guest's console has ended.
const farewell = 5 * time.Second

// console connects a domain's console and a tunnel until either ends.
func (t *Tasks) console(ctx context.Context, order *berthv1.ConsoleTask, dig Dig) error {
	domain, err := t.Hypervisor.Lookup(ctx, order.GetVmId())
	switch {
	case err != nil:
		return err
	case domain.Epoch != order.GetEpoch():
		return fmt.Errorf("%w: the VM is here under epoch %d, not %d", hypervisor.ErrOtherEpoch, domain.Epoch, order.GetEpoch())
	}
	console, err := t.Hypervisor.OpenConsole(ctx, order.GetVmId(), order.GetForce())
	if err != nil {
		return err
	}
	defer console.Close()
	tunnel, err := dig(ctx, order.GetTicket())
	if err != nil {
		return err
	}
	defer tunnel.Close()
	hangUp := context.AfterFunc(ctx, func() { _ = console.Close() })
	defer hangUp()

	said := make(chan struct{})
	go func() {
		defer close(said)
		_, _ = io.Copy(tunnel, console) // however it ends, it is over
		_ = tunnel.CloseWrite()
	}()
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		_, _ = io.Copy(console, tunnel)
		_ = console.Close()
	}()
	<-said
	select {
	case <-heard:
	case <-time.After(farewell):
		_ = tunnel.Close()
		<-heard
	}
	return nil
}
