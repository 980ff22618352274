package state

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// Partial tells that a record of a command has only some fields: the others stay as they are in the record that the command
// expects. It needs PackLevel.
type Partial struct {
	Table  Table    `json:"table"`
	ID     string   `json:"id"`
	Fields []string `json:"fields,omitempty"` // those that the command sets, by their names in JSON; also to nothing
}

// Lean is the command as it goes into the log: without what stays as it is in the records that it replaces. A start writes a
// VM twice, with a document and user data that are larger than all else. Nothing is left out of a record that has changed
// since: the command is refused then.
func (c *Command) Lean(x *Snapshot) *Command {
	if x.FeatureLevel() < PackLevel || len(c.Partial) > 0 {
		return c
	}
	lean := *c
	thin := thinning{x.tables, c.Expect, nil}
	lean.Nodes = thinned(&thin, Nodes, c.Nodes)
	lean.VMs = thinned(&thin, VMs, c.VMs)
	lean.Operations = thinned(&thin, Operations, c.Operations)
	lean.Resources = thinned(&thin, Resources, c.Resources)
	if lean.Partial = thin.found; len(lean.Partial) == 0 {
		return c
	}
	return &lean
}

type thinning struct {
	rows   tables
	expect []Expectation
	found  []Partial
}

// expectedIn is the revision at which a record must be; 0: it is not expected, or must not be there.
func expectedIn(expect []Expectation, table Table, id string) uint64 {
	for _, e := range expect {
		if e.Table == table && e.ID == id {
			return e.Revision
		}
	}
	return 0
}

// thinned are the records without what stays. The records themselves are not changed.
func thinned[Row any](t *thinning, table Table, records []Row) []Row {
	layout, copied := layouts[table], false
	for i := range records {
		record := reflect.ValueOf(&records[i]).Elem()
		id := record.FieldByIndex(layout.id).String()
		row, exists := get[Row](t.rows, string(table), id)
		if !exists || slices.ContainsFunc(t.found, func(p Partial) bool { return p.Table == table && p.ID == id }) {
			continue
		}
		present := reflect.ValueOf(row).Elem()
		if revision := present.FieldByIndex(layout.revision).Uint(); revision == 0 || expectedIn(t.expect, table, id) != revision {
			continue
		}
		partial := Partial{Table: table, ID: id}
		var part Row
		into := reflect.ValueOf(&part).Elem()
		saves := false
		for _, field := range layout.fields {
			is := record.FieldByIndex(field.index)
			if reflect.DeepEqual(is.Interface(), present.FieldByIndex(field.index).Interface()) {
				saves = saves || !is.IsZero()
				continue
			}
			into.FieldByIndex(field.index).Set(is)
			partial.Fields = append(partial.Fields, field.name)
		}
		if !saves {
			continue
		}
		into.FieldByIndex(layout.id).SetString(id)
		if !copied {
			records, copied = slices.Clone(records), true
		}
		records[i] = part
		t.found = append(t.found, partial)
	}
	return records
}

// complete gives the records of the command what was left out of them. It comes before all checks, so that a command is answered as if
// nothing had been left out: what belongs to another revision is refused by its expectation.
func (w *write) complete(command *Command) *Refusal {
	for i := range command.Partial {
		partial, whole := &command.Partial[i], false
		var refusal *Refusal
		switch partial.Table {
		case Nodes:
			whole, refusal = completed(w, partial, command.Nodes)
		case VMs:
			whole, refusal = completed(w, partial, command.VMs)
		case Operations:
			whole, refusal = completed(w, partial, command.Operations)
		case Resources:
			whole, refusal = completed(w, partial, command.Resources)
		}
		switch {
		case refusal != nil:
			return refusal
		case !whole:
			if refusal := w.checkExpectations(command); refusal != nil {
				return refusal // it is gone
			}
			return invalid(partial.Table, partial.ID, "the command has a part of %s %q, of which there is nothing more", partial.Table, partial.ID)
		}
	}
	return nil
}

// completed is false if the command does not put the record, or nothing is there to complete it with.
func completed[Row any](w *write, partial *Partial, records []Row) (bool, *Refusal) {
	row, exists := get[Row](w.tables, string(partial.Table), partial.ID)
	if !exists {
		return false, nil
	}
	layout := layouts[partial.Table]
	for i := range records {
		record := reflect.ValueOf(&records[i]).Elem()
		if record.FieldByIndex(layout.id).String() != partial.ID {
			continue
		}
		whole := *row // what it shares with that row is changed in neither
		into := reflect.ValueOf(&whole).Elem()
		for _, name := range partial.Fields {
			at := slices.IndexFunc(layout.fields, func(f fieldLayout) bool { return f.name == name })
			if at < 0 {
				return false, invalid(partial.Table, partial.ID, "no %s has the field %q", partial.Table, name)
			}
			into.FieldByIndex(layout.fields[at].index).Set(record.FieldByIndex(layout.fields[at].index))
		}
		records[i] = whole
		return true, nil
	}
	return false, nil
}

// layouts tell where the fields of records are that a command may have a part of.
var layouts = map[Table]rowLayout{
	Nodes: layoutOf[model.Node](), VMs: layoutOf[model.VM](), Operations: layoutOf[operation.Operation](),
	Resources: layoutOf[model.Resource](),
}

type rowLayout struct {
	id, revision []int
	fields       []fieldLayout // all others
}

type fieldLayout struct {
	name  string // in JSON
	index []int
}

func layoutOf[Row any]() rowLayout {
	var layout rowLayout
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Row]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "id":
			layout.id = field.Index
		case name == "revision":
			layout.revision = field.Index
		case field.Anonymous && name == "": // its fields are among those that follow
		case name == "":
			panic(fmt.Sprintf("state: the field %s of %T has no name in JSON", field.Name, *new(Row))) //nolint:forbidigo // a slip of this package
		default:
			layout.fields = append(layout.fields, fieldLayout{name, field.Index})
		}
	}
	return layout
}
