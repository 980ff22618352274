package rpc

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	// Everything asks ReadAll for a list without a limit.
	Everything = 0
	// pageLimit is how many things the API puts on one page at most.
	pageLimit = 500
)

// Question asks for a page of a list: it has a limit and a page token.
type Question[Q any] interface {
	*Q
	proto.Message
}

// Page is one answer of several.
type Page[A any] interface {
	*A
	proto.Message
	GetNextPageToken() string
}

// ReadAll asks for a list page by page, until it has most things or everything. The answer is that of one page with all of them.
func ReadAll[Q, A any, QM Question[Q], AM Page[A]](question *Q, most int32, ask func(*Q) (*A, error)) (*A, error) {
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
		page, err := ask(question)
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
