package explain

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/refusal"
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// ReplayDecision makes a decision again from the figures that were kept with it, and tells whether it is the same.
func (s *DecisionCalls) ReplayDecision(
	ctx context.Context, request *connect.Request[berthv1.ReplayDecisionRequest],
) (*connect.Response[berthv1.ReplayDecisionResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	decision, err := s.decision(ctx, p, request.Msg.GetId())
	if err != nil {
		return nil, err
	}
	response := &berthv1.ReplayDecisionResponse{SchemaVersion: wire.SchemaVersion}
	again, err := placement.Replay(decision)
	var differs *placement.DiffersError
	switch {
	case errors.As(err, &differs):
		response.Differences = differs.Differences
	case err != nil:
		return nil, refusal.New(rpc.Conflict, "decision/"+decision.ID,
			fmt.Sprintf("what it kept is shown by 'berth decision show %s --full'", decision.ID),
			"decision %s cannot be made again: %w", decision.ID, err)
	default:
		response.Equal = true
	}
	response.Decision = wire.Decision(again)
	return connect.NewResponse(response), nil
}

// WhyVM answers why a VM is where it is: with the decision that placed it, or that none has. Of a VM that is nowhere because a start was
// refused it answers with the refusal, also if the start was to make the VM.
func (s *DecisionCalls) WhyVM(
	ctx context.Context, request *connect.Request[berthv1.WhyVMRequest],
) (*connect.Response[berthv1.WhyVMResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	ref := request.Msg.GetVm()
	vm, known := p.VMByRef(ref)
	decision, refused := reasons{p}.refusing(ref, vm)
	switch {
	case refused:
		vm.Name = decision.Request.VMName // one that was not made has nothing else
	case !known:
		return nil, refusal.NotFound("vm", ref)
	default:
		if beside := (reasons{p}).besideBerth(&vm); len(beside) > 0 {
			return connect.NewResponse(&berthv1.WhyVMResponse{
				SchemaVersion: wire.SchemaVersion, Answer: append(beside, reasons{p}.movedInVain(&vm)...),
			}), nil
		}
		if decision, err = s.placing(ctx, p, vm); err != nil {
			return nil, err
		}
	}
	decision = placement.Explain(decision)
	return connect.NewResponse(&berthv1.WhyVMResponse{
		SchemaVersion: wire.SchemaVersion, Decision: wire.Decision(decision), Answer: reasons{p}.why(vm, decision),
	}), nil
}

// reasons finds in a moment why a VM is where it is.
type reasons struct{ *answer.Moment }

// refusing is the decision that left a VM without a node: the newest one about it, if that found none. A migration
// that was refused left it where it was. The VM is the zero one if there is none of the name.
func (p reasons) refusing(ref string, vm model.VM) (placement.Decision, bool) {
	if ref == "" || vm.Holder != "" || vm.Operation != "" {
		return placement.Decision{}, false
	}
	for _, decision := range p.DecisionsAbout(0, "", func(r *placement.Request) bool {
		return about(ref)(r) || vm.ID != "" && r.VM == vm.ID
	}) {
		if !decision.DryRun {
			return decision, decision.Winner == "" && !decision.Request.Purpose.Moves()
		}
	}
	return placement.Decision{}, false
}

// placing is the decision that put a VM where it is: the last one, or an earlier one if the node that the last one chose
// does not hold the VM, because a migration goes on or failed. If none did, it is the last one all the same.
func (s *DecisionCalls) placing(ctx context.Context, p *answer.Moment, vm model.VM) (placement.Decision, error) {
	last, err := s.lastPlacing(ctx, p, vm)
	if err != nil || vm.Holder == "" || last.Winner == vm.Holder {
		return last, err
	}
	for _, decision := range p.DecisionsAbout(0, "", func(r *placement.Request) bool { return r.VM == vm.ID }) {
		if decision.Winner == vm.Holder && !decision.DryRun {
			return decision, nil
		}
	}
	return last, nil
}

func (s *DecisionCalls) lastPlacing(ctx context.Context, p *answer.Moment, vm model.VM) (placement.Decision, error) {
	if vm.Decision == "" {
		return placement.Decision{}, refusal.New(rpc.NotFound, "vm/"+vm.Name, fmt.Sprintf(
			"see what was decided about it with 'berth decision list --vm %s'", vm.Name,
		),
			"no decision has placed VM %q yet", vm.Name)
	}
	decision, kept, err := s.FindDecision(ctx, p, vm.Decision)
	if err == nil && !kept {
		err = refusal.New(rpc.NotFound, "decision/"+vm.Decision, fmt.Sprintf(
			"see what is decided now with 'berth vm migrate %s --best --dry-run'", vm.Name,
		),
			"the decision %s, which placed VM %q, is too old to be kept", vm.Decision, vm.Name)
	}
	return decision, err
}

// why is the answer in words, one line each. The decision is explained.
func (p reasons) why(vm model.VM, decision placement.Decision) []string {
	if decision.Winner == "" {
		lines := []string{fmt.Sprintf("%s runs nowhere: decision %s (%s, asked by %s, %s) refused it: %s",
			vm.Name, decision.ID, decision.Request.Purpose, decision.Caller, p.when(decision.At), decision.Reason)}
		if decision.Counterfactual != "" {
			lines = append(lines, "what would do: "+decision.Counterfactual)
		}
		return lines
	}
	lines := []string{fmt.Sprintf("%s was placed on %s by decision %s (%s, asked by %s, %s): %s",
		vm.Name, decision.WinnerName, decision.ID, decision.Request.Purpose, decision.Caller, p.when(decision.At), decision.Reason)}
	const most = 3 // nodes that are compared with the winner; 'why-not' answers for any other
	lines = append(lines, placement.Behind(&decision, most)...)
	if decision.Counterfactual != "" {
		lines = append(lines, decision.Counterfactual)
	}
	switch {
	case vm.Holder == "" && vm.Operation == "":
		lines = append(lines, "no node holds it now")
	case vm.Holder != "" && vm.Holder != decision.Winner:
		lines = append(lines, fmt.Sprintf("it is on %s, and no decision that is kept put it there", p.NodeName(vm.Holder)))
	}
	return append(lines, p.movedInVain(&vm)...)
}

// WhyNot answers why a VM is not on a certain node: as it would be decided now, or as a decision that is named has found.
func (s *DecisionCalls) WhyNot(
	ctx context.Context, request *connect.Request[berthv1.WhyNotRequest],
) (*connect.Response[berthv1.WhyNotResponse], error) {
	message := request.Msg
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	if vm, known := p.VMByRef(message.GetVm()); known && message.GetDecisionId() == "" {
		return s.whyNotNow(ctx, p, vm, message.GetNode())
	}
	decision, err := s.decisionAbout(ctx, p, message.GetVm(), message.GetDecisionId())
	if err != nil {
		return nil, err
	}
	against, err := placement.WhyNot(decision, message.GetNode())
	if errors.Is(err, placement.ErrNodeNotKept) {
		return nil, reasons{p}.notLookedAt(decision, message.GetNode(), err)
	}
	if err != nil {
		return nil, err
	}
	response := &berthv1.WhyNotResponse{
		SchemaVersion: wire.SchemaVersion, Node: wire.DecisionNode(against.Node), Changes: against.Changes, DecisionId: decision.ID,
		At: timestamppb.New(decision.At),
	}
	for _, why := range against.Why {
		if against.Won {
			why = fmt.Sprintf("decision %s did take %s: %s", decision.ID, against.Node.Name, why)
		}
		response.Answer = append(response.Answer, why)
	}
	return connect.NewResponse(response), nil
}

// whyNotNow answers why a VM is not on a node as it would be decided now. What a decision has found before may not be so any more.
func (s *DecisionCalls) whyNotNow(
	ctx context.Context, p *answer.Moment, vm model.VM, ref string,
) (*connect.Response[berthv1.WhyNotResponse], error) {
	node, known := p.NodeByRef(ref)
	if !known {
		return nil, refusal.NotFound("node", ref)
	}
	purpose := placement.ForStart
	if vm.Holder != "" {
		purpose = placement.ForMigrate
	}
	judged, err := s.Control.Judge(vm, purpose, "")
	if err != nil {
		return nil, err
	}
	against, err := placement.WhyNot(judged.Decision, node.ID)
	if errors.Is(err, placement.ErrNodeNotKept) { // one of many, or one of another cluster
		if judged, err = s.Control.Judge(vm, purpose, node.ID); err != nil {
			return nil, err
		}
		against, err = placement.WhyNot(judged.Decision, node.ID)
	}
	if errors.Is(err, placement.ErrNodeNotKept) {
		return nil, reasons{p}.notLookedAt(judged.Decision, ref, err)
	}
	if err != nil {
		return nil, err
	}
	response := &berthv1.WhyNotResponse{
		SchemaVersion: wire.SchemaVersion, Node: wire.DecisionNode(against.Node), Changes: against.Changes, At: timestamppb.New(p.At),
	}
	switch {
	case vm.Holder == node.ID:
		response.Answer = append(response.Answer, fmt.Sprintf("%s runs on %s: 'berth vm why %s' tells why", vm.Name, node.Name, vm.Name))
	case judged.Held != "":
		response.Answer = append(response.Answer, judged.Held)
	}
	for _, why := range against.Why {
		switch {
		case against.Won && vm.Holder == "":
			why = fmt.Sprintf("%s would take it now: %s", node.Name, why)
		case against.Won && vm.Holder != node.ID && judged.Held == "":
			why = fmt.Sprintf("%s would take it now ('berth vm migrate %s --to %s'): %s", node.Name, vm.Name, node.Name, why)
		}
		response.Answer = append(response.Answer, why)
	}
	if placed, err := s.placing(ctx, p, vm); err == nil {
		if before := (reasons{p}).since(placed, node.ID, against); before != "" {
			response.Answer = append(response.Answer, before)
		}
	}
	return connect.NewResponse(response), nil
}

// decisionAbout is the decision that a question means: the one that is named, or else the newest one about a VM that was not made. A start
// that was refused leaves no VM, but its decision.
func (s *DecisionCalls) decisionAbout(ctx context.Context, p *answer.Moment, ref, id string) (placement.Decision, error) {
	vm, known := p.VMByRef(ref)
	if id != "" {
		decision, err := s.decision(ctx, p, id)
		switch {
		case err != nil:
			return decision, err
		case !about(ref)(&decision.Request) && (!known || decision.Request.VM != vm.ID):
			return decision, refusal.New(rpc.Invalid, "decision/"+decision.ID, fmt.Sprintf("see 'berth decision list --vm %s'", ref),
				"decision %s is about VM %q, not about %q", decision.ID, decision.Request.VMName, ref)
		}
		return decision, nil
	}
	newest := p.DecisionsAbout(1, "", func(r *placement.Request) bool { return ref != "" && about(ref)(r) })
	if len(newest) == 0 {
		return placement.Decision{}, refusal.NotFound("vm", ref)
	}
	return newest[0], nil
}

// notLookedAt says why a decision has nothing about a node.
func (p reasons) notLookedAt(decision placement.Decision, ref string, cause error) error {
	node, known := p.NodeByRef(ref)
	switch {
	case !known:
		return refusal.NotFound("node", ref)
	case node.Cluster != decision.Request.Cluster && placement.WhyNotCluster(decision, node.Cluster) != "":
		return refusal.New(rpc.Conflict, "node/"+node.Name, fmt.Sprintf("see all clusters with 'berth decision show %s --full'", decision.ID),
			"node %s is in another cluster: %s", node.Name, placement.WhyNotCluster(decision, node.Cluster))
	case node.Cluster != decision.Request.Cluster && decision.Request.Cluster != "":
		return refusal.New(rpc.Conflict, "node/"+node.Name, "a VM runs in the cluster of its VDC: see 'berth vdc set --help'",
			"node %s is in cluster %s, and decision %s was made in cluster %s", node.Name, node.Cluster, decision.ID, decision.Request.Cluster)
	default:
		return refusal.New(rpc.Conflict, "node/"+node.Name,
			fmt.Sprintf("ask what would be decided now: 'berth vm migrate %s --to %s --dry-run'", decision.Request.VMName, node.Name), "%w", cause)
	}
}
