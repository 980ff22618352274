package agenda

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// After any changes the things that are due are those that a look at all of them finds.
func TestDueAreTheOnesThatALookAtAllFinds(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	var a Agenda
	all := map[string]time.Time{}
	begun := time.Unix(1_800_000_000, 0)
	for step := range 20_000 {
		id, at := fmt.Sprint(random.IntN(100)), begun.Add(time.Duration(random.IntN(1000))*time.Second)
		switch random.IntN(4) {
		case 0:
			a.Remove(id)
			delete(all, id)
		case 1:
			now := begun.Add(time.Duration(random.IntN(1000)) * time.Second)
			want := slices.DeleteFunc(slices.Collect(maps.Keys(all)), func(id string) bool { return all[id].After(now) })
			slices.SortFunc(want, func(a, b string) int { return cmp.Or(all[a].Compare(all[b]), cmp.Compare(a, b)) })
			if got := a.Due(now); !slices.Equal(got, want) {
				t.Fatalf("step %d: due are %v, want %v", step, got, want)
			}
			maps.DeleteFunc(all, func(_ string, at time.Time) bool { return !at.After(now) })
		default:
			a.Set(id, at)
			all[id] = at
		}
		if got, there := a.At(id); got != all[id] || there == all[id].IsZero() || a.Len() != len(all) {
			t.Fatalf("step %d: %s is at %v (%t), want %v, of %d things %d", step, id, got, there, all[id], len(all), a.Len())
		}
	}
}
