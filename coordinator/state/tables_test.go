package state

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"berth/coordinator/model"
)

// contents are all keys and rows of all indexes.
func contents(from tables) map[string][]any {
	found := make(map[string][]any)
	for name, rows := range from {
		for i, tree := range rows.trees {
			index := name + "/" + rows.schema.indexes[i].name
			tree.Scan(func(key string, row any) bool {
				found[index] = append(found[index], key, row)
				return true
			})
		}
	}
	return found
}

// Whatever is drafted on a moment leaves that moment as it was, and what is taken back is as if it had never been: in every
// index, also where rows have changed hands under one key.
func TestADraftChangesNoMomentAndCanBeTakenBack(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	change := func(d *draft) {
		vm := &model.VM{
			ID: fmt.Sprint("v", random.IntN(60)), Name: fmt.Sprint("name", random.IntN(20)), Offer: fmt.Sprint("offer", random.IntN(3)),
		}
		if random.IntN(2) == 0 {
			vm.Holder = fmt.Sprint("n", random.IntN(5))
		}
		if random.IntN(3) == 0 {
			d.remove(string(VMs), vm)
		} else {
			d.insert(string(VMs), vm)
		}
	}
	now := newTables()
	for round := range 200 {
		before := contents(now)
		d := now.draft()
		for range random.IntN(20) {
			change(d)
		}
		kept, n := contents(d.tables), len(d.changes)
		earlier := make(map[string]any)
		for i := range 60 {
			earlier[fmt.Sprint("v", i)] = d.row(string(VMs), fmt.Sprint("v", i))
		}
		for range random.IntN(20) {
			change(d)
		}
		for id, row := range earlier {
			if was := d.before(n, string(VMs), id); was != row {
				t.Fatalf("round %d: before the last changes %s was %v, not %v", round, id, row, was)
			}
		}
		d.takeBack(n)
		if got := contents(d.tables); !reflect.DeepEqual(got, kept) {
			t.Fatalf("round %d: after changes were taken back there is %v, before there was %v", round, got, kept)
		}
		if got := contents(now); !reflect.DeepEqual(got, before) {
			t.Fatalf("round %d: a draft has changed the moment that it was made on", round)
		}
		now = d.tables
	}
	if now.count(string(VMs)) == 0 {
		t.Error("nothing was left to look at")
	}
}
