package agents

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"berth/shared/plaintext"
)

const (
	// mostText is how long a text from an agent may be, in bytes: names, reasons, errors. They come into records, events and logs.
	mostText = 512
	// mostPath is that of paths, as Linux has it. One that was cut would be another file's.
	mostPath = 4096
)

// documents are read by programs, not by people, and are bounded with the messages that they are in.
var documents = map[protoreflect.Name]bool{"domain_xml": true, "capabilities_xml": true, "xml": true}

// clean makes all texts of a message short and printed.
func clean(message proto.Message) { cleanAll(message.ProtoReflect()) }

func cleanAll(message protoreflect.Message) {
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		text, nested := field.Kind() == protoreflect.StringKind, field.Message() != nil
		switch {
		case documents[field.Name()], !text && !nested:
		case field.IsList():
			list := value.List()
			for i := range list.Len() {
				if nested {
					cleanAll(list.Get(i).Message())
				} else {
					list.Set(i, line(field, list.Get(i)))
				}
			}
		case nested:
			cleanAll(value.Message())
		default:
			message.Set(field, line(field, value))
		}
		return true
	})
}

func line(field protoreflect.FieldDescriptor, value protoreflect.Value) protoreflect.Value {
	most := mostText
	if field.Name() == "path" {
		most = mostPath
	}
	return protoreflect.ValueOfString(plaintext.Line(value.String(), most))
}
