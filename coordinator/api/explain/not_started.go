package explain

import (
	"fmt"

	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
)

// NotStarted tells whether a VM may be started, by what is known of its copies, and what every node says of it.
func NotStarted(survey *evidence.Survey, vm *model.VM) *berthv1.WhyNotStartedResponse {
	found := survey.Of(vm)
	missing, next := found.Missing()
	message := &berthv1.WhyNotStartedResponse{
		SchemaVersion: wire.SchemaVersion, Vm: vm.Name, Runs: found.Runs, MayStart: found.May && vm.Operation == "", Proof: found.Proof,
		Missing: missing, NextStep: next, OperationId: vm.Operation, Condition: vm.Condition.Text,
	}
	if use, used := survey.UsedDisk(vm, ""); used && !found.Runs {
		message.MayStart = false
		message.DiskInUse, message.DiskNextStep = use.Text(vm.Name), use.Next()
	}
	for _, edit := range vm.Edits() {
		if vm.Undecided(&edit) && !found.Runs {
			message.MayStart = false
			message.DiskInUse, message.DiskNextStep = edit.Text(), fmt.Sprintf("'berth vm accept %[1]s' starts it from the newer file, 'berth vm "+
				"revert %[1]s' from that of its record", vm.Name)
		}
	}
	for _, word := range found.Words {
		one := &berthv1.NodeWord{
			Node: word.Name, Standing: string(word.Standing), Why: word.Why, InTheWay: word.InTheWay, NextStep: word.Next, Boot: word.Boot,
		}
		if !word.At.IsZero() {
			one.At = timestamppb.New(word.At)
		}
		message.Nodes = append(message.Nodes, one)
	}
	return message
}
