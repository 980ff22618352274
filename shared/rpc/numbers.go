package rpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// largestExact is the largest whole number up to which every program that reads JSON numbers as doubles keeps them exact.
const largestExact = 1<<53 - 1

// plainNumbers writes the whole numbers of a message as numbers where protojson quotes them, as it does with all of 64 bits.
// Quoted, "9" sorts behind "10" in jq. What a double does not keep exactly stays quoted. Readers of protojson take both.
func plainNumbers(encoded []byte, message protoreflect.MessageDescriptor) ([]byte, error) {
	w := numbers{in: json.NewDecoder(bytes.NewReader(encoded))}
	w.in.UseNumber()
	if err := w.message(message); err != nil {
		return nil, fmt.Errorf("write numbers as numbers: %w", err)
	}
	return w.out.Bytes(), nil
}

// numbers walks over the JSON of a message, beside its description.
type numbers struct {
	in  *json.Decoder
	out bytes.Buffer
}

// message writes an object by its fields. The well-known types have forms of their own: only the wrappers are numbers.
func (w *numbers) message(message protoreflect.MessageDescriptor) error {
	switch name := message.FullName(); {
	case name == "google.protobuf.Int64Value" || name == "google.protobuf.UInt64Value":
		return w.number()
	case strings.HasPrefix(string(name), "google.protobuf."):
		return w.copied()
	}
	return w.object(func(key string) error {
		field := message.Fields().ByName(protoreflect.Name(key))
		switch {
		case field == nil:
			return w.copied()
		case field.IsMap():
			return w.object(func(string) error { return w.value(field.MapValue()) })
		case field.IsList():
			return w.list(field)
		}
		return w.value(field)
	})
}

// value writes one value of a field.
func (w *numbers) value(field protoreflect.FieldDescriptor) error {
	switch field.Kind() {
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind,
		protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return w.number()
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return w.message(field.Message())
	}
	return w.copied()
}

// object writes the keys of an object as they are. What writes the value of a key is told the key.
func (w *numbers) object(value func(key string) error) error {
	return w.within('{', '}', func() error {
		token, err := w.in.Token()
		if err != nil {
			return err
		}
		key, ok := token.(string)
		if !ok {
			return fmt.Errorf("%v is no key", token)
		}
		if err := w.text(key); err != nil {
			return err
		}
		w.out.WriteByte(':')
		return value(key)
	})
}

func (w *numbers) list(field protoreflect.FieldDescriptor) error {
	return w.within('[', ']', func() error { return w.value(field) })
}

// within writes what stands between two brackets, one part after the other.
func (w *numbers) within(opening, closing json.Delim, part func() error) error {
	if err := w.bracket(opening); err != nil {
		return err
	}
	for first := true; w.in.More(); first = false {
		if !first {
			w.out.WriteByte(',')
		}
		if err := part(); err != nil {
			return err
		}
	}
	return w.bracket(closing)
}

func (w *numbers) bracket(want json.Delim) error {
	token, err := w.in.Token()
	if err != nil {
		return err
	}
	if token != want {
		return fmt.Errorf("%v stands where %v should", token, want)
	}
	w.out.WriteString(want.String())
	return nil
}

// text writes a string without more escapes than JSON needs.
func (w *numbers) text(s string) error {
	encoder := json.NewEncoder(&w.out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s); err != nil {
		return err
	}
	w.out.Truncate(w.out.Len() - 1) // the encoder ends with a line feed
	return nil
}

// copied writes a value as it is.
func (w *numbers) copied() error {
	var raw json.RawMessage
	if err := w.in.Decode(&raw); err != nil {
		return err
	}
	w.out.Write(raw)
	return nil
}

// number takes the quotes off a number that a double keeps exactly.
func (w *numbers) number() error {
	var raw json.RawMessage
	if err := w.in.Decode(&raw); err != nil {
		return err
	}
	if plain := bytes.Trim(raw, `"`); exact(string(plain)) {
		raw = plain
	}
	w.out.Write(raw)
	return nil
}

func exact(number string) bool {
	n, err := strconv.ParseInt(number, 10, 64)
	return err == nil && -largestExact <= n && n <= largestExact
}
