// Package fieldform is how the command line gives and shows the plain fields of a VM or a node. Which there are, their flags, help and
// titles are written in the tables of package schema; a field of a record has the same name in the API's messages.
package fieldform

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	berthv1 "berth/shared/gen/berth/v1"
)

// Flags are the flags of a record's fields.
type Flags[R any] struct {
	Record R // what the line says, with names where records have IDs

	fields []*schema.Field[R]
}

// Of has a flag for each field of the table that has help for one.
func Of[R any](table []schema.Field[R]) *Flags[R] {
	f := &Flags[R]{}
	for i := range table {
		if table[i].Help != "" {
			f.fields = append(f.fields, &table[i])
		}
	}
	return f
}

// Names are those of the flags.
func (f *Flags[R]) Names() []string {
	names := make([]string, len(f.fields))
	for i, field := range f.fields {
		names[i] = field.FlagName()
	}
	return names
}

// Define adds the flags to a command.
func (f *Flags[R]) Define(a *term.App, cmd *cobra.Command) {
	flags := cmd.Flags()
	for _, field := range f.fields {
		name := field.FlagName()
		switch at := f.at(field).(type) {
		case *string:
			flags.StringVar(at, name, "", field.Help)
		case *bool:
			flags.BoolVar(at, name, false, field.Help)
		case *[]string:
			if ofNames(field) {
				flags.StringSliceVar(at, name, nil, field.Help)
			} else {
				flags.StringArrayVar(at, name, nil, field.Help)
			}
		}
		switch {
		case field.To == model.KindNode:
			term.Complete(cmd, name, a.NodeNames())
		case linked(field) != "":
			term.Complete(cmd, name, a.ResourceNames(linked(field)))
		default:
			term.Complete(cmd, name, term.CompleteFixed(slices.Concat(field.Words, field.Suggest)...))
		}
	}
}

// at is where the line's value of a field is: a text, a truth value or a list of texts. A disk that is named is a linked one.
func (f *Flags[R]) at(field *schema.Field[R]) any {
	at := field.At(&f.Record)
	if disks, is := at.(schema.Disks); is {
		return disks.Linked
	}
	return at
}

// linked is the kind of what a field links to; empty: it holds no links.
func linked[R any](field *schema.Field[R]) model.Kind {
	var none R
	if _, is := field.At(&none).(schema.Disks); is {
		return model.KindDisk
	}
	return field.To
}

// ofNames tells whether the texts of a list are names, which have no commas and are there once.
func ofNames[R any](field *schema.Field[R]) bool { return linked(field) != "" || field.Check != nil }

// Make puts what stands on the line into the message of a new record.
func (f *Flags[R]) Make(cmd *cobra.Command, into proto.Message) error {
	for _, field := range f.fields {
		if !cmd.Flags().Changed(field.FlagName()) {
			continue
		}
		if err := f.check(cmd, field); err != nil {
			return err
		}
		f.put(field, into)
	}
	return nil
}

// Change puts what stands on the line into the message of a change, and empties the fields whose flags are to go.
func (f *Flags[R]) Change(cmd *cobra.Command, into proto.Message, gone []string) error {
	for _, field := range f.fields {
		name := field.FlagName()
		given := cmd.Flags().Changed(name)
		if text, is := f.at(field).(*string); given && is && *text == "" {
			return term.Usagef(cmd, "--%s: a value is missing; --unset %s takes away what there is", name, name)
		}
		if given {
			if err := f.check(cmd, field); err != nil {
				return err
			}
		}
		if given || slices.Contains(gone, name) {
			f.put(field, into)
		}
	}
	return nil
}

// check refuses what the coordinator would refuse as well, as far as a single value shows it.
func (f *Flags[R]) check(cmd *cobra.Command, field *schema.Field[R]) error {
	name := field.FlagName()
	switch at := f.at(field).(type) {
	case *string:
		_, err := field.Take(*at)
		switch {
		case err != nil && field.Words != nil:
			return term.Usagef(cmd, "--%s %s: use %s", name, *at, strings.Join(field.Words, ", "))
		case err != nil:
			return term.Usagef(cmd, "--%s: %w", name, err)
		}
	case *[]string:
		if ofNames(field) {
			return term.CheckNames(cmd, name, *at)
		}
	}
	return nil
}

// put gives the field of a message the line's value. A list that can be given as empty is a message of its own.
func (f *Flags[R]) put(field *schema.Field[R], into proto.Message) {
	message := into.ProtoReflect()
	in := message.Descriptor().Fields().ByName(protoreflect.Name(field.Name))
	switch at := f.at(field).(type) {
	case *string:
		message.Set(in, protoreflect.ValueOfString(field.Shown(*at)))
	case *bool:
		message.Set(in, protoreflect.ValueOfBool(*at))
	case *[]string:
		if !in.IsList() {
			message.Set(in, protoreflect.ValueOfMessage((&berthv1.Names{Names: *at}).ProtoReflect()))
			return
		}
		list := message.Mutable(in).List()
		for _, text := range *at {
			list.Append(protoreflect.ValueOfString(text))
		}
	}
}

// Rows are the titles and values of the fields that are set in a message, in the order of the table. The word that stands for a text
// which is not set counts as none.
func Rows[R any](table []schema.Field[R], of proto.Message) [][2]string {
	var rows [][2]string
	message := of.ProtoReflect()
	for i := range table {
		field := &table[i]
		in := message.Descriptor().Fields().ByName(protoreflect.Name(field.Name))
		if field.Title != "" && in != nil && message.Has(in) {
			rows = append(rows, [2]string{field.Title, text(field, message.Get(in))})
		}
	}
	return rows
}

func text[R any](field *schema.Field[R], value protoreflect.Value) string {
	list, several := value.Interface().(protoreflect.List)
	if !several {
		if one := value.String(); !field.Defaults || one != field.Words[0] {
			return one
		}
		return ""
	}
	texts := make([]string, list.Len())
	for i := range texts {
		texts[i] = list.Get(i).String()
	}
	return strings.Join(texts, ", ")
}
