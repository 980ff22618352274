package plans

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"berth/coordinator/affinity"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// After any changes the groups are marked as a look at all of them and at all VMs finds.
func TestGroupsAreMarkedAsALookAtAllFinds(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	s := newSite(t)
	defer s.lose()
	apply := func(kind string, at time.Time, put func(*state.Command)) {
		t.Helper()
		command := state.Command{Key: fmt.Sprint(kind, " ", s.index), Kind: "test", At: at}
		put(&command)
		if result, err := s.Propose(t.Context(), command); err != nil || result.Refusal != nil {
			t.Fatal(err, result.Refusal)
		}
	}
	expect := func(c *state.Command, table state.Table, id string, revision uint64) {
		c.Expect = append(c.Expect, state.Expectation{Table: table, ID: id, Revision: revision})
	}
	some := func(of ...string) []string {
		return slices.DeleteFunc(of, func(string) bool { return random.IntN(2) == 0 })
	}
	labels := []string{"blue", "red"}
	at := time.Unix(1_800_000_000, 0)
	var h holding
	flips := 0
	for step := range 600 {
		at = at.Add(time.Second)
		for range 1 + random.IntN(3) {
			switch random.IntN(8) {
			case 0:
				node, _ := s.store.Snapshot().Node([]string{"n1", "n2"}[random.IntN(2)])
				node.Labels = some(labels...)
				apply("node", at, func(c *state.Command) {
					expect(c, state.Nodes, node.ID, node.Revision)
					c.Nodes = []model.Node{node}
				})
			case 1, 2:
				id := fmt.Sprint("g", random.IntN(4))
				record, _ := s.store.Snapshot().Resource(id)
				record.ID, record.Kind, record.Name, record.CreatedAt = id, model.KindGroup, "group"+id, at
				record.Settings = map[string]string{
					model.SettingVMsRule:   []string{"positive", "negative", "disabled"}[random.IntN(3)],
					model.SettingNodesRule: []string{"positive", "negative", "disabled"}[random.IntN(3)],
				}
				record.Members = map[string][]string{model.MembersNodes: some("n1", "n2"), model.MembersVMs: nil}
				for _, vm := range some("v1", "v2", "v3", "v4") {
					if _, there := s.store.Snapshot().VM(vm); there {
						record.Members[model.MembersVMs] = append(record.Members[model.MembersVMs], vm)
					}
				}
				record.Lists = map[string][]string{model.ListVMLabels: some(labels...), model.ListNodeLabels: some(labels...)}
				apply("group", at, func(c *state.Command) {
					expect(c, state.Resources, id, record.Revision)
					c.Resources = []model.Resource{record}
				})
			default:
				id := fmt.Sprint("v", 1+random.IntN(4))
				vm, _ := s.store.Snapshot().VM(id)
				vm.ID, vm.Name, vm.Spec = id, "vm-"+id, model.VMSpec{Memory: 1 << 30, VCPUs: 1, Kernel: "/vmlinuz"}
				vm.Labels, vm.Holder, vm.Epoch, vm.LastEpoch = some(labels...), []string{"", "n1", "n2"}[random.IntN(3)], 1, 1
				apply("vm", at, func(c *state.Command) {
					expect(c, state.VMs, id, vm.Revision)
					c.VMs = []model.VM{vm}
				})
			}
		}
		if random.IntN(50) == 0 {
			h = holding{} // another leader
		}
		marks, both := h.look(s.store.Snapshot(), at)
		flips += len(marks)
		s.mark(t.Context(), marks, both, at)

		snapshot := s.store.Snapshot()
		where := make(affinity.Where)
		for vm := range snapshot.SharedVMs() {
			if vm.Holder != "" {
				where[vm.ID] = vm.Holder
			}
		}
		broken := make(map[string]bool)
		for _, breach := range affinity.Breaches(estate.GroupsOf(snapshot, model.DefaultCluster), where, func(id string) string { return id }) {
			broken[breach.Group] = true
		}
		told := make(map[string]bool)
		for _, record := range snapshot.Groups() {
			if !record.BrokenSince.IsZero() {
				told[record.ID] = true
			}
		}
		if !maps.Equal(broken, told) {
			t.Fatalf("step %d: marked as broken are %v, want %v", step, told, broken)
		}
	}
	if flips < 50 {
		t.Errorf("only %d marks: the test tries little", flips)
	}
}
