package answer

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"berth/coordinator/api/refusal"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// Fields of a filter, as the protocol calls them.
const (
	ByNode     = "nodes"
	ByCustomer = "customers"
	ByGroup    = "groups"
	ByState    = "states"
	ByLabel    = "labels"
)

// Filterable is what a list can be narrowed by.
type Filterable struct {
	What   string // that it lists: VM, node
	Fields []string
	States []string           // all there are
	Kinds  []string           // all there are; empty: they are not known beforehand
	Bearer string             // whose the labels are
	Labels iter.Seq[[]string] // of each of these; they are looked at only for a filter that names one
}

// OfVMs is what a list can be narrowed by that is of VMs.
func (p *Moment) OfVMs(what string, states []string) *Filterable {
	return &Filterable{
		What: what, States: states, Bearer: "VM", Fields: []string{ByNode, ByState, ByCustomer, ByGroup, ByLabel},
		Labels: LabelsOf(p.SharedVMs(), func(vm *model.VM) []string { return vm.Labels }),
	}
}

// LabelsOf are the labels of each of some records.
func LabelsOf[T any](records iter.Seq[T], labels func(T) []string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for record := range records {
			if !yield(labels(record)) {
				return
			}
		}
	}
}

// Filter tells what belongs to a list that somebody has narrowed.
type Filter struct {
	moment           *Moment
	nodes, customers []string // by ID
	groups           []string // by name, which is unique
	states, labels   []string
	past             past
	asked            bool // somebody has narrowed it
	whose            bool // by something of VMs
}

// FilterOf reads the filter of a request. What it names has to exist, and a list refuses a field that it cannot be narrowed by.
func (p *Moment) FilterOf(request *berthv1.Filter, list *Filterable) (*Filter, error) {
	filter := &Filter{moment: p, states: request.GetStates(), labels: request.GetLabels()}
	var unfit error
	request.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		filter.asked = true
		if name := string(field.Name()); !slices.Contains(list.Fields, name) {
			unfit = refusal.New(rpc.Invalid, "", "use "+strings.Join(list.Fields, ", "), "%ss cannot be listed by %s", list.What, name)
		}
		return unfit == nil
	})
	if unfit != nil {
		return nil, unfit
	}
	for _, ref := range request.GetNodes() {
		node, err := p.NamedNode(ref)
		if err != nil {
			return nil, err
		}
		filter.nodes = append(filter.nodes, node.ID)
	}
	for _, ref := range request.GetCustomers() {
		customer, err := p.NamedResource(model.KindCustomer, ref)
		if err != nil {
			return nil, err
		}
		filter.customers = append(filter.customers, customer.ID)
	}
	for _, ref := range request.GetGroups() {
		group, err := p.NamedResource(model.KindGroup, ref)
		if err != nil {
			return nil, err
		}
		filter.groups = append(filter.groups, group.Name)
	}
	if filter.past, unfit = pastOf(request, list); unfit != nil {
		return nil, unfit
	}
	for _, state := range request.GetStates() {
		if !slices.Contains(list.States, state) {
			return nil, refusal.New(rpc.Invalid, "", "use "+strings.Join(list.States, ", "), "there is no state %q of %ss", state, list.What)
		}
	}
	for _, label := range request.GetLabels() {
		if !carried(list.Labels, label) {
			return nil, refusal.New(rpc.NotFound, "", fmt.Sprintf("see 'berth %s list -o wide'", strings.ToLower(list.Bearer)),
				"no %s has the label %q", list.Bearer, label)
		}
	}
	filter.whose = len(filter.customers)+len(filter.groups)+len(filter.labels) > 0
	return filter, nil
}

// carried tells whether any record has a label.
func carried(all iter.Seq[[]string], label string) bool {
	for labels := range all {
		if slices.Contains(labels, label) {
			return true
		}
	}
	return false
}

// Asked tells whether the request narrows the list.
func (f *Filter) Asked() bool { return f.asked }

// In tells whether one of the nodes is asked for, by ID.
func (f *Filter) In(nodes ...string) bool { return among(f.nodes, nodes) }

// Is tells whether one of the states is asked for.
func (f *Filter) Is(states ...string) bool { return among(f.states, states) }

// Labelled tells whether one of the labels is asked for.
func (f *Filter) Labelled(labels []string) bool { return among(f.labels, labels) }

// Whose tells whether a VM is of the customers, in the groups and with the labels that are asked for.
func (f *Filter) Whose(vm *model.VM) bool {
	if !f.whose {
		return true
	}
	var customer []string
	if vdc, known := f.moment.Resource(vm.VDC); known {
		customer = []string{vdc.Links[schema.LinkCustomer]}
	}
	return f.Labelled(vm.Labels) && among(f.customers, customer) &&
		(len(f.groups) == 0 || among(f.groups, f.moment.GroupsOf(*vm, f.moment.ClusterOf(vm))))
}

// WhoseID is Whose of a VM that may be gone. Nobody knows what one was that is gone.
func (f *Filter) WhoseID(id string) bool {
	if !f.whose {
		return true
	}
	vm, known := f.moment.VM(id)
	return known && f.Whose(&vm)
}

// among tells whether one of several is asked for. Who asks for none asks for all.
func among(asked, has []string) bool {
	return len(asked) == 0 || slices.ContainsFunc(has, func(one string) bool { return slices.Contains(asked, one) })
}

// Pick is Cut of what a filter leaves: it looks at no more than a page needs, and makes nothing of what is left out.
func Pick[T, M any](all []T, page Page, order int, key func(T) string, keep func(T) (M, bool)) (part []M, next string) {
	rest := all
	if page.After != "" {
		rest, _ = Cut(all, Page{Limit: len(all), After: page.After}, order, key)
	}
	return PickFrom(slices.Values(rest), Page{Limit: page.Limit}, key, keep)
}

// PickFrom is Pick of what is walked in ascending order, from the key of the page or from the beginning: nothing is gathered that the page
// does not need.
func PickFrom[T, M any](all iter.Seq[T], page Page, key func(T) string, keep func(T) (M, bool)) (part []M, next string) {
	var last string
	for one := range all {
		at := key(one)
		if at <= page.After && page.After != "" {
			continue
		}
		made, kept := keep(one)
		if !kept {
			continue
		}
		if len(part) == page.Limit {
			return part, TokenOf(last)
		}
		part, last = append(part, made), at
	}
	return part, ""
}

// Words are those of a kind of states, without the prefix of the protocol, as lists show them.
func Words(names map[int32]string, prefix string) []string {
	words := make([]string, 0, len(names))
	for number := int32(1); int(number) < len(names); number++ {
		words = append(words, Word(names[number], prefix))
	}
	return words
}

// Word is what people call a state.
func Word(name, prefix string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, prefix), "_", "-"))
}
