package estates

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/refusal"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	"berth/coordinator/state"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// KeyHelp is the next step for those who set a key that may not be there.
const KeyHelp = "see 'berth key set --help' for who may set which keys where"

// SetKey sets one key on a resource or a VM, or changes it.
func (s *ResourceCalls) SetKey(
	ctx context.Context, request *connect.Request[berthv1.SetKeyRequest],
) (*connect.Response[berthv1.SetKeyResponse], error) {
	message := request.Msg
	wanted := wire.KeyFrom(message.GetKey(), model.SystemKey)
	keys, err := s.changeKeys(ctx, message.GetKind(), message.GetName(), message.GetRequestId(), keyChange{
		event: "key.set",
		edit: func(kind model.Kind, keys []model.Key) ([]model.Key, string, error) {
			after, err := schema.SetKey(kind, keys, wanted)
			return after, answer.Because(schema.KeyField(wanted), schema.KeyText(wanted)), err
		},
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.SetKeyResponse{SchemaVersion: wire.SchemaVersion, Keys: wire.Keys(keys)}), nil
}

// UnsetKey takes one key from a resource or a VM. Where a VM has none of its own of that name, the copy of a sticky key goes
// that it has: the key may have been dropped since, or the node, and nothing else takes the copy away.
func (s *ResourceCalls) UnsetKey(
	ctx context.Context, request *connect.Request[berthv1.UnsetKeyRequest],
) (*connect.Response[berthv1.UnsetKeyResponse], error) {
	message := request.Msg
	subject := message.GetKind() + "/" + message.GetName()
	keys, err := s.changeKeys(ctx, message.GetKind(), message.GetName(), message.GetRequestId(), keyChange{
		event: "key.unset",
		edit: func(kind model.Kind, keys []model.Key) ([]model.Key, string, error) {
			class, err := classOf(keys, model.KeyClass(message.GetClass()), message.GetKey())
			if err != nil {
				return nil, "", err
			}
			gone := model.Key{Class: class, Name: message.GetKey()}
			after, there := schema.UnsetKey(kind, keys, gone.Class, gone.Name)
			if !there {
				return nil, "", refusal.New(rpc.NotFound, subject, "see 'berth key list "+subject+"'", "%s has no %s", subject, schema.KeyField(gone))
			}
			if len(after) == len(keys) {
				return after, schema.KeyField(gone) + " has the weight 0: it counts no more", nil
			}
			return after, schema.KeyField(gone) + " taken away", nil
		},
		copied: func(vm *model.VM) (string, bool) {
			return forgetCopy(vm, model.KeyClass(message.GetClass()), message.GetKey())
		},
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.UnsetKeyResponse{SchemaVersion: wire.SchemaVersion, Keys: wire.Keys(keys)}), nil
}

// forgetCopy takes the copy of a sticky key from a VM that has no key of its own of that name; class may be empty.
func forgetCopy(vm *model.VM, class model.KeyClass, name string) (said string, done bool) {
	same := func(k model.Key) bool { return k.Name == name && (class == "" || k.Class == class) }
	at := slices.IndexFunc(vm.Sticky, same)
	if at < 0 || slices.ContainsFunc(vm.Keys, same) {
		return "", false
	}
	said = "copy of sticky " + schema.KeyField(vm.Sticky[at]) + " taken away"
	vm.Sticky = slices.Delete(slices.Clone(vm.Sticky), at, at+1)
	return said, true
}

// classOf is the class that a key is meant to be of: the one that is named, or else the only one that has the name.
func classOf(keys []model.Key, class model.KeyClass, name string) (model.KeyClass, error) {
	if class != "" {
		return class, nil
	}
	var classes []string
	for _, k := range keys {
		if k.Name == name {
			classes = append(classes, string(k.Class))
		}
	}
	switch len(classes) {
	case 0:
		return model.SystemKey, nil // the caller that takes it away says that it is not there
	case 1:
		return model.KeyClass(classes[0]), nil
	default:
		return "", refusal.New(rpc.Invalid, "key/"+name, "say which: --class "+strings.Join(classes, " or --class "),
			"there is a key %s of each of the classes %s", name, strings.Join(classes, " and "))
	}
}

// keyChange is one change to the keys of one thing, and what the history says of it.
type keyChange struct {
	event string
	edit  func(model.Kind, []model.Key) (keys []model.Key, said string, err error)

	// copied, if there is one, changes the sticky keys that a VM has copied; where it does, edit is not asked.
	copied func(*model.VM) (said string, done bool)
}

// changeKeys commits a change to the keys of a resource or a VM and returns those that it has afterwards. A running VM
// keeps the keys that it was started with.
func (s *ResourceCalls) changeKeys(ctx context.Context, kind, name, requestID string, change keyChange) ([]model.Key, error) {
	switch model.Kind(kind) {
	case model.KindVM:
		return s.changeVMKeys(ctx, name, requestID, change)
	case model.KindNode:
		return nil, refusal.New(rpc.Invalid, "node/"+name, fmt.Sprintf("use 'berth node set %s --key NAME=VALUE'", name),
			"a node has values of the keys that its cluster declares, and no others")
	}
	changed, _, err := s.changeResource(ctx, kind, name, requestID,
		func(_ estate.State, before model.Resource) (edit, error) {
			after := before
			keys, said, err := change.edit(before.Kind, before.Keys)
			if err != nil {
				return edit{}, refusal.Unsound(string(before.Kind)+"/"+before.Name, KeyHelp, err)
			}
			after.Keys = keys
			return edit{after: after, kind: change.event, said: said}, nil
		})
	return changed.Keys, err
}

func (s *ResourceCalls) changeVMKeys(ctx context.Context, ref, requestID string, change keyChange) ([]model.Key, error) {
	const kind = "change vm keys"
	var keys []model.Key
	_, err := s.Propose(ctx, requestID, func(p *answer.Moment) (state.Command, error) {
		vm, err := p.NamedVM(ref)
		if err != nil {
			return state.Command{}, err
		}
		if keys = vm.Keys; p.Answered(requestID, kind) {
			return state.Command{}, answer.ErrUnchanged
		}
		command, before := state.Command{Kind: kind, Expect: []state.Expectation{answer.ExpectVM(vm)}}, vm
		said, done := "", false
		if change.copied != nil {
			said, done = change.copied(&vm)
		}
		if !done {
			if keys, said, err = change.edit(model.KindVM, vm.Keys); err != nil {
				return state.Command{}, refusal.Unsound("vm/"+vm.Name, KeyHelp, err)
			}
			if slices.Equal(vm.Keys, keys) {
				return state.Command{}, answer.ErrUnchanged
			}
			vm.Keys = keys
		}
		p.Defer(ctx, &before, &vm, estate.VMFields(estate.State{}, before, vm))
		command.VMs = []model.VM{vm}
		if vm.Holder != "" {
			said += "; from its next start on"
		}
		p.Tell(ctx, &command, change.event, "vm/"+vm.Name, "%s", said)
		return command, nil
	})
	return keys, err
}

// ListKeys answers with the keys that are set on one thing.
func (s *ResourceCalls) ListKeys(
	ctx context.Context, request *connect.Request[berthv1.ListKeysRequest],
) (*connect.Response[berthv1.ListKeysResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	response := &berthv1.ListKeysResponse{SchemaVersion: wire.SchemaVersion}
	name := request.Msg.GetName()
	switch kind := model.Kind(request.Msg.GetKind()); kind {
	case model.KindVM:
		vm, err := p.NamedVM(name)
		if err != nil {
			return nil, err
		}
		response.Keys, response.Sticky = wire.Keys(vm.Keys), wire.Keys(vm.Sticky)
	case model.KindNode:
		node, err := p.NamedNode(name)
		if err != nil {
			return nil, err
		}
		inside := p.Cluster(node.Cluster)
		response.NodeKeys = wire.NodeKeys(inside.NodeKeys)
		response.Values, response.Own = wire.KeyValues(node, inside.NodeKeys), wire.OwnKeys(node)
	default:
		form, err := answer.FormOf(string(kind))
		if err != nil {
			return nil, err
		}
		found, err := p.NamedResource(form.Kind, name)
		if err != nil {
			return nil, err
		}
		response.Keys, response.NodeKeys = wire.Keys(found.Keys), wire.NodeKeys(found.NodeKeys)
	}
	return connect.NewResponse(response), nil
}

// CompiledKeys answers with the keys that count for a VM, over all levels above it.
func (s *ResourceCalls) CompiledKeys(
	ctx context.Context, request *connect.Request[berthv1.CompiledKeysRequest],
) (*connect.Response[berthv1.CompiledKeysResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	vm, err := p.NamedVM(request.Msg.GetVm())
	if err != nil {
		return nil, err
	}
	resolved, err := estate.Resolve(p, vm)
	if err != nil {
		return nil, err
	}
	response := &berthv1.CompiledKeysResponse{
		SchemaVersion: wire.SchemaVersion, Vm: vm.Name, Cluster: resolved.Cluster,
		System: wire.CompiledKeys(resolved.System), CustomerKeys: wire.CompiledKeys(resolved.Customer),
	}
	if id := resolved.Owner.Customer; id != "" {
		response.Customer = p.ResourceName(id)
	}
	if id := resolved.Owner.BillingEntity; id != "" {
		response.BillingEntity = p.ResourceName(id)
	}
	return connect.NewResponse(response), nil
}
