// Package roundtrip copies a value to what encoding/json would make of it on its way into text and back, without the text. Who has
// written a record for others to read has then what they read, for a fraction of what reading costs.
//
// It knows structs, slices, arrays, maps with names for keys, pointers, texts, truths and numbers, times, and types that copy themselves.
// What it does not know has no copy, and a value that text could not hold as it is has none either: who asks reads the text then.
package roundtrip

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Rounder is a type that has a text of its own. Roundtrip gives what its text is read as, with no memory in common; false: it does not
// know. IsZero tells, as for encoding/json, whether a record leaves it out.
type Rounder interface {
	Roundtrip() (any, bool)
	IsZero() bool
}

// Copy is what reading the text of the value would give. It shares no memory with the value that anybody could change. False: the text has
// to be read, because something in the value might come back as something else.
func Copy[T any](value *T) (copied *T, same bool) {
	fix := fixOf(reflect.TypeFor[T]())
	out := *value
	if fix != nil && !fix(reflect.ValueOf(&out).Elem()) {
		return nil, false
	}
	return &out, true
}

// Check tells what of a type is not known; nil: all is. The error names it.
func Check(t reflect.Type) error {
	_, err := compile(t, map[reflect.Type]bool{})
	return err
}

// fix makes what text would give of a value that has been copied bit by bit. False: that is not known.
type fix func(reflect.Value) bool

var fixes sync.Map // reflect.Type to fix

// fixOf is what has to be done to a copied value of a type; nil: nothing.
func fixOf(t reflect.Type) fix {
	if known, ok := fixes.Load(t); ok {
		return known.(fix)
	}
	made, err := compile(t, map[reflect.Type]bool{})
	if err != nil {
		made = func(reflect.Value) bool { return false }
	}
	fixes.Store(t, made)
	return made
}

var (
	timeType    = reflect.TypeFor[time.Time]()
	rounderType = reflect.TypeFor[Rounder]()
)

// compile makes the fix of a type. Within are the types that it is part of.
func compile(t reflect.Type, within map[reflect.Type]bool) (fix, error) {
	switch {
	case t == timeType:
		return fixTime, nil
	case t.Implements(rounderType):
		return fixRounder, nil
	case ownText(t):
		return nil, fmt.Errorf("%s has a text of its own", t)
	case within[t]: // a record with records of its own kind
		return func(v reflect.Value) bool { own := fixOf(t); return own == nil || own(v) }, nil
	}
	within[t] = true
	defer delete(within, t)
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float64:
		return nil, nil //nolint:nilnil // nothing has to be done
	case reflect.String:
		return func(v reflect.Value) bool { return utf8.ValidString(v.String()) }, nil
	case reflect.Pointer:
		return compilePointer(t, within)
	case reflect.Slice, reflect.Array:
		return compileList(t, within)
	case reflect.Map:
		return compileMap(t, within)
	case reflect.Struct:
		return compileStruct(t, within)
	default:
		return nil, fmt.Errorf("%s is not known", t)
	}
}

// ownText tells whether a type says how it is written or read.
func ownText(t reflect.Type) bool {
	pointer := reflect.PointerTo(t)
	for _, name := range []string{"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "MarshalJSONTo", "UnmarshalJSONFrom"} {
		if _, has := pointer.MethodByName(name); has {
			return true
		}
	}
	return false
}

func fixTime(v reflect.Value) bool {
	at := v.Addr().Interface().(*time.Time)
	_, offset := at.Zone()
	switch {
	case offset == 0:
		*at = at.Round(0).UTC()
	case at.Location() == time.Local && offset%60 == 0:
		*at = at.Round(0)
	default:
		return false // its zone comes back as another value
	}
	return true
}

func fixRounder(v reflect.Value) bool {
	copied, same := v.Interface().(Rounder).Roundtrip()
	if same {
		v.Set(reflect.ValueOf(copied))
	}
	return same
}

func compilePointer(t reflect.Type, within map[reflect.Type]bool) (fix, error) {
	inner, err := compile(t.Elem(), within)
	if t.Elem().Kind() == reflect.Pointer || t.Elem().Kind() == reflect.Slice || t.Elem().Kind() == reflect.Map {
		err = fmt.Errorf("%s points to what may be nothing", t)
	}
	return func(v reflect.Value) bool {
		if v.IsNil() {
			return true
		}
		own := reflect.New(t.Elem())
		own.Elem().Set(v.Elem())
		v.Set(own)
		return inner == nil || inner(own.Elem())
	}, err
}

func compileList(t reflect.Type, within map[reflect.Type]bool) (fix, error) {
	inner, err := compile(t.Elem(), within)
	if err != nil {
		return nil, err
	}
	if t.Kind() == reflect.Array && inner == nil {
		return nil, nil //nolint:nilnil // nothing has to be done
	}
	return func(v reflect.Value) bool {
		if t.Kind() == reflect.Slice {
			if v.IsNil() {
				return true
			}
			own := reflect.MakeSlice(t, v.Len(), v.Len())
			reflect.Copy(own, v)
			v.Set(own)
		}
		for i := 0; inner != nil && i < v.Len(); i++ {
			if !inner(v.Index(i)) {
				return false
			}
		}
		return true
	}, nil
}

func compileMap(t reflect.Type, within map[reflect.Type]bool) (fix, error) {
	inner, err := compile(t.Elem(), within)
	if err == nil && (t.Key().Kind() != reflect.String || ownText(t.Key())) {
		err = fmt.Errorf("the keys of %s are not known", t)
	}
	return func(v reflect.Value) bool {
		if v.IsNil() {
			return true
		}
		own := reflect.MakeMapWithSize(t, v.Len())
		for entry := v.MapRange(); entry.Next(); {
			value := reflect.New(t.Elem()).Elem()
			value.Set(entry.Value())
			if !utf8.ValidString(entry.Key().String()) || inner != nil && !inner(value) {
				return false
			}
			own.SetMapIndex(entry.Key(), value)
		}
		v.Set(own)
		return true
	}, err
}

// part is a field of a struct to which something has to be done.
type part struct {
	index     int
	omitEmpty bool // as encoding/json does: without a value that is false, zero, nothing or without entries
	omitZero  bool
	fix       fix
}

func compileStruct(t reflect.Type, within map[reflect.Type]bool) (fix, error) {
	if twice := sameName(t); twice != "" {
		return nil, fmt.Errorf("two fields of %s are written as %q", t, twice)
	}
	var parts []part
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		embedded := field.Anonymous && name == "" && field.Type.Kind() == reflect.Struct
		if name == "-" || !field.IsExported() || name == "" && !embedded {
			return nil, fmt.Errorf("the field %s of %s has no name in text", field.Name, t)
		}
		inner, err := compile(field.Type, within)
		if err != nil {
			return nil, err
		}
		one := part{index: i, fix: inner}
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "":
			case "omitempty":
				one.omitEmpty = true
			case "omitzero":
				one.omitZero = true
			default:
				return nil, fmt.Errorf("the option %q of the field %s of %s is not known", option, field.Name, t)
			}
		}
		if one.fix != nil || one.omitEmpty && field.Type.Kind() == reflect.Float64 || one.omitZero {
			parts = append(parts, one)
		}
	}
	if len(parts) == 0 {
		return nil, nil //nolint:nilnil // nothing has to be done
	}
	return func(v reflect.Value) bool {
		for i := range parts {
			if !parts[i].of(v.Field(parts[i].index)) {
				return false
			}
		}
		return true
	}, nil
}

func (p *part) of(field reflect.Value) bool {
	switch {
	case p.omitEmpty && isEmpty(field), p.omitZero && isZero(field):
		field.SetZero()
		return true
	case p.fix != nil:
		return p.fix(field)
	default:
		return true
	}
}

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.String:
		return v.Len() == 0
	case reflect.Float64:
		return math.Abs(v.Float()) == 0
	default:
		return false // what else may be left out is zero then
	}
}

func isZero(v reflect.Value) bool {
	if own, has := v.Interface().(interface{ IsZero() bool }); has {
		return own.IsZero()
	}
	return v.IsZero()
}

// sameName is the name that two fields have, those of embedded structs among them, if one reader could take one for the other.
func sameName(t reflect.Type) string {
	names := map[string]bool{}
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name = strings.ToLower(name); name != "" && names[name] {
			return name
		}
		names[name] = true
	}
	return ""
}
