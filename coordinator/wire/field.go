package wire

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// messageField is a field of the schema where a message has it.
type messageField[R any] struct {
	*schema.Field[R]
	in protoreflect.FieldDescriptor
}

// fieldsIn are those of the fields that a message has, by their names. A size ends in _bytes there.
func fieldsIn[R any](message protoreflect.MessageDescriptor, table []schema.Field[R], has func(*schema.Field[R]) bool) []messageField[R] {
	var found []messageField[R]
	for i := range table {
		f := &table[i]
		for _, name := range []string{f.Name, f.Name + "_bytes"} {
			if in := message.Fields().ByName(protoreflect.Name(name)); in != nil && has(f) {
				found = append(found, messageField[R]{f, in})
			}
		}
	}
	return found
}

// Keys are messages of their own, and where a VM is to run is reported with what it comes to.
var (
	vmFields = fieldsIn((*berthv1.VM)(nil).ProtoReflect().Descriptor(), schema.VM, func(f *schema.Field[model.VM]) bool {
		return !f.Spec && f.Name != "keys" && f.Name != "within"
	})
	newVMFields  = fieldsIn((*berthv1.NewVM)(nil).ProtoReflect().Descriptor(), schema.VM, notKeys)
	changeFields = fieldsIn((*berthv1.VMChange)(nil).ProtoReflect().Descriptor(), schema.VM, notKeys)
)

func notKeys(f *schema.Field[model.VM]) bool { return f.Name != "keys" }

// WantedVM reads what a new VM is to have beyond its specification and its keys. The error is a *model.InvalidError.
func WantedVM(message *berthv1.NewVM) (estate.WantedVM, error) {
	return wanted(newVMFields, message.ProtoReflect())
}

// WantedOf reads what is to change of a VM. The error is a *model.InvalidError.
func WantedOf(message *berthv1.VMChange) (estate.WantedVM, error) {
	return wanted(changeFields, message.ProtoReflect())
}

func wanted(fields []messageField[model.VM], message protoreflect.Message) (estate.WantedVM, error) {
	var all estate.WantedVM
	for i := range fields {
		f := &fields[i]
		if !message.Has(f.in) {
			continue
		}
		all.Fields = append(all.Fields, f.Name)
		if err := f.read(message.Get(f.in), &all.VM); err != nil {
			return estate.WantedVM{}, err
		}
	}
	return all, nil
}

func (f *messageField[R]) read(value protoreflect.Value, into *R) (err error) {
	switch at := f.At(into).(type) {
	case *string:
		*at, err = f.Take(value.String())
	case *schema.Place:
		*at = schema.Place(value.String())
	case *bool:
		*at = value.Bool()
	case *int:
		*at = int(value.Int())
	case *units.Bytes:
		*at = units.Bytes(value.Int())
	case *[]string:
		*at = listOf(value)
	case schema.Disks:
		*at.Linked = listOf(value)
	}
	return err
}

// listOf reads a list of texts, which is a message of its own where it can be given as empty.
func listOf(value protoreflect.Value) []string {
	if message, is := value.Interface().(protoreflect.Message); is {
		return message.Interface().(*berthv1.Names).GetNames()
	}
	list := value.List()
	texts := make([]string, list.Len())
	for i := range texts {
		texts[i] = list.Get(i).String()
	}
	return texts
}

// write puts the value that a record has into a message. Links get the names of what they lead to.
func (f *messageField[R]) write(message protoreflect.Message, r *R, name func(kind model.Kind, id string) string) {
	list := func(kind model.Kind, texts []string) {
		if len(texts) == 0 {
			return
		}
		into := message.Mutable(f.in).List()
		for _, text := range texts {
			if kind != "" {
				text = name(kind, text)
			}
			into.Append(protoreflect.ValueOfString(text))
		}
	}
	switch at := f.At(r).(type) {
	case *string:
		text := f.Shown(*at)
		if f.To != "" && text != "" {
			text = name(f.To, text)
		}
		if text != "" {
			message.Set(f.in, protoreflect.ValueOfString(text))
		}
	case *bool:
		if *at {
			message.Set(f.in, protoreflect.ValueOfBool(true))
		}
	case *int:
		if *at != 0 {
			message.Set(f.in, protoreflect.ValueOfInt32(int32(*at)))
		}
	case *units.Bytes:
		if *at != 0 {
			message.Set(f.in, protoreflect.ValueOfInt64(int64(*at)))
		}
	case *[]string:
		list(f.To, *at)
	case schema.Disks:
		list(model.KindDisk, *at.Linked)
	}
}
