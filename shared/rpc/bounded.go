package rpc

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// ErrTooLarge says that a message would take more memory than its sender may have.
var ErrTooLarge = errors.New("the message is too large")

const (
	// A message that is decoded may take this many bytes, and expansion bytes for each on the wire, but never more than mostDecoded. A
	// whole inventory takes four to eight for each.
	leastDecoded = 1 << 20
	expansion    = 16
	mostDecoded  = 64 << 20

	// deepest is how deep messages may be in one another.
	deepest = 32
	// perElement is what a list takes for each element beside the element itself, in bytes.
	perElement = 16

	prefixBytes = 5 // of an envelope: flags, and the length of what follows
	compressed  = 1 // the flag of one that is compressed
)

// Bounded makes a handler estimate what a message will take in memory before it is decoded. An empty element of a list has two bytes on
// the wire, and hundreds when it is decoded. Clean gets each message that has a text which is longer than usual bytes, or has anything
// but printed ASCII.
func Bounded(usual int, clean func(proto.Message)) connect.HandlerOption {
	return connect.WithCodec(boundedCodec{usual, clean})
}

// boundedCodec is the codec of protobuf's binary form.
type boundedCodec struct {
	usual int
	clean func(proto.Message)
}

// bill is what is left of a budget, and what was seen while it was spent.
type bill struct {
	left    int // bytes
	usual   int // bytes of a text
	unusual bool
}

func (boundedCodec) Name() string { return "proto" }

func (boundedCodec) Marshal(message any) ([]byte, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is no message", message)
	}
	return proto.Marshal(m)
}

func (c boundedCodec) Unmarshal(data []byte, message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is no message", message)
	}
	b := bill{left: min(leastDecoded+expansion*len(data), mostDecoded), usual: c.usual}
	if err := b.spend(data, m.ProtoReflect().Descriptor(), 0); err != nil {
		return err
	}
	if err := proto.Unmarshal(data, m); err != nil {
		return err
	}
	if b.unusual {
		c.clean(m)
	}
	return nil
}

// spend takes from the budget what a message takes when it is decoded.
func (b *bill) spend(data []byte, message protoreflect.MessageDescriptor, depth int) error {
	if b.left -= sizeOf(message); b.left < 0 || depth > deepest {
		return ErrTooLarge
	}
	fields := message.Fields()
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
			return protowire.ParseError(n)
		}
		value := data[:n]
		data = data[n:]
		field := fields.ByNumber(number)
		b.left -= perElement + n
		if field != nil && kind == protowire.BytesType {
			content, _ := protowire.ConsumeBytes(value)
			switch {
			case field.Message() != nil:
				b.left += n // its fields are counted themselves
				if err := b.spend(content, field.Message(), depth+1); err != nil {
					return err
				}
			case field.Kind() == protoreflect.StringKind:
				b.unusual = b.unusual || len(content) > b.usual || bytes.ContainsFunc(content, isUnusual)
			case field.IsList() && field.Kind() != protoreflect.BytesKind:
				b.left -= 8 * len(content) // packed numbers: one for each byte at most
			}
		}
		if b.left < 0 {
			return ErrTooLarge
		}
	}
	return nil
}

func isUnusual(r rune) bool { return r < ' ' || r > '~' }

// sizes are those of the messages' types, by name.
var sizes sync.Map

// sizeOf is what an empty message takes, in bytes.
func sizeOf(message protoreflect.MessageDescriptor) int {
	if size, known := sizes.Load(message.FullName()); known {
		return size.(int)
	}
	size := perElement * (1 + message.Fields().Len()) // of one without a type: an entry of a map
	if found, err := protoregistry.GlobalTypes.FindMessageByName(message.FullName()); err == nil {
		size = int(reflect.TypeOf(found.Zero().Interface()).Elem().Size())
	}
	sizes.Store(message.FullName(), size)
	return size
}

// boundedGzip ends a message that grows beyond its bound. What is left of one that is too large is otherwise unpacked to its end.
type boundedGzip struct {
	gzip.Reader
	bound, left int
}

// compression is gzip with messages of at most so many bytes. The library asks for one byte more, to see whether there is one.
func compression(bound int) connect.HandlerOption {
	return connect.WithCompression(
		"gzip", func() connect.Decompressor { return &boundedGzip{bound: bound + 1} },
		func() connect.Compressor { return gzip.NewWriter(io.Discard) },
	)
}

func (g *boundedGzip) Reset(from io.Reader) error {
	g.left = g.bound
	return g.Reader.Reset(from)
}

func (g *boundedGzip) Read(into []byte) (int, error) {
	n, err := g.Reader.Read(into[:min(len(into), max(g.left, 1))])
	if g.left -= n; g.left < 0 {
		return 0, connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, g.bound-1))
	}
	return n, err
}

// SmallFirst refuses a stream whose first message is compressed or larger than most bytes, and whatever is not protobuf's binary form, as
// soon as the message's length is read. The sender of a first message has not said yet who it is.
func SmallFirst(most int, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind {
		case "application/connect+proto", "application/grpc", "application/grpc+proto":
		default:
			http.Error(w, "this port takes streams of protobuf messages", http.StatusUnsupportedMediaType)
			return
		}
		r.Body = &smallFirst{ReadCloser: r.Body, most: most}
		next.ServeHTTP(w, r)
	})
}

type smallFirst struct {
	io.ReadCloser
	most   int
	prefix []byte
	err    error
}

func (b *smallFirst) Read(into []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(into)
	if missing := prefixBytes - len(b.prefix); missing > 0 {
		b.prefix = append(b.prefix, into[:min(n, missing)]...)
		if len(b.prefix) == prefixBytes {
			b.err = b.judge()
		}
		if b.err != nil {
			return 0, b.err
		}
	}
	return n, err
}

func (b *smallFirst) judge() error {
	size := binary.BigEndian.Uint32(b.prefix[1:])
	switch {
	case b.prefix[0]&compressed != 0:
		return connect.NewError(connect.CodeInvalidArgument, errors.New("the first message of a stream is compressed"))
	case uint64(size) > uint64(b.most):
		return connect.NewError(connect.CodeResourceExhausted, fmt.Errorf(
			"%w: %d bytes, and the first one of a stream may have %d", ErrTooLarge, size, b.most,
		))
	}
	return nil
}
