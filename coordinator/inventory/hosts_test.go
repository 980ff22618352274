package inventory

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	berthv1 "berth/shared/gen/berth/v1"
)

// The host UUIDs that are known to be told twice are those that a look at all inventories finds.
func TestSameHostsAreThoseThatALookAtAllFinds(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 18))
	store := newStore()
	agents := map[string]*agent{}
	twice := 0
	for i := range 5000 {
		id := fmt.Sprint("n", random.IntN(5))
		if agents[id] == nil {
			agents[id] = connect(t, store, id)
		}
		uuid := []string{"", "a", "A", "b", "c", "d", "e"}[random.IntN(7)]
		agents[id].report(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Inventory{Inventory: &berthv1.InventoryReport{
			Node: &berthv1.NodeInventory{HostUuid: uuid}, DomainsUnknown: random.IntN(4) == 0,
		}}})
		if random.IntN(300) == 0 {
			store.Reset()
			clear(agents)
		}
		want := map[string][]string{}
		for n := range 5 {
			id := fmt.Sprint("n", n)
			if uuid := strings.ToLower(store.Inventory(id).GetHostUuid()); uuid != "" {
				want[uuid] = append(want[uuid], id)
			}
		}
		for uuid, nodes := range want {
			if len(nodes) < 2 {
				delete(want, uuid)
			}
		}
		twice += len(want)
		if got := store.SameHosts(); !reflect.DeepEqual(got, want) {
			t.Fatalf("after %d: %v, not %v", i, got, want)
		}
	}
	if twice < 500 {
		t.Errorf("only %d times two nodes had the same", twice)
	}
}
