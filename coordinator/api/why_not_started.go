package api

import (
	"context"
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/refusal"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
)

// WhyNotStarted tells whether a VM may be started, and what every node says of it: so that the one who waits sees which word or which
// machine is waited for.
func (s *queryCalls) WhyNotStarted(
	ctx context.Context, request *connect.Request[berthv1.WhyNotStartedRequest],
) (*connect.Response[berthv1.WhyNotStartedResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	vm, known := p.VMByRef(request.Msg.GetVm())
	if !known {
		return nil, refusal.NotFound("vm", request.Msg.GetVm())
	}
	return answer.WhenLeading(ctx, s.Source, func() (*connect.Response[berthv1.WhyNotStartedResponse], error) {
		survey := s.Control.Survey(p.Snapshot)
		found := survey.Of(&vm)
		missing, next := found.Missing()
		message := &berthv1.WhyNotStartedResponse{
			SchemaVersion: wire.SchemaVersion, Vm: vm.Name, Runs: found.Runs, MayStart: found.May && vm.Operation == "", Proof: found.Proof,
			Missing: missing, NextStep: next, OperationId: vm.Operation, Condition: vm.Condition.Text,
		}
		if use, used := survey.UsedDisk(&vm, ""); used && !found.Runs {
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
		return connect.NewResponse(message), nil
	})
}
