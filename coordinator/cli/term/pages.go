package term

import (
	"context"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// How many things of a list are asked for.
const (
	DefaultLimit = 50    // of a list, unless --limit says otherwise
	MaxLimit     = 10000 // that --limit takes
	Everything   = 0     // asks AskAll for a list without a limit
	pageLimit    = 500   // of one page, by the API
)

// pageQuestion asks for a page of a list.
type pageQuestion[Q any] interface {
	*Q
	proto.Message
}

// page is one answer of several.
type page[A any] interface {
	*A
	proto.Message
	GetNextPageToken() string
}

// AskAllOnce makes a session for one list.
func AskAllOnce[Q, A any, QM pageQuestion[Q], AM page[A]](
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
func AskAll[Q, A any, QM pageQuestion[Q], AM page[A]](
	ctx context.Context, s *Session,
	method func(Client, context.Context, *connect.Request[Q]) (*connect.Response[A], error), question *Q, most int32,
) (*A, error) {
	next := QM(question).ProtoReflect()
	set := func(field protoreflect.Name, value protoreflect.Value) {
		next.Set(next.Descriptor().Fields().ByName(field), value)
	}
	all := new(A)
	for left := most; ; {
		limit := int32(pageLimit)
		if most != Everything {
			limit = min(left, limit)
		}
		left -= limit
		set("limit", protoreflect.ValueOfInt32(limit))
		page, err := Ask(ctx, s, method, question)
		if err != nil {
			return nil, err
		}
		token := AM(page).GetNextPageToken()
		message := AM(page).ProtoReflect()
		message.Clear(message.Descriptor().Fields().ByName("next_page_token"))
		proto.Merge(AM(all), AM(page))
		if token == "" || left == 0 {
			return all, nil
		}
		set("page_token", protoreflect.ValueOfString(token))
	}
}
