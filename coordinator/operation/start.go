package operation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/coordinator/model"
	"berth/shared/domxml"
)

// kindStart starts a VM on the node that a decision has found, or on the next one.
var kindStart = kind{
	name: Start,
	phases: map[Phase]phase{
		Dispatched: {
			node: atTarget, order: startOrder, answered: startAnswered,
			unbegun: func(t *transition) {
				t.startFailed(TooLate, "cancelled before "+t.name(t.Operation.Target)+" had begun it")
			},
		},
		Clearing: {
			node: atLeftover, order: clearTarget, answered: clearAnswered, off: clearOff, overdue: clearStartOverdue,
			soon: true, explained: true,
		},
	},
	judge:     judgeStart,
	cleared:   func(t *transition) { t.startFailed(t.Operation.Code, t.Operation.Message) },
	reserves:  true,
	brings:    true,
	meanwhile: Starting,
	begun: func(op *Operation) string {
		said := strings.Join(append([]string{""}, op.Evidence...), "; ") // of one that was forced
		if op.Phase == Queued {
			return fmt.Sprintf("is to start on %s, and %s", op.TargetName, op.Message) + said
		}
		return "starts on " + op.TargetName + said
	},
	doing: func(op *Operation) string {
		switch op.Phase {
		case Queued:
			return fmt.Sprintf("to start on %s; %s", op.TargetName, op.Message)
		case Placing:
			return "looking for another node"
		default:
			return "starting on " + op.TargetName
		}
	},
	ended: func(op *Operation) (event, text string) { return "vm.started", "runs on " + op.TargetName },
}

func startOrder(op *Operation, vm *model.VM) Order {
	order := Order{
		Action: ActStart, Epoch: op.Epoch, Spec: vm.Spec, Volumes: op.Volumes, Persistent: vm.Persistent, Edits: vm.EditsOn(op.Target),
		Unwatched: vm.EndUnwatched() && (vm.Drift == nil || !vm.Drift.Reverted),
	}
	if op.Spec != nil {
		order.Spec = *op.Spec
	}
	return order
}

func startAnswered(t *transition, answer Answer) bool {
	t.noteAnswer(answer)
	switch answer.Outcome {
	case OutcomeDone:
		if t.Operation.targetAnew(answer.Seen) {
			t.lostWithTarget() // and the order came again after that
		}
		t.started(answer.Note)
	case OutcomeAmbiguous:
		t.enter(Judging)
	default:
		if answer.Code == Overlaid && len(answer.Overlays) > 0 {
			overlaid(t, answer)
			return true
		}
		mayHaveRun(t, answer.Seen)
		t.startFailed(answer.Code, answer.Error)
	}
	return true
}

// mayHaveRun takes note that a guest which the target does not run may have run there: it was seen to end, or nothing tells that it never
// began, because events were missed or the host has booted anew.
func mayHaveRun(t *transition, seen Observation) {
	if seen.Ended || seen.Unseen || t.Operation.targetAnew(seen) {
		t.Wrote = t.Operation.Target
	}
}

// started gives the VM to the node that has started it. Note is what that says of the start.
func (t *transition) started(note string) {
	t.hold(t.Operation.Target, t.Operation.Epoch)
	t.Wrote = t.Operation.Target
	t.VM.StartedAt = t.at
	t.VM.Sticky = slices.Clone(t.Operation.Sticky) // replaces the earlier copies, even if there are none now
	if t.Operation.MakesHome {
		t.VM.Home = t.Operation.Target
	}
	t.VM.Desired = model.Running
	t.VM.CPU, t.VM.PassedCPU = t.Operation.CPU, t.Operation.PassedCPU
	order := startOrder(&t.Operation, &t.VM)
	t.VM.Ran, t.VM.RanSize = ranWith(&order, t.VM.ID), model.Size{Memory: order.Spec.Memory, VCPUs: order.Spec.VCPUs}
	t.VM.Ballooned = order.Spec.MaxMemory > order.Spec.Memory
	t.VM.Pending = changedSince(t.VM.Pending, t.Operation.CreatedAt)
	t.made()
	message := note
	if t.VM.Paused != (model.Stand{}) {
		if message != "" {
			message += "; "
		}
		message += "it was " + t.VM.Paused.Text() + " when its guest ended, and runs now"
	}
	t.VM.Paused = model.Stand{}
	t.end(Done, message)
}

// changedSince are the changes that a start has not taken into account.
func changedSince(pending []model.PendingChange, begun time.Time) []model.PendingChange {
	late := slices.DeleteFunc(slices.Clone(pending), func(p model.PendingChange) bool { return !p.At.After(begun) })
	if len(late) == 0 {
		return nil
	}
	return late
}

// ranWith are the devices that an order has started a VM with.
func ranWith(order *Order, vm string) []model.RanDevice {
	devices, err := Devices(&order.Spec, vm)
	if err != nil {
		return nil
	}
	return Ran(devices)
}

// Ran are devices as the record keeps of a VM which it was started with.
func Ran(devices []domxml.Device) (ran []model.RanDevice) {
	for _, one := range devices {
		ran = append(ran, model.RanDevice{
			Kind: string(one.Kind), Key: one.Key, Source: model.DiskSource(one.Source), Network: one.Network, Media: one.Media,
		})
	}
	return ran
}

// Devices are the disks and interfaces that a node makes of a spec.
func Devices(spec *model.VMSpec, uuid string) ([]domxml.Device, error) {
	wanted := specOf(spec)
	return wanted.Devices(uuid)
}

// Document is what a node makes of a VM's spec, but for what it chooses itself: the machine and the CPU of one that has no document.
func Document(spec *model.VMSpec, vm *model.VM) (string, error) {
	machine := domxml.Machine{DomainType: domxml.VirtKVM}
	if spec.Firmware == model.FirmwareBIOS {
		machine.Arch = "x86_64" // no other has that
	}
	mark := domxml.Mark{Epoch: vm.EpochsGiven() + 1, Operation: "none", Node: "none"} // taken out again
	text, err := domxml.Render(specOf(spec), domxml.Identity{UUID: vm.ID, Name: vm.Name, Mark: mark}, machine)
	if err != nil {
		return "", err
	}
	if text, err = domxml.WithoutMark(text); err != nil {
		return "", err
	}
	var edits []domxml.DeviceEdit
	for _, one := range vm.Edits() {
		edits = append(edits, domxml.DeviceEdit{Kind: domxml.DeviceKind(one.Kind), Key: one.Key, XML: one.XML})
	}
	return domxml.EditDevices(text, edits)
}

func specOf(spec *model.VMSpec) domxml.Spec {
	wanted := domxml.Spec{
		MemoryBytes: int64(spec.Memory), VCPUs: spec.VCPUs, Kernel: spec.Kernel, Initrd: spec.Initrd, Cmdline: spec.Cmdline,
		Networks: spec.Networks, XML: spec.XML, Machine: spec.Machine, Firmware: spec.Firmware, CPU: spec.CPU,
		MaxMemoryBytes: int64(spec.MaxMemory), MaxVCPUs: spec.MaxVCPUs,
	}
	for _, one := range spec.Disks {
		wanted.Disks = append(wanted.Disks, domxml.Disk{
			Path: one.Path, Pool: one.Pool, Volume: one.Volume, Format: one.Format, Bus: one.Bus, ReadOnly: one.ReadOnly,
		})
	}
	return wanted
}

// permanent names the failures that another node would only repeat.
func permanent(code ErrorCode) bool {
	return slices.Contains([]ErrorCode{InvalidXML, Exists, StaleEpoch}, code)
}

func (t *transition) startFailed(code ErrorCode, message string) {
	op := &t.Operation
	op.Excluded = append(op.Excluded, op.Target)
	switch {
	case op.Restart && !op.Cancel && (code == NoPool || code == NoVolume):
		t.awaitStorage(code, message)
	case t.VM.LostTooMany():
		t.notStarted()
		t.end(Failed, "its hosts were lost soon after it had started: "+t.VM.LossesText())
	case permanent(code), op.Pinned != "", op.Cancel, op.Attempt >= MaxAttempts:
		t.notStarted()
		t.end(Failed, message)
	default:
		op.Message, op.Code = message, NoError
		op.Target, op.TargetName, op.Leftover, op.Volumes = "", "", "", nil
		t.enter(Placing)
	}
}

// awaitStorage ends a restart whose storage was not there, as it is after the power of a whole site comes back. It does not count as one:
// the VM is tried until the storage is there.
func (t *transition) awaitStorage(code ErrorCode, message string) {
	t.Operation.Code = code
	t.end(Failed, message)
	t.VM.Restarts = max(t.VM.Restarts-1, 0)
	t.VM.Condition = model.Condition{
		Kind: model.StorageLate, About: t.Operation.Target, Text: "it waits for its storage, and is tried again until that is there: " + message,
	}
}

// notStarted is the state that a VM should have after a failed start. A VM that Berth itself restarts should still run.
func (t *transition) notStarted() {
	if t.Operation.Restart && !t.VM.HA {
		t.VM.Condition = model.Condition{
			Kind: model.HostBooted, About: t.VM.LastNode, Text: "its host has booted anew, and it could not be started again: it is tried again",
		}
	}
	if !t.Operation.Restart || t.Operation.Cancel {
		t.VM.Desired = model.Stopped
	}
}

func judgeStart(t *transition, _, seen Observation) bool {
	if t.Operation.targetAnew(seen) && !seen.State.Holds() {
		t.lostWithTarget()
	}
	switch {
	case seen.State.Holds() && seen.Epoch == t.Operation.Epoch:
		t.started("")
	case !seen.State.Holds():
		mayHaveRun(t, seen)
		t.startUndone(NoError, "the start ended unseen and the node does not run it")
	default:
		t.startUndone(Exists, fmt.Sprintf("the node runs a domain of this UUID under epoch %d", seen.Epoch))
	}
	return true
}

// startUndone fails a start after which volumes may be left.
func (t *transition) startUndone(code ErrorCode, message string) {
	if len(t.Operation.Volumes) == 0 {
		t.startFailed(code, message)
		return
	}
	t.Operation.Code, t.Operation.Message = code, message
	t.clear(t.Operation.Target)
}

func clearTarget(op *Operation, _ *model.VM) Order {
	return Order{Action: ActClear, Epoch: op.Epoch, Volumes: op.Volumes}
}

// clearStartOverdue places the VM anew when the node of the last try is silent. If the volumes are shared it waits, because that
// node might remove them after the next node has made them again.
func clearStartOverdue(t *transition, waited time.Duration) bool {
	op := &t.Operation
	if waited < DiscardPatience || !op.Cancel && slices.ContainsFunc(op.Volumes, isShared) {
		return false
	}
	t.clearedInVain(silent)
	return true
}
