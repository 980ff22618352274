package rpc

import (
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// MarshalJSON writes a message with the names that its fields have in the protocol: vms_rule, not vmsRule. The blanks in the
// result vary from build to build, because protojson does not promise a layout. Whole numbers are numbers up to 2^53-1, and strings
// beyond.
func MarshalJSON(message proto.Message) ([]byte, error) {
	encoded, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(message)
	if err != nil {
		return nil, err
	}
	return plainNumbers(encoded, message.ProtoReflect().Descriptor())
}

// withJSON makes a handler answer JSON with the protocol's names. It reads both spellings of a name.
func withJSON() connect.HandlerOption {
	return connect.WithHandlerOptions(
		connect.WithCodec(jsonCodec{"json"}), connect.WithCodec(jsonCodec{"json; charset=utf-8"}),
	)
}

// jsonCodec takes the place of Connect's own codec, which writes lowerCamelCase.
type jsonCodec struct{ name string }

// Name implements connect.Codec.
func (c jsonCodec) Name() string { return c.name }

// Marshal implements connect.Codec.
func (jsonCodec) Marshal(message any) ([]byte, error) {
	m, ok := message.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is not a message of the protocol", message)
	}
	return MarshalJSON(m)
}

// Unmarshal implements connect.Codec. It ignores fields that it does not know, so that callers of a newer release are understood.
func (jsonCodec) Unmarshal(data []byte, message any) error {
	m, ok := message.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is not a message of the protocol", message)
	}
	if len(data) == 0 {
		return errors.New("an empty body is not a JSON object")
	}
	return protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, m)
}
