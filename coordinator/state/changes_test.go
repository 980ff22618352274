package state

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

// What a moment tells of an earlier one is what differs between them, as long as it is known at all.
func TestAMomentNamesWhatChangedSinceAnEarlierOne(t *testing.T) {
	m := newMember(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	moments := []*Snapshot{m.store.Snapshot()}
	for range 3 * keptSteps {
		id := fmt.Sprintf("vm%d", random.IntN(50))
		before, there := m.store.Snapshot().VM(id)
		if there && random.IntN(3) == 0 {
			m.stored(Command{
				Kind: "delete", Expect: []Expectation{expect(VMs, id, before.Revision)}, Delete: []Record{{VMs, id}},
			})
		} else {
			m.stored(putVM(before.Revision, vm(id, id, 1)))
		}
		moments = append(moments, m.store.Snapshot())
	}
	known := 0
	for range 500 {
		a, b := moments[random.IntN(len(moments))], moments[random.IntN(len(moments))]
		changed, knows := b.Since(a)
		if !knows {
			if b.Index() > a.Index() && b.Index()-a.Index() < keptSteps/2 {
				t.Fatalf("%d does not know what changed since %d", b.Index(), a.Index())
			}
			continue
		}
		known++
		named := map[string]bool{}
		for _, change := range changed {
			if change.Table != VMs {
				t.Fatalf("named is %v", change)
			}
			named[change.ID] = true
		}
		for i := range 50 {
			id := fmt.Sprintf("vm%d", i)
			was, _ := a.VM(id)
			is, _ := b.VM(id)
			if !named[id] && !reflect.DeepEqual(was, is) {
				t.Fatalf("%s changed between %d and %d and is not named", id, a.Index(), b.Index())
			}
		}
	}
	if known < 50 {
		t.Errorf("only %d of 500 pairs are known", known)
	}
	if _, knows := moments[5].Since(moments[6]); knows {
		t.Error("a moment knows what comes later")
	}
	if changed, knows := moments[5].Since(moments[5]); !knows || len(changed) > 0 {
		t.Error("a moment differs from itself", changed)
	}
	if changed, knows := moments[3].Since(moments[0]); !knows || len(slices.Compact(changed)) == 0 {
		t.Error("the first moments are not known")
	}
}

// A snapshot that is restored replaces everything: nothing is known of the time before.
func TestARestoreBeginsAnew(t *testing.T) {
	m := newMember(t)
	m.stored(putVM(0, vm("vm1", "vm1", 1)))
	before := m.store.Snapshot()
	other := newMember(t)
	other.stored(putVM(0, vm("vm2", "vm2", 1)))
	other.stored(putVM(0, vm("vm3", "vm3", 1)))
	if err := m.fsm.Restore(io.NopCloser(bytes.NewReader(saved(t, other.store.Snapshot())))); err != nil {
		t.Fatal(err)
	}
	if _, knows := m.store.Snapshot().Since(before); knows {
		t.Error("what changed by a restore is known")
	}
}
