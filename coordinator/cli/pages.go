package cli

import (
	"context"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	defaultLimit = 50
	maxLimit     = 10000
	pageLimit    = 500 // of one page, by the API

	everything = 0
)

// askAll asks for a list page by page, until it has most things or everything. The answer is that of one page with all of
// them. The question must be one for a page, with a limit and a page token.
func askAll[Q, A any, QM interface {
	*Q
	proto.Message
}, AM interface {
	*A
	proto.Message
	GetNextPageToken() string
}](
	ctx context.Context, s *session,
	method func(client, context.Context, *connect.Request[Q]) (*connect.Response[A], error), question *Q, most int32,
) (*A, error) {
	next := QM(question).ProtoReflect()
	set := func(field protoreflect.Name, value protoreflect.Value) {
		next.Set(next.Descriptor().Fields().ByName(field), value)
	}
	all := new(A)
	for left := most; ; {
		limit := int32(pageLimit)
		if most != everything {
			limit = min(left, limit)
		}
		left -= limit
		set("limit", protoreflect.ValueOfInt32(limit))
		page, err := ask(ctx, s, repeatable, method, question)
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
