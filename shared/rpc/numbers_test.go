package rpc

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	_ "google.golang.org/protobuf/types/known/wrapperspb" // a message of this test has them
	"pgregory.net/rapid"

	berthv1 "berth/shared/gen/berth/v1"
)

func TestWholeNumbersAreNumbersWhereADoubleKeepsThem(t *testing.T) {
	for bytes, want := range map[int64]string{
		8 << 30: `8589934592`, 0: `0`, -1: `-1`,
		1<<53 - 1: `9007199254740991`, 1 << 53: `"9007199254740992"`, 1<<53 + 1: `"9007199254740993"`,
		-(1<<53 - 1): `-9007199254740991`, -(1 << 53): `"-9007199254740992"`, math.MaxInt64: `"9223372036854775807"`,
	} {
		data, err := MarshalJSON(&berthv1.NodeTelemetry{MemoryTotalBytes: &bytes})
		if want := `{"memory_total_bytes":` + want + `}`; err != nil || string(data) != want {
			t.Errorf("%d: %s, %v, want %s", bytes, data, err, want)
		}
	}
	data, err := MarshalJSON(&berthv1.Operation{Id: "17", Epoch: math.MaxUint64})
	if want := `{"id":"17","epoch":"18446744073709551615"}`; err != nil || string(data) != want {
		t.Errorf("%s, %v, want %s", data, err, want)
	}
}

// Whatever a message has, protojson reads the message from what is written, and no number that fits is in quotes.
func TestWhatIsWrittenIsReadAsTheSameMessage(t *testing.T) {
	all := everyMessage(t)
	rapid.Check(t, func(t *rapid.T) {
		message := rapid.SampledFrom(all).Draw(t, "message").New().Interface()
		fill(t, message.ProtoReflect(), 3)
		data, err := MarshalJSON(message)
		if err != nil {
			t.Fatal(err)
		}
		back := message.ProtoReflect().New().Interface()
		if err := protojson.Unmarshal(data, back); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if !proto.Equal(message, back) {
			t.Fatalf("%s is not %s", prototext.Format(back), prototext.Format(message))
		}
		if !json.Valid(data) {
			t.Fatalf("no JSON: %s", data)
		}
	})
}

// everyMessage is every message of the API, and one with the forms of numbers that the API does not have yet.
func everyMessage(t *testing.T) (all []protoreflect.MessageType) {
	protoregistry.GlobalTypes.RangeMessages(func(kind protoreflect.MessageType) bool {
		if strings.HasPrefix(string(kind.Descriptor().FullName()), "berth.v1.") {
			all = append(all, kind)
		}
		return true
	})
	if len(all) < 100 {
		t.Fatalf("only %d messages", len(all))
	}
	return append(all, dynamicpb.NewMessageType(strange(t)))
}

// strange describes a message with maps, lists and wrappers of numbers.
func strange(t *testing.T) protoreflect.MessageDescriptor {
	t.Helper()
	const text = `name: "strange.proto" syntax: "proto3" package: "strange" dependency: "google/protobuf/wrappers.proto"
message_type {
  name: "Strange"
  field { name: "by_name" number: 1 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".strange.Strange.ByNameEntry" }
  field { name: "by_number" number: 2 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".strange.Strange.ByNumberEntry" }
  field { name: "list" number: 3 label: LABEL_REPEATED type: TYPE_SFIXED64 }
  field { name: "signed" number: 4 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".google.protobuf.Int64Value" }
  field { name: "unsigned" number: 5 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".google.protobuf.UInt64Value" }
  field { name: "inner" number: 6 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".strange.Strange" }
  field { name: "text" number: 7 label: LABEL_REPEATED type: TYPE_MESSAGE type_name: ".google.protobuf.StringValue" }
  nested_type {
    name: "ByNameEntry" options { map_entry: true }
    field { name: "key" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
    field { name: "value" number: 2 label: LABEL_OPTIONAL type: TYPE_INT64 }
  }
  nested_type {
    name: "ByNumberEntry" options { map_entry: true }
    field { name: "key" number: 1 label: LABEL_OPTIONAL type: TYPE_UINT64 }
    field { name: "value" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".strange.Strange" }
  }
}`
	var described descriptorpb.FileDescriptorProto
	if err := prototext.Unmarshal([]byte(text), &described); err != nil {
		t.Fatal(err)
	}
	file, err := protodesc.NewFile(&described, protoregistry.GlobalFiles)
	if err != nil {
		t.Fatal(err)
	}
	return file.Messages().Get(0)
}

// Numbers in maps, lists and wrappers lose their quotes; names and texts that look like numbers keep theirs.
func TestNumbersInMapsListsAndWrappers(t *testing.T) {
	message := dynamicpb.NewMessage(strange(t))
	const given = `{"by_name":{"<7>":"8"},"by_number":{"9":{"list":["1","9007199254740993"]}},"signed":"-5","unsigned":"6","text":["7"]}`
	if err := protojson.Unmarshal([]byte(given), message); err != nil {
		t.Fatal(err)
	}
	const want = `{"by_name":{"<7>":8},"by_number":{"9":{"list":[1,"9007199254740993"]}},"signed":-5,"unsigned":6,"text":["7"]}`
	if data, err := MarshalJSON(message); err != nil || string(data) != want {
		t.Errorf("%s, %v, want %s", data, err, want)
	}
}

// fill gives some fields of a message values.
func fill(t *rapid.T, message protoreflect.Message, depth int) {
	fields := message.Descriptor().Fields()
	switch message.Descriptor().FullName() {
	case "google.protobuf.Timestamp":
		message.Set(fields.ByName("seconds"), protoreflect.ValueOfInt64(rapid.Int64Range(0, 1<<33).Draw(t, "seconds")))
		return
	case "google.protobuf.Duration":
		message.Set(fields.ByName("seconds"), protoreflect.ValueOfInt64(rapid.Int64Range(-1<<33, 1<<33).Draw(t, "seconds")))
		return
	}
	for i := range fields.Len() {
		field := fields.Get(i)
		if field.Message() != nil && !field.IsMap() && depth == 0 || rapid.IntRange(0, 2).Draw(t, string(field.Name())) > 0 {
			continue
		}
		switch {
		case field.IsMap():
			values := message.Mutable(field).Map()
			for range 2 {
				value := values.NewValue()
				if field.MapValue().Message() == nil {
					value = scalar(t, field.MapValue())
				} else if depth > 0 {
					fill(t, value.Message(), depth-1)
				}
				values.Set(scalar(t, field.MapKey()).MapKey(), value)
			}
		case field.IsList():
			values := message.Mutable(field).List()
			for range 2 {
				value := values.NewElement()
				if field.Message() == nil {
					value = scalar(t, field)
				} else {
					fill(t, value.Message(), depth-1)
				}
				values.Append(value)
			}
		case field.Message() != nil:
			fill(t, message.Mutable(field).Message(), depth-1)
		default:
			message.Set(field, scalar(t, field))
		}
	}
}

func scalar(t *rapid.T, field protoreflect.FieldDescriptor) protoreflect.Value {
	whole := rapid.OneOf(rapid.Int64(), rapid.Int64Range(1<<53-2, 1<<53+2), rapid.Int64Range(-1<<53-2, -1<<53+2), rapid.Int64Range(-9, 9))
	number := whole.Draw(t, "number")
	switch field.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(number > 0)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(rapid.OneOf(rapid.String(), rapid.StringMatching(`[0-9<>&"]{1,9}`)).Draw(t, "text"))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(fmt.Append(nil, number))
	case protoreflect.EnumKind:
		values := field.Enum().Values()
		return protoreflect.ValueOfEnum(values.Get(rapid.IntRange(0, values.Len()-1).Draw(t, "word")).Number())
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(number) / 3)
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(number) / 3)
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(number)) //nolint:gosec // any number will do
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(number)) //nolint:gosec // any number will do
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(uint64(number)) //nolint:gosec // any number will do
	}
	return protoreflect.ValueOfInt64(number)
}
