package state

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/coordinator/model"
)

func TestCopiesShareNoMemory(t *testing.T) {
	t.Run("node", func(t *testing.T) { checkCopy(t, cloneNode) })
	t.Run("resource", func(t *testing.T) { checkCopy(t, cloneResource) })
	t.Run("vm", func(t *testing.T) { checkCopy(t, cloneVM) })
	t.Run("operation", func(t *testing.T) { checkCopy(t, cloneOperation) })
	t.Run("member", func(t *testing.T) { checkCopy(t, copied[model.Member]) })
	t.Run("token", func(t *testing.T) { checkCopy(t, cloneToken) })
	t.Run("event", func(t *testing.T) { checkCopy(t, cloneEvent) })
	t.Run("plan", func(t *testing.T) { checkCopy(t, clonePlan) })
	t.Run("identity", func(t *testing.T) { checkCopy(t, cloneIdentity) })
	t.Run("decision", func(t *testing.T) { checkCopy(t, cloneDecision) })
}

func checkCopy[Row, Out any](t *testing.T, clone func(*Row) Out) {
	row := new(Row)
	fill(reflect.ValueOf(row).Elem())
	seen := make(map[uintptr]bool)
	addresses(reflect.ValueOf(row), func(at uintptr, _ string) { seen[at] = true }, "")
	out := clone(row)
	addresses(reflect.ValueOf(&out), func(at uintptr, path string) {
		if at != 0 && seen[at] {
			t.Errorf("the copy shares %s with the stored record", path)
		}
	}, "record")

	// And nothing is lost on the way.
	var want any = *row
	switch stored := want.(type) {
	case decisionRow:
		want = stored.Decision
	case eventRow:
		want = stored.Event
	}
	if diff := cmp.Diff(want, any(out)); diff != "" {
		t.Error(diff)
	}
}

// fill gives every pointer, slice and map below v something to point to.
func fill(v reflect.Value, within ...reflect.Type) {
	if v.Type().PkgPath() == "time" && v.Kind() == reflect.Struct {
		return
	}
	inside := 0
	for _, one := range within {
		if one == v.Type() {
			inside++
		}
	}
	if inside > 1 {
		return // records of their own kind have no end
	}
	within = append(slices.Clip(within), v.Type())
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), within...)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), within...)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, within...)
		fill(value, within...)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if column, is := v.Addr().Interface().(json.Unmarshaler); is { // of figures: its parts are its own
			if err := column.UnmarshalJSON([]byte("[1,2]")); err != nil {
				panic(err)
			}
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), within...)
		}
	case reflect.String:
		v.SetString("text")
	}
}

func addresses(v reflect.Value, visit func(at uintptr, path string), path string) {
	if v.Type().PkgPath() == "time" && v.Kind() == reflect.Struct {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		visit(v.Pointer(), path)
		addresses(v.Elem(), visit, path)
	case reflect.Map:
		visit(v.Pointer(), path)
		for _, key := range v.MapKeys() {
			addresses(v.MapIndex(key), visit, path+"[]")
		}
	case reflect.Slice:
		if v.Len() > 0 { // all that have room for nothing are at one place
			visit(v.Pointer(), path)
		}
		for i := range v.Len() {
			addresses(v.Index(i), visit, path+"[]")
		}
	case reflect.Struct:
		for i := range v.NumField() {
			addresses(v.Field(i), visit, path+"."+v.Type().Field(i).Name)
		}
	}
}
