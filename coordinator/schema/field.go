// Package schema is the one description of what people declare: the fields of VMs and nodes, and the kinds of resources with
// their links, settings and lists. Documents, their help, differences, the messages of the API and the command line read the
// tables here, so a new field is one row, and a new kind is one entry.
package schema

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"berth/coordinator/model"
	"berth/shared/units"
)

// Field is one thing that people declare of a record.
type Field[R any] struct {
	Name     string // in documents, in messages and in differences
	Doc      string // of documents, for people
	Required bool
	Spec     bool // it is a part of model.VMSpec, which XML may stand for

	// To is the kind of what the field links to. Records have IDs there; documents, messages and the command line have names.
	To model.Kind
	// Words are the only values of a text, where there are few. With Defaults the first one is kept as empty.
	Words    []string
	Defaults bool
	// Long is what a text of many lines is called. Differences tell only how long it is, and its digest.
	Long string
	// Most is how many printable characters a text may have; 0: whoever reads the text judges it.
	Most int
	// Unset is what differences say of a value that may be absent and is.
	Unset string
	// Check judges a list of words, which is kept in ascending order; nil: the list is kept as it is given.
	Check func(words []string) error

	// Live tells that what runs has a change at once. Others wait for the next start.
	Live bool
	// Since is the feature level from which members keep the field; 0: all do.
	Since uint32

	// Help is of the flag that gives the field on the command line, with the word for its value in back quotes; empty: the field has no
	// flag, or one that is read in a way of its own. Flag is its name, where that is not the field's with dashes, and Suggest what
	// completion offers of a text that may be something else.
	Help    string
	Flag    string
	Suggest []string
	// Title is what 'berth vm show' and 'berth node show' call the field; empty: they tell it together with other things.
	Title string

	// At is where a record keeps the value: a pointer to one of the types that Text lists, or a Disks.
	At func(*R) any
}

// Place is where a VM is to run: in records the ID of a zone, a pod or a cluster, elsewhere kind/name.
type Place string

// Disks are all disks of a VM: those that it links to, and plain files behind them.
type Disks struct {
	Linked *[]string
	Files  *[]model.Disk
}

// Same tells whether two records have the same value.
func (f *Field[R]) Same(a, b *R) bool {
	switch x := f.At(a).(type) {
	case *string:
		return *x == *f.At(b).(*string)
	case *Place:
		return *x == *f.At(b).(*Place)
	case *bool:
		return *x == *f.At(b).(*bool)
	case *int:
		return *x == *f.At(b).(*int)
	case *units.Bytes:
		return *x == *f.At(b).(*units.Bytes)
	case **float64:
		return equalAt(*x, *f.At(b).(**float64))
	case **units.Bytes:
		return equalAt(*x, *f.At(b).(**units.Bytes))
	case *[]string:
		return slices.Equal(*x, *f.At(b).(*[]string))
	case *[]model.Key:
		return slices.Equal(*x, *f.At(b).(*[]model.Key))
	case *map[string]float64:
		return maps.Equal(*x, *f.At(b).(*map[string]float64))
	case Disks:
		y := f.At(b).(Disks)
		return slices.Equal(*x.Linked, *y.Linked) && slices.Equal(*x.Files, *y.Files)
	default:
		return false
	}
}

func equalAt[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// Same tells whether two records have the same values of all fields.
func Same[R any](fields []Field[R], a, b *R) bool {
	for i := range fields {
		if !fields[i].Same(a, b) {
			return false
		}
	}
	return true
}

// Level is the feature level that it takes to keep a record, and the name of a field that takes it; 0: every member keeps it.
func Level[R any](fields []Field[R], r *R) (level uint32, field string) {
	var none R
	for i := range fields {
		if f := &fields[i]; f.Since > level && !f.Same(r, &none) {
			level, field = f.Since, f.Name
		}
	}
	return level, field
}

// Copy gives one record the value that another one has.
func (f *Field[R]) Copy(to, from *R) {
	switch x := f.At(to).(type) {
	case *string:
		*x = *f.At(from).(*string)
	case *Place:
		*x = *f.At(from).(*Place)
	case *bool:
		*x = *f.At(from).(*bool)
	case *int:
		*x = *f.At(from).(*int)
	case *units.Bytes:
		*x = *f.At(from).(*units.Bytes)
	case **float64:
		*x = *f.At(from).(**float64)
	case **units.Bytes:
		*x = *f.At(from).(**units.Bytes)
	case *[]string:
		*x = *f.At(from).(*[]string)
	case *[]model.Key:
		*x = *f.At(from).(*[]model.Key)
	case *map[string]float64:
		*x = *f.At(from).(*map[string]float64)
	case Disks:
		y := f.At(from).(Disks)
		*x.Linked, *x.Files = *y.Linked, *y.Files
	}
}

// Relink replaces what a record links to by way of the field: IDs by other IDs, or names by IDs. The kind of a place is empty,
// and its name is kind/name. An empty link stays empty, and lists of the record are not changed in place.
func (f *Field[R]) Relink(r *R, final func(kind model.Kind, ref string) string) {
	many := func(list *[]string, kind model.Kind) {
		if len(*list) == 0 {
			return
		}
		next := make([]string, len(*list))
		for i, one := range *list {
			next[i] = final(kind, one)
		}
		*list = next
	}
	switch at := f.At(r).(type) {
	case *string:
		if f.To != "" && *at != "" {
			*at = final(f.To, *at)
		}
	case *[]string:
		if f.To != "" {
			many(at, f.To)
		}
	case *Place:
		if *at != "" {
			*at = Place(final("", string(*at)))
		}
	case Disks:
		many(at.Linked, model.KindDisk)
	}
}

// Take reads a text of the field: one of its words where it has some, and otherwise anything that is not too long. It is for
// fields that are kept as one text. The error is a *model.InvalidError.
func (f *Field[R]) Take(text string) (string, error) {
	if f.Most > 0 {
		return text, model.ValidateText(f.Name, text, f.Most)
	}
	if f.Words == nil {
		return text, nil
	}
	if !slices.Contains(f.Words, text) {
		return "", &model.InvalidError{Field: f.Name, Value: quoted(text), Want: AnyOf(f.Words)}
	}
	if f.Defaults && text == f.Words[0] {
		return "", nil
	}
	return text, nil
}

// FlagName is what the command line calls the field.
func (f *Field[R]) FlagName() string { return cmp.Or(f.Flag, strings.ReplaceAll(f.Name, "_", "-")) }

// Shown is a text as people write it: the first word for one that is kept as empty.
func (f *Field[R]) Shown(text string) string {
	if f.Defaults {
		return cmp.Or(text, f.Words[0])
	}
	return text
}

// Of is the field of that name.
func Of[R any](fields []Field[R], name string) *Field[R] {
	at := slices.IndexFunc(fields, func(f Field[R]) bool { return f.Name == name })
	return &fields[at]
}

// Names are those of fields, in their order. A place is named by its kind.
func Names[R any](fields []Field[R]) []string {
	var names []string
	var none R
	for i := range fields {
		if _, place := fields[i].At(&none).(*Place); place {
			names = append(names, Places...)
			continue
		}
		names = append(names, fields[i].Name)
	}
	return names
}

// Places are the kinds of what a VM may be placed in, the smallest first.
var Places = []string{string(model.KindCluster), string(model.KindPod), string(model.KindZone)}

// AnyOf lists all of a few words.
func AnyOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
