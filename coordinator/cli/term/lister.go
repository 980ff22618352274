package term

import (
	"context"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	berthv1 "berth/shared/gen/berth/v1"
)

// Filtered is an answer of the API that says whether it heeded the filter.
type Filtered interface {
	proto.Message
	GetFiltered() bool
}

// Lister is a verb that lists things: what narrows, orders and watches them, and how they are asked for and shown.
type Lister[T any] struct {
	Filters
	Sorting[T]
	Watching
	// Ask asks for what the filter lets through, at most limit things.
	Ask func(ctx context.Context, s *Session, filter *berthv1.Filter, limit int32) (Filtered, []T, error)
	// Last asks one coordinator for the same as it last knew it, for the time without a leader; nil: nobody keeps that.
	Last   func(ctx context.Context, s *Session, filter *berthv1.Filter) (Dated, []T, error)
	Name   func(T) string // NOUN/NAME
	State  func(T) string // what counts as a change of it, as listing has it; one with Frames needs none
	Table  func(p *Page, things []T, wide bool)
	What   string   // one of them: VM, node
	Empty  string   // what to say where there is nothing and the line has no filter
	States []string // those of the things in the list, unless the line says otherwise; empty: any
	Limit  *int32   // the flag --limit; nil: all are read
}

// Command completes the verb. Flags are added to what it returns.
func (l *Lister[T]) Command(a *App, cmd *cobra.Command) *cobra.Command {
	cmd.Args, cmd.ValidArgsFunction = Arguments(0), cobra.NoFileCompletions
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		limit := int32(Everything)
		if l.Limit != nil {
			limit = *l.Limit
			if err := CheckLimit(cmd, limit); err != nil {
				return err
			}
		}
		if err := l.Sorting.Check(cmd); err != nil {
			return err
		}
		return showList(a, cmd, l.Watching, func(ctx context.Context, s *Session) (listing[T], error) {
			filter := l.Filter()
			if len(l.States) > 0 {
				filter = l.InStates(l.States...)
			}
			answer, things, err := l.Ask(ctx, s, filter, limit)
			if err == nil {
				err = l.Heeded(answer)
			}
			list := l.listing(answer, things)
			if Leaderless(err) && l.Last != nil && !l.Watching.on {
				if known, things, lost := l.Last(ctx, s, filter); lost == nil && l.Heeded(known) == nil {
					list = l.listing(known, things)
					list.AsOf = AsOf(a, known.GetLastKnown())
				}
			}
			return list, err
		})
	}
	if l.Limit != nil {
		cmd.Flags().Int32Var(l.Limit, "limit", DefaultLimit, "how many at most")
		Complete(cmd, "limit", cobra.NoFileCompletions)
	}
	l.Watching.Flags(cmd)
	return cmd
}

func (l *Lister[T]) listing(answer proto.Message, things []T) listing[T] {
	l.Sort(things)
	return listing[T]{
		Message: answer, Things: things, Name: l.Name, State: l.State, Table: l.Table, Empty: l.Filters.Empty(l.What, l.Empty),
	}
}

// AskVMs asks for VMs.
func AskVMs(ctx context.Context, s *Session, filter *berthv1.Filter, limit int32) (Filtered, []*berthv1.VM, error) {
	answer, err := AskAll(ctx, s, Client.ListVMs, &berthv1.ListVMsRequest{Filter: filter}, limit)
	return answer, answer.GetVms(), err
}

// AskNodes asks for nodes.
func AskNodes(ctx context.Context, s *Session, filter *berthv1.Filter, limit int32) (Filtered, []*berthv1.Node, error) {
	answer, err := AskAll(ctx, s, Client.ListNodes, &berthv1.ListNodesRequest{Filter: filter}, limit)
	return answer, answer.GetNodes(), err
}

// LastVMs asks for VMs as a coordinator last knew them.
func LastVMs(ctx context.Context, s *Session, filter *berthv1.Filter) (Dated, []*berthv1.VM, error) {
	answer, err := AskAll(ctx, s, Client.LastKnownVMs, &berthv1.ListVMsRequest{Filter: filter}, Everything)
	return answer, answer.GetVms(), err
}

// LastNodes asks for nodes as a coordinator last knew them.
func LastNodes(ctx context.Context, s *Session, filter *berthv1.Filter) (Dated, []*berthv1.Node, error) {
	answer, err := AskAll(ctx, s, Client.LastKnownNodes, &berthv1.ListNodesRequest{Filter: filter}, Everything)
	return answer, answer.GetNodes(), err
}
