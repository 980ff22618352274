package term

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// Filters are the flags that narrow a list. The coordinator reads them, so that nothing is sent that nobody wants.
type Filters struct {
	nodes, states, customers, groups, labels []string
	vms, kinds, callers                      []string
	since, until                             timeFlag
}

// StateFlags adds what every list can be narrowed by: states, and labels of what bears them.
func (f *Filters) StateFlags(cmd *cobra.Command, a *App, bearer string, states ...string) {
	cmd.Flags().StringSliceVar(&f.states, "state", nil, "only those in `STATE`: "+strings.Join(states, ", "))
	Complete(cmd, "state", CompleteFixed(states...))
	f.LabelFlag(cmd, a, bearer)
}

// LabelFlag adds that a list can be narrowed by labels of what bears them.
func (f *Filters) LabelFlag(cmd *cobra.Command, a *App, bearer string) {
	cmd.Flags().StringSliceVar(&f.labels, "label", nil, "only those "+labelled(bearer)+" `LABEL`")
	Complete(cmd, "label", a.labels(bearer))
}

func labelled(bearer string) string {
	if bearer == "" {
		return "with"
	}
	return "of " + bearer + " with"
}

// VMFlags adds what a list of VMs, or of what happened to VMs, can be narrowed by as well.
func (f *Filters) VMFlags(cmd *cobra.Command, a *App, node, whose string) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.nodes, "node", nil, "only those "+node+" `NODE`")
	Complete(cmd, "node", a.NodeNames())
	flags.StringSliceVar(&f.customers, "customer", nil, "only those of "+whose+"`CUSTOMER`")
	Complete(cmd, "customer", a.ResourceNames(model.KindCustomer))
	flags.StringSliceVar(&f.groups, "group", nil, "only those of "+whose+"`GROUP`")
	Complete(cmd, "group", a.GroupNames())
}

// Filter is what the flags say; nil if they say nothing. Names may have their kind, as '-o name' prints them.
func (f *Filters) Filter() *berthv1.Filter {
	filter := &berthv1.Filter{
		Nodes: bare("node", f.nodes), Customers: bare("customer", f.customers), Groups: bare("group", f.groups),
		States: f.states, Labels: f.labels, Vms: bare("vm", f.vms), Kinds: f.kinds, Callers: f.callers,
		Since: f.since.stamp(), Until: f.until.stamp(),
	}
	if proto.Size(filter) == 0 {
		return nil
	}
	return filter
}

// Empty is what a list says that has nothing: that nothing is like the filter, or what is said without one.
func (f *Filters) Empty(what, otherwise string) string {
	if f.Filter() != nil {
		return "no " + what + " is like that"
	}
	return otherwise
}

// InStates is Filter for a list that has only what is in one of some states, unless the line says otherwise.
func (f *Filters) InStates(states ...string) *berthv1.Filter {
	filter := f.Filter()
	if filter == nil {
		filter = &berthv1.Filter{}
	}
	if len(filter.GetStates()) == 0 {
		filter.States = states
	}
	return filter
}

func bare(kind string, refs []string) []string {
	names := make([]string, 0, len(refs))
	for _, ref := range refs {
		names = append(names, strings.TrimPrefix(ref, kind+"/"))
	}
	return names
}

// Heeded refuses an answer for which the filter was not used: a list that has too much may be given on to 'vm delete'.
func (f *Filters) Heeded(answer interface{ GetFiltered() bool }) error {
	if f.Filter() == nil || answer.GetFiltered() {
		return nil
	}
	return Failf(rpc.Invalid, "install this release on all coordinators, or leave the filters out",
		"the coordinator is of an older release and does not know filters")
}

// labels completes with the labels of nodes or VMs.
func (a *App) labels(bearer string) cobra.CompletionFunc {
	return a.CompleteFrom(func(ctx context.Context, s *Session) (labels []string, err error) {
		if bearer == "nodes" {
			answer, err := AskAll(ctx, s, Client.ListNodes, &berthv1.ListNodesRequest{}, Everything)
			for _, node := range answer.GetNodes() {
				labels = append(labels, node.GetLabels()...)
			}
			return sorted(labels), err
		}
		answer, err := AskAll(ctx, s, Client.ListVMs, &berthv1.ListVMsRequest{}, Everything)
		for _, vm := range answer.GetVms() {
			labels = append(labels, vm.GetLabels()...)
		}
		return sorted(labels), err
	})
}

func sorted(words []string) []string {
	slices.Sort(words)
	return slices.Compact(words)
}

// GroupNames completes with the names of groups.
func (a *App) GroupNames() cobra.CompletionFunc {
	return a.CompleteFrom(func(ctx context.Context, s *Session) (names []string, err error) {
		answer, err := AskAll(ctx, s, Client.ListGroups, &berthv1.ListGroupsRequest{}, Everything)
		for _, group := range answer.GetGroups() {
			names = append(names, group.GetName())
		}
		return names, err
	})
}

// Order is one word that --sort takes, and how it orders.
type Order[T any] struct {
	Word string
	By   func(a, b T) int
}

// Sorting is the flag --sort of a list.
type Sorting[T any] struct {
	Default string // field by which the list is ordered where the line says nothing; empty: as it comes
	orders  []Order[T]
	word    string
}

// Flag adds --sort. Without it a list keeps the order in which it comes.
func (s *Sorting[T]) Flag(cmd *cobra.Command, orders ...Order[T]) {
	s.orders = orders
	words := s.words()
	cmd.Flags().StringVar(&s.word, "sort", s.Default, "order by `FIELD`: "+strings.Join(words, ", "))
	Complete(cmd, "sort", CompleteFixed(words...))
}

// Check refuses a word that is no order.
func (s *Sorting[T]) Check(cmd *cobra.Command) error {
	if _, found := s.order(); s.word == "" || found {
		return nil
	}
	return Usagef(cmd, "--sort %s: use %s", s.word, strings.Join(s.words(), ", "))
}

func (s *Sorting[T]) words() []string {
	words := make([]string, 0, len(s.orders))
	for _, order := range s.orders {
		words = append(words, order.Word)
	}
	return words
}

func (s *Sorting[T]) order() (Order[T], bool) {
	i := slices.IndexFunc(s.orders, func(order Order[T]) bool { return order.Word == s.word })
	if i < 0 {
		return Order[T]{}, false
	}
	return s.orders[i], true
}

// Sort orders a list. What is alike stays as it comes.
func (s *Sorting[T]) Sort(list []T) {
	if order, found := s.order(); found {
		slices.SortStableFunc(list, order.By)
	}
}

// ByText orders by a word, and ByMost puts what has most first.
func ByText[T any](word string, of func(T) string) Order[T] {
	return Order[T]{Word: word, By: func(a, b T) int { return cmp.Compare(of(a), of(b)) }}
}

// ByMost puts what has most first.
func ByMost[T any](word string, of func(T) int64) Order[T] {
	return Order[T]{Word: word, By: func(a, b T) int { return cmp.Compare(of(b), of(a)) }}
}
