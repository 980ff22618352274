package answer

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/api/refusal"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// Fields of a filter of what has happened, as the protocol calls them.
const (
	ByVM     = "vms"
	ByKind   = "kinds"
	ByCaller = "callers"
	BySince  = "since"
	ByUntil  = "until"
)

// Happened is what a list can be narrowed by that is of what happened to VMs. Without states it cannot be narrowed by them, and without
// kinds by any.
func (p *Moment) Happened(what string, states, kinds []string) *Filterable {
	list := p.OfVMs(what, states)
	list.Kinds = kinds
	list.Fields = append(list.Fields, ByVM, ByKind, ByCaller, BySince, ByUntil)
	if len(states) == 0 {
		list.Fields = slices.DeleteFunc(list.Fields, func(field string) bool { return field == ByState })
	}
	return list
}

// past is the part of a filter that is about what has happened. What it names may be gone.
type past struct {
	vms, kinds, callers []string
	since, until        time.Time // zero: not asked for
}

func pastOf(request *berthv1.Filter, list *Filterable) (past, error) {
	asked := past{vms: request.GetVms(), kinds: request.GetKinds(), callers: request.GetCallers()}
	for _, kind := range asked.kinds {
		if len(list.Kinds) > 0 && !slices.Contains(list.Kinds, kind) {
			return asked, refusal.New(rpc.Invalid, "", "use "+strings.Join(list.Kinds, ", "), "there is no kind %q of %ss", kind, list.What)
		}
	}
	for _, one := range []struct {
		name string
		said *timestamppb.Timestamp
		at   *time.Time
	}{{BySince, request.GetSince(), &asked.since}, {ByUntil, request.GetUntil(), &asked.until}} {
		if one.said == nil {
			continue
		}
		if err := one.said.CheckValid(); err != nil {
			return asked, refusal.New(rpc.Invalid, "", "give a time from year 1 to 9999", "%s is no time: %v", one.name, err)
		}
		*one.at = one.said.AsTime()
	}
	if !asked.since.IsZero() && !asked.until.IsZero() && !asked.since.Before(asked.until) {
		return asked, refusal.New(rpc.Invalid, "", "give an earlier since or a later until", "since %s is not before until %s",
			asked.since.Format(time.RFC3339), asked.until.Format(time.RFC3339))
	}
	return asked, nil
}

// During tells whether a time is asked for.
func (f *Filter) During(at time.Time) bool {
	return !at.Before(f.past.since) && (f.past.until.IsZero() || at.Before(f.past.until))
}

// Before tells whether a time is earlier than all that is asked for: a list that runs backwards ends there.
func (f *Filter) Before(at time.Time) bool { return at.Before(f.past.since) }

// OfKind tells whether a kind is asked for: vm.started is, if it or vm is.
func (f *Filter) OfKind(kind string) bool {
	family, _, _ := strings.Cut(kind, ".")
	return among(f.past.kinds, []string{kind, family})
}

// By tells whether what a caller did is asked for: operator/alice is, if it or alice is.
func (f *Filter) By(caller string) bool {
	_, name, _ := strings.Cut(caller, "/")
	return len(f.past.callers) == 0 || caller != "" && among(f.past.callers, []string{caller, name})
}

// About tells whether something about a VM is asked for, which may be gone.
func (f *Filter) About(id, name string) bool {
	return len(f.past.vms) == 0 || id != "" && among(f.past.vms, []string{id, name})
}

// Event tells whether an event is asked for, by what is on record at a moment of the VM and the operation that it is about.
func (f *Filter) Event(p *Moment, event *model.Event) bool {
	if !f.During(event.At) || !f.OfKind(event.Kind) || !f.By(event.Caller) {
		return false
	}
	kind, name, _ := strings.Cut(event.Subject, "/")
	var id string
	if kind == string(model.KindVM) {
		id = name
		if vm, known := p.VMByName(name); known {
			id = vm.ID
		}
	}
	op, _ := p.Operation(event.Operation)
	if !f.About(id, name) || f.whose && (id == "" || !f.WhoseID(id)) {
		return false
	}
	return f.In(op.Source, op.Target) || kind == "node" && slices.ContainsFunc(f.nodes, func(id string) bool { return p.NodeName(id) == name })
}
