package vm

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

// runs is how large a VM is where it runs, or what its next start makes it.
func runs(vm *berthv1.VM) *berthv1.VMSize {
	if vm.GetRunning() != nil {
		return vm.GetRunning()
	}
	return &berthv1.VMSize{MemoryBytes: vm.GetSpec().GetMemoryBytes(), Vcpus: vm.GetSpec().GetVcpus()}
}

// mark stands behind what a VM's next start will have otherwise.
const mark = "*"

// listedSize is how large a VM is where it runs, marked where its next start will have it otherwise. Anything else that waits for that
// marks its memory.
func listedSize(vm *berthv1.VM) (memory, vcpus string, waits bool) {
	memory, vcpus = term.Size(runs(vm).GetMemoryBytes()), strconv.Itoa(int(runs(vm).GetVcpus()))
	onlyVCPUs := func(one *berthv1.PendingChange) bool { return one.GetField() == model.VCPUsField }
	next := vm.GetNextStart()
	if slices.ContainsFunc(next, onlyVCPUs) {
		vcpus += mark
	}
	if slices.ContainsFunc(next, func(one *berthv1.PendingChange) bool { return !onlyVCPUs(one) }) {
		memory += mark
	}
	return memory, vcpus, len(next) > 0
}

// nextStartTitles are the names of fields that are not shown as they are called.
var nextStartTitles = map[string]string{model.VCPUsField: "vCPUs"}

// nextStartRows tell what the next start of a VM will have otherwise than what runs, and who has changed it when.
func nextStartRows(a *term.App, vm *berthv1.VM, refused string) (rows [][2]string) {
	const title = "at its next start"
	for _, one := range vm.GetNextStart() {
		text := fmt.Sprintf("%s %s, now %s", cmp.Or(nextStartTitles[one.GetField()], one.GetField()), cmp.Or(one.GetNext(), "(none)"),
			cmp.Or(one.GetNow(), "(none)"))
		if one.GetSetBy() != "" {
			text += fmt.Sprintf("; set by %s %s", one.GetSetBy(), a.At(one.GetSetAt()))
		} else {
			text += fmt.Sprintf("; changed beside Berth: 'berth vm accept %s' keeps it", vm.GetName())
		}
		rows = append(rows, [2]string{title, text})
	}
	for _, one := range vm.GetChangedLive() {
		rows = append(rows, [2]string{"changed now", fmt.Sprintf("%s to %s by %s %s", cmp.Or(nextStartTitles[one.GetField()], one.GetField()),
			one.GetNext(), one.GetSetBy(), a.At(one.GetSetAt()))})
	}
	if refused != "" {
		rows = append(rows, [2]string{title, "no node could take it, as they are now: " + refused})
	}
	drift := vm.GetDrift()
	if drift == nil {
		return rows
	}
	seen := fmt.Sprintf("changed beside Berth, seen %s on %s", a.At(drift.GetSince()), drift.GetNode())
	if !slices.ContainsFunc(drift.GetDevices(), func(one *berthv1.DriftedDevice) bool { return one.GetBy() == "" }) {
		seen = "changed with Berth"
	}
	devices := "devices as it ran last; " + seen
	switch {
	case drift.GetReverted():
		devices = "devices as its record says; " + seen + ", and reverted"
	case !drift.GetAccepted() && slices.ContainsFunc(drift.GetDevices(), (*berthv1.DriftedDevice).GetFound):
		devices = fmt.Sprintf("not before somebody has decided which disk is right: 'berth vm accept %[1]s' for the newer one, 'berth vm revert "+
			"%[1]s' for that of its record", vm.GetName())
	case drift.GetAccepted():
		devices = "devices as it ran last; " + seen + ", and accepted"
	}
	return append(rows, [2]string{title, devices})
}
