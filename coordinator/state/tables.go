package state

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/btree"
)

// tables are the rows of one moment, by the name of their table. They never change: what comes next is drafted on a copy,
// which shares with them all that it does not change itself.
type tables map[string]*indexed

// indexed are the rows of one table, under the keys of each of its indexes.
type indexed struct {
	schema tableSchema
	trees  []*tree // as the schema's indexes
}

type tree = btree.Map[string, any]

// degree is half of how many keys a node of a tree has at most. A node is copied as a whole when it changes for the first time
// after a moment, so that wide ones cost each entry of the log more than their depth saves it.
const degree = 8

func newTables() tables {
	all := make(tables)
	for _, schema := range newSchema() {
		rows := &indexed{schema: schema}
		for range schema.indexes {
			rows.trees = append(rows.trees, btree.NewMap[string, any](degree))
		}
		all[schema.name] = rows
	}
	return all
}

// index is the tree of an index. Queries name tables and indexes of the schema, so that another one is a slip of this
// package.
func (t tables) index(table, index string) *tree {
	if rows := t[table]; rows != nil {
		for i := range rows.schema.indexes {
			if rows.schema.indexes[i].name == index {
				return rows.trees[i]
			}
		}
	}
	halt("there is no index %q of table %q", index, table)
	return nil
}

// row is the row with this ID, nil if there is none.
func (t tables) row(table, id string) any {
	row, _ := t.index(table, byID).Get(text(id))
	return row
}

// all are the rows of a table, by ID.
func (t tables) all(table string) iter.Seq[any] {
	return func(yield func(any) bool) {
		t.index(table, byID).Scan(func(_ string, row any) bool { return yield(row) })
	}
}

func (t tables) count(table string) int { return t.index(table, byID).Len() }

// each walks the rows whose keys begin with prefix, in the order of the index. Nothing of the table may change meanwhile.
func each[Row any](from tables, table, index, prefix string) iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		from.index(table, index).Ascend(prefix, func(key string, row any) bool {
			return strings.HasPrefix(key, prefix) && yield(row.(*Row))
		})
	}
}

// since walks the rows from a key on.
func since[Row any](from tables, table, index, key string) iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		from.index(table, index).Ascend(key, func(_ string, row any) bool { return yield(row.(*Row)) })
	}
}

// backwards walks all rows from the last one on.
func backwards[Row any](from tables, table, index string) iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		from.index(table, index).Reverse(func(_ string, row any) bool { return yield(row.(*Row)) })
	}
}

// down walks the rows whose keys begin with prefix and come before that of an upper end, the last one first.
func down[Row any](from tables, table, index, prefix, end string) iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		from.index(table, index).Descend(prefix+end, func(key string, row any) bool {
			return strings.HasPrefix(key, prefix) && yield(row.(*Row))
		})
	}
}

// first is the first row of an index.
func first[Row any](from tables, table, index string) (*Row, bool) {
	for row := range each[Row](from, table, index, "") {
		return row, true
	}
	return nil, false
}

func get[Row any](from tables, table, id string) (*Row, bool) {
	row, ok := from.row(table, id).(*Row)
	return row, ok
}

// draft is what tables are to become. It can be taken back change by change.
type draft struct {
	tables
	own     map[string]bool // tables that share nothing any more that could change
	changes []rowChange
}

// rowChange is a row that took the place of another one. Either is nil if there is none.
type rowChange struct {
	table, id string
	was, is   any
}

func (t tables) draft() *draft { return &draft{tables: maps.Clone(t), own: make(map[string]bool)} }

func (d *draft) rows(table string) *indexed {
	rows := d.tables[table]
	if rows == nil {
		halt("there is no table %q", table)
	}
	if !d.own[table] {
		copied := &indexed{schema: rows.schema, trees: make([]*tree, len(rows.trees))}
		for i := range rows.trees {
			copied.trees[i] = rows.trees[i].Copy()
		}
		d.tables[table], d.own[table], rows = copied, true, copied
	}
	return rows
}

// insert takes a row in, in place of the one that has its ID.
func (d *draft) insert(table string, row any) {
	rows := d.rows(table)
	id := rows.schema.idOf(row)
	was := rows.replace(id, row)
	d.changes = append(d.changes, rowChange{table, id, was, row})
}

// remove takes the row that has the ID of this one away, if there is one.
func (d *draft) remove(table string, row any) {
	rows := d.rows(table)
	id := rows.schema.idOf(row)
	if was := rows.replace(id, nil); was != nil {
		d.changes = append(d.changes, rowChange{table, id, was, nil})
	}
}

// takeBack undoes the changes after the first n.
func (d *draft) takeBack(n int) {
	for i := len(d.changes) - 1; i >= n; i-- {
		change := &d.changes[i]
		d.rows(change.table).replace(change.id, change.was)
	}
	d.changes = slices.Delete(d.changes, n, len(d.changes))
}

// before is the row that had this ID before the changes after the first n.
func (d *draft) before(n int, table, id string) any {
	key := text(id)
	for i := n; i < len(d.changes); i++ {
		if change := &d.changes[i]; change.table == table && change.id == key {
			return change.was
		}
	}
	return d.row(table, id)
}

// replace puts a row under its keys, or nothing if it is nil, and gives back what had its ID.
func (r *indexed) replace(id string, row any) (was any) {
	if row == nil {
		was, _ = r.trees[0].Delete(id)
	} else {
		was, _ = r.trees[0].Set(id, row)
	}
	for i := 1; i < len(r.trees); i++ {
		index := &r.schema.indexes[i]
		keys := index.under(id, row)
		for _, key := range index.under(id, was) {
			if !slices.Contains(keys, key) {
				r.trees[i].Delete(key)
			}
		}
		for _, key := range keys {
			r.trees[i].Set(key, row)
		}
	}
	return was
}
