package estates

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/refusal"
	"berth/coordinator/consensus"
	"berth/coordinator/document"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/scenario/format"
	"berth/coordinator/state"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// ApplyEstate makes the estate what a document says: one command, so as a whole or not at all.
func (s *ResourceCalls) ApplyEstate(
	ctx context.Context, request *connect.Request[berthv1.ApplyEstateRequest],
) (*connect.Response[berthv1.ApplyEstateResponse], error) {
	message := request.Msg
	declared, found := document.Parse(cmp.Or(message.GetFile(), "document"), message.GetDocument())
	if len(found) > 0 {
		return nil, refusal.Problems("estate", found)
	}
	response := &berthv1.ApplyEstateResponse{SchemaVersion: wire.SchemaVersion, DryRun: message.GetDryRun()}
	_, err := s.Propose(ctx, message.GetRequestId(), func(p *answer.Moment) (state.Command, error) {
		plan, found := estate.Diff(p.Declared(), declared, message.GetPrune())
		if len(found) > 0 {
			return state.Command{}, refusal.Problems("estate", found)
		}
		if err := admitted(ctx, p, plan); err != nil {
			return state.Command{}, err
		}
		response.Changes, response.Warnings = wire.Changes(plan.Changes), groupWarnings(p, plan)
		if message.GetDryRun() || len(plan.Changes) == 0 {
			return state.Command{}, answer.ErrUnchanged
		}
		if err := prunable(p, plan); err != nil {
			return state.Command{}, err
		}
		return applying(ctx, p, plan), nil
	})
	if errors.Is(err, consensus.ErrTooLarge) {
		return nil, refusal.New(rpc.Invalid, "estate", "split the document and apply its parts without --prune, what others link to first: "+
			"what a document leaves out stays as it is", "%w", err)
	}
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(response), nil
}

// admitted refuses a document that declares what not all of its clusters permit. What clusters permit is what they did before the document:
// whoever may apply it says so first.
func admitted(ctx context.Context, p *answer.Moment, plan estate.Plan) error {
	for i := range plan.Changes {
		change := &plan.Changes[i]
		var err error
		switch {
		case change.VM != nil:
			var before *model.VMSpec
			if old, known := p.VM(change.VM.ID); known {
				before = &old.Spec
			}
			err = p.AdmitVM(ctx, change.VM, before)
		case change.Resource != nil:
			var before *model.Resource
			if old, known := p.Resource(change.Resource.ID); known {
				before = &old
			}
			err = p.AdmitResource(ctx, before, change.Resource)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// prunable refuses to forget a VM that the nodes show running: that is not declared, so the estate cannot tell.
func prunable(p *answer.Moment, plan estate.Plan) error {
	for _, change := range plan.Changes {
		if vm, known := p.VM(change.DeleteID); known && change.Kind == model.KindVM {
			if err := answer.Deletable(p, vm); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxTold is how many changes of one document the history tells one by one. Of more it has the sum, so that one document
// does not push everything else out of it.
const maxTold = 100

// applying is the command that carries out a plan. It expects what the plan was judged on: every record that changes and
// every one that those link to.
func applying(ctx context.Context, p *answer.Moment, plan estate.Plan) state.Command {
	masters := make(map[string]bool)
	for _, change := range plan.Changes {
		if change.Resource != nil && resourceID(*change.Resource, "") == masterID {
			masters[change.Name] = true
		}
	}
	plan.Assign(p.At, func(kind model.Kind, name string) string {
		switch {
		case kind == model.KindVM:
			return answer.NewUUID()
		case kind == model.KindBillingEntity && masters[name]:
			return masterID
		default:
			return answer.NewID(p.At)
		}
	})
	command := state.Command{Kind: "apply estate"}
	counts := make(map[estate.Action]int)
	var linked []string
	for _, change := range plan.Changes {
		counts[change.Action]++
		linked = append(linked, applyOne(ctx, p, &command, change)...)
		if len(plan.Changes) <= maxTold {
			p.Tell(ctx, &command, eventOf(change), string(change.Kind)+"/"+change.Name, "%s",
				answer.Because(past[change.Action], answer.FieldsText(change.Fields)))
		}
	}
	p.ExpectLinks(&command, linked...)
	p.Tell(ctx, &command, "estate.applied", "estate", "%d created, %d changed, %d deleted",
		counts[estate.Create], counts[estate.Modify], counts[estate.Delete])
	return command
}

// applyOne puts one change into the command, and returns the IDs of what the changed record links to.
func applyOne(ctx context.Context, p *answer.Moment, command *state.Command, change estate.Change) (links []string) {
	expect := func(table state.Table, id string) {
		command.Expect = append(command.Expect, state.Expectation{Table: table, ID: id, Revision: change.Revision})
	}
	switch {
	case change.Resource != nil:
		expect(state.Resources, change.Resource.ID)
		command.Resources = append(command.Resources, *change.Resource)
		links = answer.LinksOf(*change.Resource)
		if change.Kind == model.KindGroup {
			links = append(links, groupFacts{p}.neighbours(change.Resource)...)
		}
		return links
	case change.Node != nil:
		expect(state.Nodes, change.Node.ID)
		command.Nodes = append(command.Nodes, *change.Node)
		return []string{p.Cluster(change.Node.Cluster).ID}
	case change.VM != nil:
		vm := *change.VM
		if before, known := p.VM(vm.ID); known {
			p.Defer(ctx, &before, &vm, change.Fields)
		}
		if change.Action == estate.Create { // an ID that was used before goes on from its last epoch
			vm.LastEpoch = p.LastEpoch(vm.ID)
		}
		expect(state.VMs, vm.ID)
		command.VMs = append(command.VMs, vm)
		return slices.Concat([]string{vm.VDC, vm.Offer, vm.Image}, vm.Disks, vm.NICs)
	default:
		table := state.Resources
		if change.Kind == model.KindVM {
			table = state.VMs
		}
		expect(table, change.DeleteID)
		command.Delete = append(command.Delete, state.Record{Table: table, ID: change.DeleteID})
		return nil
	}
}

var past = map[estate.Action]string{estate.Create: "created", estate.Modify: "changed", estate.Delete: "forgotten"}

// eventOf is the kind of history that a change makes, the same as if it had been made alone.
func eventOf(change estate.Change) string {
	switch {
	case change.Kind == model.KindNode:
		return "node.set"
	case change.Kind == model.KindVM && change.Action == estate.Delete:
		return "vm.deleted"
	case change.Kind == model.KindVM && change.Action == estate.Create:
		return "vm.created"
	case change.Kind == model.KindVM:
		return "vm.changed"
	case change.Action == estate.Delete:
		return "resource.deleted"
	case change.Action == estate.Create:
		return "resource.created"
	default:
		return "resource.changed"
	}
}

// ExportEstate answers with a document that says what is declared now, or with a scenario that also has the figures of
// the nodes and what runs.
func (s *ResourceCalls) ExportEstate(
	ctx context.Context, request *connect.Request[berthv1.ExportEstateRequest],
) (*connect.Response[berthv1.ExportEstateResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	var written []byte
	if request.Msg.GetScenario() {
		written, err = format.Export(p.View(), p.Declared(), p.Plans(), cmp.Or(request.Msg.GetSeed(), answer.Random()))
	} else {
		written, err = estate.Export(p.Declared(), true)
	}
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.ExportEstateResponse{SchemaVersion: wire.SchemaVersion, Document: written}), nil
}
