package drifts

import (
	"errors"
	"fmt"
	"slices"

	"berth/coordinator/control/lead"
	"berth/coordinator/drift"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/shared/domxml"
)

// DisksFree refuses to start a VM while another domain writes to one of its disks. No word overrides that: whoever means it makes the
// disk shareable.
func DisksFree(survey func() *evidence.Survey, vm *model.VM, target string) error {
	if len(vm.Disks)+len(vm.Spec.Disks)+len(vm.Drifted()) == 0 && vm.Spec.XML == "" {
		return nil
	}
	now := survey()
	use, used := now.UsedDisk(vm, target)
	if !used {
		return nil
	}
	refusal := &lead.Error{
		Code: lead.Conflict, Subject: "vm/" + vm.Name, Message: use.Text(vm.Name),
		NextStep: fmt.Sprintf("%s; 'berth vm why-not-started %s' shows what is in the way", use.Next(), vm.Name),
	}
	return going(now, use.Failed, refusal)
}

// NotStartedThere refuses to start a VM of which a node shows a domain that Berth has not started there, or not successfully.
func NotStartedThere(now *evidence.Survey, vm *model.VM, node string) error {
	refusal := &lead.Error{
		Code: lead.Conflict, Subject: "vm/" + vm.Name,
		Message: fmt.Sprintf("a domain with the UUID of VM %q is on %s, and Berth has not started it there", vm.Name, now.NodeName(node)),
		NextStep: fmt.Sprintf(
			"see 'berth vm show %s': take it over with 'berth vm adopt %s' if it runs there, or end it with 'virsh destroy' "+
				"('systemctl restart libvirtd' there, if that hangs)", vm.Name, vm.Name,
		),
	}
	facts := now.Facts(node)
	failed := now.FailedStart(facts.Domain(vm.ID))
	if failed != nil {
		refusal.Message = fmt.Sprintf("a domain with the UUID of VM %q is on %s, as that node has shown last: %s", vm.Name, now.NodeName(node),
			failed.Text())
		refusal.NextStep = "try again in some seconds"
	}
	return going(now, failed, refusal)
}

// going is a refusal because of a domain that a failed start may have left. It is worth asking again while that has just failed.
func going(now *evidence.Survey, failed *evidence.FailedStart, refusal *lead.Error) error {
	if failed == nil {
		return refusal
	}
	refusal.Code = lead.Busy
	if failed.GoesSoon(now.At) {
		return &goingError{refusal}
	}
	return refusal
}

// goingError is a refusal because of a domain that its node is about to tell gone.
type goingError struct{ refusal *lead.Error }

// Error implements error.
func (e *goingError) Error() string { return e.refusal.Message }

// Unwrap is the refusal.
func (e *goingError) Unwrap() error { return e.refusal }

// GoesSoon tells whether a refusal will not hold in a moment, so that it is worth asking again.
func GoesSoon(err error) bool { return errors.As(err, new(*goingError)) }

// Unused refuses a disk that somebody else has: a domain that runs, or another VM by its record. Two that write to one disk destroy
// what is on it.
func Unused(
	snapshot *state.Snapshot, survey func() *evidence.Survey, vm *model.VM, edits []model.DeviceEdit,
) error {
	for _, edit := range edits {
		if edit.Kind != string(domxml.DiskDevice) || edit.Is == "" || edit.Media || isReadOnly(edit.XML) {
			continue
		}
		alone := model.VM{ID: vm.ID, Name: vm.Name, LastNode: vm.LastNode, Drift: &model.Drift{Edits: []model.DeviceEdit{edit}}}
		if err := DisksFree(survey, &alone, vm.Holder); err != nil {
			return err
		}
		for _, disk := range snapshot.Resources(model.KindDisk) {
			pool, _ := snapshot.Resource(volumePool(&disk))
			if disk.Volume != nil && disk.Volume.Name == edit.Source.Volume && model.PoolSettingsOf(&pool).Source == edit.Source.Pool {
				return &lead.Error{
					Code: lead.Conflict, Subject: "disk/" + disk.Name,
					Message:  fmt.Sprintf("volume %s is the disk %q of Berth, which is attached by its name", edit.Source.Text(), disk.Name),
					NextStep: fmt.Sprintf("'berth vm set %s --attach %s' gives it to the VM at its next start", vm.Name, disk.Name),
				}
			}
		}
		for _, live := range snapshot.LiveOperations() {
			with := func(e model.DeviceEdit) bool {
				return e.Kind == edit.Kind && e.Is != "" && !e.Media && e.Source == edit.Source
			}
			if live.VM != vm.ID && slices.ContainsFunc(live.Edits, with) {
				return &lead.Error{
					Code: lead.Conflict, Subject: "vm/" + live.VMName, Operation: live.ID,
					Message:  fmt.Sprintf("disk %s is being attached to VM %q: two writers destroy what is on it", edit.Source.Text(), live.VMName),
					NextStep: fmt.Sprintf("see 'berth operation show %s'", live.ID),
				}
			}
		}
		for other := range snapshot.SharedVMs() {
			near := other.LastNode == vm.LastNode || edit.Source.Path == ""
			if other.ID != vm.ID && near && hasDisk(snapshot, other, edit.Source) {
				return &lead.Error{
					Code: lead.Conflict, Subject: "vm/" + other.Name,
					Message:  fmt.Sprintf("disk %s is one of VM %q: two that write to it destroy what is on it", edit.Source.Text(), other.Name),
					NextStep: fmt.Sprintf("detach it there first: 'berth vm show %s' names it", other.Name),
				}
			}
		}
	}
	return nil
}

// isReadOnly tells whether a guest cannot write to the disk of an element.
func isReadOnly(element string) bool {
	found, err := domxml.DeviceOf(element)
	return err == nil && found.ReadOnly
}

func volumePool(disk *model.Resource) string {
	if disk.Volume == nil {
		return ""
	}
	return disk.Volume.Pool
}

// hasDisk tells whether a VM is started with a disk that it may write to, as its record names it.
func hasDisk(snapshot *state.Snapshot, vm *model.VM, source model.DiskSource) bool {
	baseline, _ := drift.Baseline(snapshot, vm) // links that lead nowhere have no disks
	for i := range baseline {
		gone := slices.ContainsFunc(vm.Edits(), func(e model.DeviceEdit) bool { return e.Names(string(baseline[i].Kind), baseline[i].Key) })
		if !gone && !baseline[i].ReadOnly && !baseline[i].Media && model.DiskSource(baseline[i].Source) == source {
			return true
		}
	}
	return slices.ContainsFunc(vm.Edits(), func(e model.DeviceEdit) bool { return !e.Media && e.Source == source })
}

// UnusedBy refuses a document with a disk that the one before did not have and that somebody else has, as Unused does.
func UnusedBy(snapshot *state.Snapshot, survey func() *evidence.Survey, before, after *model.VM) error {
	had, err := operation.Devices(&before.Spec, before.ID)
	if err != nil {
		had = nil // then all of them are new
	}
	has, err := operation.Devices(&after.Spec, after.ID)
	if err != nil {
		return &lead.Error{Code: lead.Invalid, Subject: "vm/" + after.Name, Message: err.Error(), NextStep: "mend the document"}
	}
	var edits []model.DeviceEdit
	for _, one := range has {
		known := slices.ContainsFunc(had, func(d domxml.Device) bool { return d.Kind == one.Kind && d.Source == one.Source && !d.ReadOnly })
		if one.Kind == domxml.DiskDevice && one.Source != (domxml.Source{}) && !one.Media && !one.ReadOnly && !known {
			source := model.DiskSource(one.Source)
			edits = append(edits, model.DeviceEdit{Kind: string(one.Kind), Key: one.Key, Is: source.Text(), Source: source, XML: one.XML})
		}
	}
	return Unused(snapshot, survey, after, edits)
}
