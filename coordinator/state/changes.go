package state

import (
	"cmp"
	"slices"
)

// Change names a record that is another one, or is gone, or has come.
type Change struct {
	Table Table
	ID    string
}

// step is what one entry of the log has changed.
type step struct {
	index   uint64
	changed []Change
}

// keptSteps is how many steps a moment can look back at least. Who asks does so many times a second.
const keptSteps = 2048

// followed are the tables whose changes are kept: those that others derive something from.
var followed = map[string]bool{string(Nodes): true, string(VMs): true, string(Operations): true, string(Resources): true}

// changesOf are the records of the followed tables in a draft. One that changed twice may be named twice.
func changesOf(rows *draft) []Change {
	var changed []Change
	for i := range rows.changes {
		if change := &rows.changes[i]; followed[change.table] {
			changed = append(changed, Change{Table: Table(change.table), ID: change.id[:len(change.id)-1]}) // text ends with a NUL
		}
	}
	return changed
}

// follow notes that a moment came after another one by these changes. Moments share the list: each sees its own beginning of it, and
// only the newest one adds to it.
func (x *Snapshot) follow(last *Snapshot, changed []Change) {
	x.line, x.steps = last.line, last.steps
	if len(x.steps) >= 2*keptSteps {
		x.steps = slices.Clone(x.steps[len(x.steps)-keptSteps:])
	}
	x.steps = append(x.steps, step{index: x.Index(), changed: changed})
}

// Since names the nodes, VMs, operations and resources that are not what they were at an earlier moment. It is false when that is not
// known: the other moment is no earlier one, it is too long ago, or a snapshot was restored since.
func (x *Snapshot) Since(earlier *Snapshot) ([]Change, bool) {
	if x == earlier {
		return nil, true
	}
	if x.line != earlier.line || earlier.Index() >= x.Index() {
		return nil, false
	}
	at, known := slices.BinarySearchFunc(x.steps, earlier.Index(), func(s step, index uint64) int { return cmp.Compare(s.index, index) })
	switch {
	case known:
		at++
	case len(earlier.steps) > 0 || len(x.steps) == 0 || len(x.steps) >= keptSteps:
		return nil, false // its own step is not kept any more
	}
	var changed []Change
	for _, one := range x.steps[at:] {
		changed = append(changed, one.changed...)
	}
	return changed, true
}
