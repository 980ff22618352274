package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"berth/coordinator/control/drifts"
	"berth/coordinator/control/lead"
	"berth/coordinator/estate"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// startable is the VM to start: a new record, or the one that exists.
func (l *Lifecycle) startable(now scene, request startRequest) (vm model.VM, err error) {
	snapshot, subject := now.snapshot, "vm/"+request.Name
	vm, exists := snapshot.VMByName(request.Name)
	if !exists {
		if request.VM == nil {
			return vm, &lead.Error{
				Code: lead.NotFound, Subject: subject, Message: fmt.Sprintf("there is no VM %q", request.Name),
				NextStep: "give --memory and --vcpus, or --xml, to make it; 'berth vm list' shows the VMs there are",
			}
		}
		if vm, err = l.newVM(snapshot, request.StartVM); err != nil {
			return vm, err
		}
	}
	if vm.Operation != "" {
		return vm, lead.VMBusy(snapshot, vm)
	}
	if vm.Reverting != "" {
		return vm, revertingFirst(&vm, "it is not started with some of them")
	}
	if due, _ := evidence.Discardable(l.Moment(snapshot), &vm); len(due) > 0 {
		return vm, &lead.Error{
			Code: lead.Busy, Subject: subject, Message: fmt.Sprintf(
				"%s discards the paused copy first that a migration has left there", lead.NodeName(snapshot, due[0].Node),
			),
			NextStep: evidence.AwaitDiscard(lead.NodeName(snapshot, due[0].Node)),
		}
	}
	elsewhere, err := l.elsewhere(snapshot, vm, request.last)
	if err != nil {
		return vm, err
	}
	if orphan, is := l.orphaned(snapshot, vm); is {
		return vm, &lead.Error{
			Code: lead.Conflict, Subject: subject,
			Message: fmt.Sprintf(
				"process %d on %s runs VM %q still, and libvirt there does not list it: a start would be a second copy", orphan.Domain.PID,
				orphan.Name, vm.Name,
			),
			NextStep: orphan.EndsOrphan() + ", and start the VM then",
		}
	}
	if elsewhere != "" {
		return vm, drifts.NotStartedThere(now.survey(), &vm, elsewhere)
	}
	if err := onRemoved(now.survey(), &vm); err != nil {
		return vm, err
	}
	if lying := l.fencing.Showing(snapshot, vm.ID, true); lying != "" {
		return vm, &lead.Error{
			Code: lead.Conflict, Subject: subject,
			Message:  fmt.Sprintf("VM %q may run still: node %s, which was proven to be off, answers and shows it", vm.Name, lying),
			NextStep: "boot that machine anew, or stop the copy there by hand, and start the VM then",
		}
	}
	if err := l.accounted(now, &vm, request); err != nil {
		return vm, err
	}
	if exists && request.VM != nil {
		return vm, &lead.Error{
			Code: lead.Exists, Subject: subject, Message: fmt.Sprintf("VM %q exists already, stopped", vm.Name),
			NextStep: fmt.Sprintf("start it as it is with 'berth vm start %s', or delete it first with 'berth vm delete %s'",
				vm.Name, vm.Name),
		}
	}
	return vm, nil
}

// onRemoved refuses to start a VM of which a copy runs on a node that was removed. It is suspended as soon as that node can be told.
func onRemoved(survey *evidence.Survey, vm *model.VM) error {
	for _, one := range evidence.Running(survey.RemovedCopies(vm)) {
		return &lead.Error{
			Code: lead.Conflict, Subject: "vm/" + vm.Name,
			Message: fmt.Sprintf("VM %q runs on %s, a node that was removed and whose agent speaks: a start would be a second copy",
				vm.Name, one.Name),
			NextStep: fmt.Sprintf("it is being suspended, try again in some seconds; 'virsh destroy %s' there ends it",
				model.Argument(one.Domain.Name)),
		}
	}
	return nil
}

// accounted refuses to start a VM of which it is not proven that it runs nowhere. With force what cannot be asked is left out of account,
// and what is shown is not. The error is errAskFirst if its holder has to refuse it and was not asked yet, and an earlyError while nodes
// that have just connected have not listed their domains.
func (l *Lifecycle) accounted(now scene, vm *model.VM, request startRequest) error {
	answer := now.survey().Verdict(vm, request.last.refusedBy(vm))
	subject := "vm/" + vm.Name
	if held := heldBy(&answer, vm); held != nil {
		return held
	}
	if missing, next := answer.Missing(); !answer.May && (!request.Force || !answer.Unknown()) {
		code := lead.Conflict
		if answer.Again || answer.Early() {
			code = lead.Busy
		}
		refusal := &lead.Error{
			Code: code, Subject: subject, Message: fmt.Sprintf("nothing proves that VM %q runs nowhere: %s", vm.Name, missing),
			NextStep: fmt.Sprintf("%s; 'berth vm why-not-started %s' shows what every node says of it", next, vm.Name),
		}
		if answer.Early() {
			return &earlyError{refusal}
		}
		return refusal
	}
	switch last := request.last; {
	case answer.Refuse == "":
	case last.node != answer.Refuse || last.epoch != vm.Epoch:
		return errAskFirst
	case !last.refuses:
		return &lead.Error{
			Code: lead.Busy, Subject: subject, Message: fmt.Sprintf(
				"%s does not show VM %q, and has not said yet that it takes no order for it", lead.NodeName(now.snapshot, answer.Refuse), vm.Name,
			),
			NextStep: "try again in some seconds",
		}
	}
	return nil
}

// forced is what a start that is forced lacks a proof for, as the operation keeps it; empty: nothing is lacking.
func (l *Lifecycle) forced(now scene, vm *model.VM, request startRequest) string {
	if !request.Force {
		return ""
	}
	answer := now.survey().Verdict(vm, request.last.refusedBy(vm))
	missing, _ := answer.Missing()
	if missing == "" {
		return ""
	}
	return fmt.Sprintf("forced by %s without a proof that it runs nowhere (%s): %s", request.Caller, missing, request.Reason)
}

// heldBy refuses to start a VM that its holder runs, or may run.
func heldBy(answer *evidence.Answer, vm *model.VM) error {
	subject := "vm/" + vm.Name
	for _, word := range answer.InTheWay() {
		switch {
		case word.Node != vm.Holder:
		case word.Standing == evidence.NotYetTold:
			return &lead.Error{
				Code: lead.Busy, Subject: subject,
				Message:  fmt.Sprintf("%s does not show VM %q, but has not listed its domains since the VM came there", word.Name, vm.Name),
				NextStep: "try again in half a minute",
			}
		case word.Standing == evidence.ShowsIt:
			return &lead.Error{
				Code: lead.Exists, Subject: subject,
				Message:  fmt.Sprintf("VM %q runs already, on %s", vm.Name, word.Name),
				NextStep: fmt.Sprintf("see 'berth vm show %s', or choose another name", vm.Name),
			}
		default:
			return &lead.Error{
				Code: lead.Exists, Subject: subject, Message: fmt.Sprintf("VM %q may run already: %s %s", vm.Name, word.Name, word.Why),
				NextStep: word.Next,
			}
		}
	}
	return nil
}

// newVM completes the record of a VM that is not there yet. Whether its links lead to what they should shows when it inherits.
func (l *Lifecycle) newVM(snapshot *state.Snapshot, request StartVM) (model.VM, error) {
	invalid := func(err error, next string) error {
		return &lead.Error{Code: lead.Invalid, Subject: "vm/" + request.Name, Message: err.Error(), NextStep: next}
	}
	vm := *request.VM
	vm.Name = request.Name
	if err := model.ValidateName("VM", vm.Name); err != nil {
		return model.VM{}, invalid(err, "choose another name")
	}
	if err := model.ValidateSpec(vm.Spec); err != nil {
		return model.VM{}, invalid(err, "see 'berth vm start --help'")
	}
	for _, key := range vm.Keys {
		if err := model.ValidateKey(model.KindVM, key); err != nil {
			return model.VM{}, invalid(err, "see 'berth key --help'")
		}
	}
	if vm.ID == "" {
		vm.ID = model.NewUUID(l.Random(), l.Random())
	}
	if other, taken := snapshot.VM(vm.ID); taken {
		return model.VM{}, &lead.Error{
			Code: lead.Exists, Subject: "vm/" + vm.Name, Message: fmt.Sprintf("UUID %s belongs to VM %q", vm.ID, other.Name),
			NextStep: "remove <uuid> from the XML, or start that VM",
		}
	}
	if request.Root != nil {
		vm.Disks = append([]string{request.Root.ID}, vm.Disks...)
	}
	// A VM of this UUID may have been here before: agents remember its epochs.
	last := snapshot.LastEpoch(vm.ID)
	vm.Epoch, vm.LastEpoch, vm.CreatedAt = last, last, l.Now()
	return vm, nil
}

// orphaned is a copy of a VM that runs on a node whose libvirt has forgotten it; false: no node shows one.
func (l *Lifecycle) orphaned(snapshot *state.Snapshot, vm model.VM) (evidence.Copy, bool) {
	shown := l.fencing.Strangers(snapshot, vm)
	if vm.Holder != "" {
		shown = append(shown, vm.Holder)
	}
	for _, node := range shown {
		facts := l.Inventory.Facts(node, l.Now())
		if domain := facts.Domain(vm.ID); domain != nil && domain.State == model.DomainOrphan {
			return evidence.Copy{Node: node, Name: lead.NodeName(snapshot, node), Domain: *domain}, true
		}
	}
	return evidence.Copy{}, false
}

// errAskFirst says that the node which had a VM last shows it, and was not asked yet.
var errAskFirst = errors.New("the node that had the VM last is to be asked")

// earlyError is a refusal because nodes have connected that have not listed their domains yet.
type earlyError struct{ refusal *lead.Error }

// Error implements error.
func (e *earlyError) Error() string { return e.refusal.Message }

// Unwrap is the refusal.
func (e *earlyError) Unwrap() error { return e.refusal }

func isEarly(err error) bool { return errors.As(err, new(*earlyError)) }

// elsewhere is the ID of a node that shows a VM which it does not hold; empty: none does. One that has refused the VM for good does
// not count. The error is errAskFirst if nobody has asked it.
func (l *Lifecycle) elsewhere(snapshot *state.Snapshot, vm model.VM, last lastWord) (string, error) {
	for _, node := range l.fencing.Strangers(snapshot, vm) {
		switch {
		case node != vm.LastNode || vm.Epoch == 0:
			return node, nil
		case last.node != node || last.epoch != vm.Epoch:
			return "", errAskFirst
		case !last.refuses:
			return node, nil
		}
	}
	return "", nil
}

// lastWordLimit is how long the node that had a VM last has to answer.
const lastWordLimit = 500 * time.Millisecond

// askLastNode has the node that had a VM last refuse it for good, if that node still shows it, because it may only not have told yet
// that it has stopped the VM; or if it is recorded to run the VM and does not. The answer can take half a second, so it is waited
// for before the turn, and others decide meanwhile. It holds for as long as the VM has the same epoch: what a node has refused it
// refuses for ever.
func (l *Lifecycle) askLastNode(ctx context.Context, name string) lastWord {
	snapshot := l.Store.Snapshot()
	vm, exists := snapshot.VMByName(name)
	if !exists || vm.Operation != "" || vm.Epoch == 0 || !l.Leading() || lead.Quarantined(snapshot) != nil {
		return lastWord{}
	}
	if due, _ := evidence.Discardable(l.Moment(snapshot), &vm); len(due) > 0 {
		return lastWord{}
	}
	node := vm.LastNode
	switch {
	case vm.Holder != "" && l.Moment(snapshot).Lacks(vm):
		node = vm.Holder
	case !slices.Contains(l.fencing.Strangers(snapshot, vm), node):
		return lastWord{}
	}
	return lastWord{node: node, epoch: vm.Epoch, refuses: l.Refuse(ctx, node, &vm, lastWordLimit) == nil}
}

// untold refuses to make a disk that may have been made after the backup that the state was restored from: what its guest has
// written there would be gone.
func untold(snapshot *state.Snapshot, vm model.VM) error {
	restored := lead.RestoredAt(snapshot)
	for _, id := range vm.Disks {
		disk, known := snapshot.Resource(id)
		if !known || disk.Volume != nil || !estate.IsVolume(&disk) || restored.IsZero() || disk.CreatedAt.After(restored) {
			continue
		}
		return &lead.Error{
			Code: lead.Conflict, Subject: "vm/" + vm.Name,
			Message: fmt.Sprintf("disk %q of VM %q was not made yet when the backup was taken that the state comes from, and may have been "+
				"since: a start would make it anew",
				disk.Name, vm.Name),
			NextStep: fmt.Sprintf("look for a volume %s* on the nodes with 'virsh vol-list'; then give the VM another disk, and copy what is there",
				model.VolumeName(disk.ID, "")),
		}
	}
	return nil
}
