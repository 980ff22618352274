package term

import (
	"context"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"berth/shared/rpc"
)

// How many things of a list are asked for.
const (
	DefaultLimit = 50    // of a list, unless --limit says otherwise
	MaxLimit     = 10000 // that --limit takes
	Everything   = rpc.Everything
)

// AskAllOnce makes a session for one list.
func AskAllOnce[Q, A any, QM rpc.Question[Q], AM rpc.Page[A]](
	a *App, cmd *cobra.Command, method func(Client, context.Context, *connect.Request[Q]) (*connect.Response[A], error), question *Q,
	most int32,
) (*A, error) {
	s, err := a.Connect()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return AskAll[Q, A, QM, AM](cmd.Context(), s, method, question, most)
}

// AskAll asks for a list page by page, until it has most things or everything. The answer is that of one page with all of
// them. The question must be one for a page, with a limit and a page token.
func AskAll[Q, A any, QM rpc.Question[Q], AM rpc.Page[A]](
	ctx context.Context, s *Session,
	method func(Client, context.Context, *connect.Request[Q]) (*connect.Response[A], error), question *Q, most int32,
) (*A, error) {
	return rpc.ReadAll[Q, A, QM, AM](question, most, func(question *Q) (*A, error) { return Ask(ctx, s, method, question) })
}
