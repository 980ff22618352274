package api

import (
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	"berth/coordinator/api/answer"
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/key"
	"berth/coordinator/placement/policies"
	"berth/coordinator/scenario"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

func TestWhy(t *testing.T) {
	d := newDeclarer(t)
	for id, name := range map[string]string{"n1": "hv1", "n2": "hv2", "n3": "hv3"} {
		d.m.addNode(id, name)
	}
	d.add("cluster", "west", nil, nil)
	if _, err := d.client.SetNode(t.Context(), connect.NewRequest(&berthv1.SetNodeRequest{Node: "hv3", Cluster: "west"})); err != nil {
		t.Fatal(err)
	}
	d.m.stand()
	d.m.reportIdle("n1", 64*units.GiB)
	d.m.reportIdle("n2", 2*units.GiB)
	request := placement.Request{
		Purpose: placement.ForStart, VM: "v1", VMName: "web", Memory: 4 * units.GiB, VCPUs: 2, Cluster: model.DefaultCluster,
		SystemKeys: []key.Weighted{{Name: model.SpecialRAM, Weight: 40, Class: model.SystemKey, Level: "cluster"}},
	}
	placed := d.m.decide("d1", request)
	if placed.Outcome != placement.Placed || placed.WinnerName != "hv1" {
		t.Fatalf("the test's own decision: %s", placement.Text(placed))
	}
	large := request
	large.VM, large.VMName, large.Memory = "v9", "huge", 100*units.GiB
	d.m.decide("d2", large)
	d.m.addVM(model.VM{
		ID: "v1", Name: "web", Desired: model.Running, Holder: "n1", Epoch: 1, Decision: "d1",
		Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1},
	})
	d.m.addVM(model.VM{ID: "v2", Name: "db", Desired: model.Stopped, Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1}})
	d.m.addVM(model.VM{ID: "v3", Name: "old", Desired: model.Stopped, Decision: "d0", Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1}})
	d.m.control.judge = func(vm model.VM, purpose placement.Purpose) (placement.Decision, error) {
		now := request
		if vm.Name == large.VMName {
			now = large
		}
		now.Purpose, now.VM, now.VMName, now.Current = purpose, vm.ID, vm.Name, vm.Holder
		view := d.m.inventory.View(d.m.store.Snapshot(), d.m.now()).Without(vm.ID, vm.Holder)
		return placement.Place(view, now, policies.Default(), 7), nil
	}
	whyNot := func(vm, node, decision string) (*berthv1.WhyNotResponse, error) {
		answer, err := d.client.WhyNot(t.Context(), connect.NewRequest(&berthv1.WhyNotRequest{Vm: vm, Node: node, DecisionId: decision}))
		if err != nil {
			return nil, err
		}
		return answer.Msg, nil
	}

	t.Run("a VM is where it is", func(t *testing.T) {
		answer, err := d.client.WhyVM(t.Context(), connect.NewRequest(&berthv1.WhyVMRequest{Vm: "web"}))
		if err != nil {
			t.Fatal(err)
		}
		decision := answer.Msg.GetDecision()
		if decision.GetId() != "d1" || len(decision.GetNodes()) != 2 || decision.GetKept() != 2 || decision.GetRound() == 0 ||
			decision.GetGate() == "" {
			t.Errorf("decision %v", decision)
		}
		first := decision.GetNodes()[0]
		if first.GetNode() != "hv1" || first.GetSystemScore() != 40 || first.GetTerms()[0].Wanted == nil ||
			first.GetTerms()[0].GetLevel() != "cluster" {
			t.Errorf("winner %v", first)
		}
		if said := answer.Msg.GetAnswer(); !strings.HasPrefix(
			said[0], "web was placed on hv1 by decision d1 (start, asked by operator/alice, ",
		) {
			t.Errorf("in words: %q", said)
		}
		_, err = d.client.WhyVM(t.Context(), connect.NewRequest(&berthv1.WhyVMRequest{Vm: "db"}))
		wantRefusal(t, err, rpc.NotFound, "vm/db")
		_, err = d.client.WhyVM(t.Context(), connect.NewRequest(&berthv1.WhyVMRequest{Vm: "old"}))
		wantRefusal(t, err, rpc.NotFound, "decision/d0")
		_, err = d.client.WhyVM(t.Context(), connect.NewRequest(&berthv1.WhyVMRequest{Vm: "mail"}))
		wantRefusal(t, err, rpc.NotFound, "vm/mail")
	})

	t.Run("a VM that no node took is nowhere", func(t *testing.T) {
		for _, made := range []bool{false, true} {
			if made {
				d.m.addVM(model.VM{ID: "v9", Name: "huge", Desired: model.Stopped, Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1}})
			}
			answer, err := d.client.WhyVM(t.Context(), connect.NewRequest(&berthv1.WhyVMRequest{Vm: "huge"}))
			if err != nil {
				t.Fatal(err)
			}
			said := answer.Msg.GetAnswer()
			if answer.Msg.GetDecision().GetId() != "d2" || !strings.HasPrefix(
				said[0], "huge runs nowhere: decision d2 (start, asked by operator/alice, ",
			) ||
				!strings.HasPrefix(said[1], "what would do: ") {
				t.Errorf("in words: %q", said)
			}
		}
	})

	t.Run("a VM that was stopped after a refused migration was not refused a start", func(t *testing.T) {
		moving := large
		moving.VM, moving.VMName, moving.Purpose = "v8", "moved", placement.ForMigrate
		d.m.decide("d8", moving)
		d.m.addVM(model.VM{ID: "v8", Name: "moved", Desired: model.Stopped, Decision: "d1", Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1}})
		answer, err := d.client.WhyVM(t.Context(), connect.NewRequest(&berthv1.WhyVMRequest{Vm: "moved"}))
		if err != nil || answer.Msg.GetDecision().GetId() != "d1" {
			t.Errorf("%v, %v", answer, err)
		}
	})

	t.Run("a VM is where it is after a migration that failed", func(t *testing.T) {
		moving := placement.Decision{
			ID: "d3", At: placed.At.Add(time.Second), Outcome: placement.Placed, Winner: "n2", WinnerName: "hv2",
			Request: placement.Request{Purpose: placement.ForMigrate, VM: "v1", VMName: "web"},
		}
		d.m.propose(commandOf(moving))
		web, _ := d.m.store.Snapshot().VM("v1")
		web.Decision = "d3"
		d.m.propose(state.Command{Kind: "test", Expect: []state.Expectation{answer.ExpectVM(web)}, VMs: []model.VM{web}})
		answer, err := d.client.WhyVM(t.Context(), connect.NewRequest(&berthv1.WhyVMRequest{Vm: "web"}))
		if err != nil || answer.Msg.GetDecision().GetId() != "d1" {
			t.Errorf("answered %v, %v", answer, err)
		}
		d.m.addVM(model.VM{
			ID: "v5", Name: "taken", Desired: model.Running, Holder: "n2", Epoch: 1, Decision: "d1",
			Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1},
		})
		answer, err = d.client.WhyVM(t.Context(), connect.NewRequest(&berthv1.WhyVMRequest{Vm: "taken"}))
		if err != nil || !slices.Contains(answer.Msg.GetAnswer(), "it is on hv2, and no decision that is kept put it there") {
			t.Errorf("answered %v, %v", answer, err)
		}
	})

	t.Run("a VM is not on another node", func(t *testing.T) {
		answer, err := whyNot("web", "hv2", "")
		if err != nil {
			t.Fatal(err)
		}
		if answer.GetDecisionId() != "" || answer.GetAt() == nil || answer.GetNode().GetAdmitted() ||
			!strings.Contains(answer.GetAnswer()[0], "memory-promised") {
			t.Errorf("answered %v", answer)
		}
		if answer, err = whyNot("web", "n1", ""); err != nil || answer.GetAnswer()[0] != "web runs on hv1: 'berth vm why web' tells why" {
			t.Errorf("about the node that it runs on: %v, %v", answer, err)
		}
		if answer, err = whyNot("web", "n1", "d1"); err != nil || !strings.HasPrefix(answer.GetAnswer()[0], "decision d1 did take hv1: ") {
			t.Errorf("about the winner: %v, %v", answer, err)
		}
		_, err = whyNot("web", "hv9", "")
		wantRefusal(t, err, rpc.NotFound, "node/hv9")
		_, err = whyNot("web", "hv3", "")
		wantRefusal(t, err, rpc.Conflict, "node/hv3") // of another cluster
	})

	t.Run("a VM that could not be made is on no node", func(t *testing.T) {
		answer, err := whyNot("huge", "hv1", "")
		if err != nil || answer.GetNode().GetAdmitted() || len(answer.GetChanges()) == 0 {
			t.Errorf("by name: %v, %v", answer, err)
		}
		if answer, err = whyNot("", "hv1", "d2"); err != nil || answer.GetDecisionId() != "d2" {
			t.Errorf("by decision: %v, %v", answer, err)
		}
		_, err = whyNot("web", "hv1", "d2")
		wantRefusal(t, err, rpc.Invalid, "decision/d2")
		_, err = whyNot("web", "hv1", "d7")
		wantRefusal(t, err, rpc.NotFound, "decision/d7")
		_, err = whyNot("mail", "hv1", "")
		wantRefusal(t, err, rpc.NotFound, "vm/mail")
		d.m.reportIdle("n1", 64*units.GiB) // a slow machine has let the report grow old
		if answer, err = whyNot("db", "hv1", ""); err != nil || !strings.HasPrefix(answer.GetAnswer()[0], "hv1 would take it now: ") {
			t.Errorf("one that was never placed: %v, %v", answer, err)
		}
	})

	t.Run("a node that joined later was not looked at", func(t *testing.T) {
		d.m.addNode("n4", "hv4")
		_, err := whyNot("web", "hv4", "d1")
		wantRefusal(t, err, rpc.Conflict, "node/hv4")
	})

	t.Run("a scenario has what it was decided on", func(t *testing.T) {
		answer, err := d.client.ExportEstate(t.Context(), connect.NewRequest(&berthv1.ExportEstateRequest{Scenario: true, Seed: 11}))
		if err != nil {
			t.Fatal(err)
		}
		scenario, problems := scenario.Parse("scenario.yaml", answer.Msg.GetDocument())
		if len(problems) > 0 || scenario == nil || !strings.Contains(string(answer.Msg.GetDocument()), "seed: 11\n") {
			t.Errorf("exported, with the problems %v:\n%s", problems, answer.Msg.GetDocument())
		}
	})

	t.Run("a decision is replayed", func(t *testing.T) {
		replay := func(id string) (*berthv1.ReplayDecisionResponse, error) {
			answer, err := d.client.ReplayDecision(t.Context(), connect.NewRequest(&berthv1.ReplayDecisionRequest{Id: id}))
			if err != nil {
				return nil, err
			}
			return answer.Msg, nil
		}
		for _, id := range []string{"d1", "d2"} {
			if answer, err := replay(id); err != nil || !answer.GetEqual() || answer.GetDecision().GetId() != id || len(
				answer.GetDecision().GetNodes(),
			) != 2 {
				t.Errorf("%s: %v, %v", id, answer, err)
			}
		}
		forged := placed
		forged.ID, forged.Winner, forged.WinnerName = "e1", "n2", "hv2"
		old := decisions("e2", "web")[0]
		d.m.propose(commandOf(forged, old))
		answer, err := replay("e1")
		if err != nil || answer.GetEqual() {
			t.Fatalf("a forged decision: %v, %v", answer, err)
		}
		if diff := cmp.Diff([]string{"winner is n1, was n2", "winner's name is hv1, was hv2"}, answer.GetDifferences()); diff != "" {
			t.Error(diff)
		}
		_, err = replay("e2")
		wantRefusal(t, err, rpc.Conflict, "decision/e2")
		_, err = replay("d7")
		wantRefusal(t, err, rpc.NotFound, "decision/d7")
	})
}

func TestCapacity(t *testing.T) {
	d := newDeclarer(t)
	d.m.addNode("n1", "hv1")
	d.m.addNode("n2", "hv2")
	d.add("cluster", "west", nil, nil)
	d.add("customer", "acme", nil, nil)
	d.add("vdc", "prod", map[string]string{"customer": "acme", "cluster": "west"}, nil)
	ask := func(request *berthv1.CapacityRequest) (*berthv1.CapacityResponse, error) {
		d.m.reportIdle("n1", 16*units.GiB)
		d.m.reportIdle("n2", 8*units.GiB)
		answer, err := d.client.Capacity(t.Context(), connect.NewRequest(request))
		if err != nil {
			return nil, err
		}
		return answer.Msg, nil
	}
	const gib = int64(units.GiB)

	t.Run("is counted over the nodes", func(t *testing.T) {
		answer, err := ask(&berthv1.CapacityRequest{MemoryBytes: 4 * gib, Vcpus: 2})
		if err != nil {
			t.Fatal(err)
		}
		// Both ledgers have to exceed the VM plus 1 GiB of overhead: 3 of 16 GiB, 1 of 8.
		if answer.GetMore() != 4 || answer.GetAtLeast() || answer.GetRunsOutOf() == "" || answer.GetRunsOutFirst() == "" ||
			answer.GetCluster() != "default" {
			t.Errorf("capacity %v", answer)
		}
		if nodes := answer.GetNodes(); nodes[0].GetNode() != "hv1" || nodes[0].GetMore() != 3 || nodes[1].GetMore() != 1 ||
			nodes[1].GetMessage() == "" {
			t.Errorf("nodes %v", nodes)
		}
	})

	t.Run("is counted with nodes that are not there", func(t *testing.T) {
		for like, want := range map[string]int32{"": 4 + 2*3, "hv1": 4 + 2*3, "hv2": 4 + 2*1} { // hv1 is the first
			answer, err := ask(&berthv1.CapacityRequest{MemoryBytes: 4 * gib, Vcpus: 2, AddNodes: 2, AddLike: like})
			if err != nil {
				t.Fatal(err)
			}
			name := like
			if name == "" {
				name = "hv1"
			}
			nodes := answer.GetNodes()
			if answer.GetMore() != want || answer.Without == nil || answer.GetWithout() != 4 || len(nodes) != 4 ||
				!strings.Contains(answer.GetAdded(), "as "+name+" is without its VMs: 16 CPUs") {
				t.Errorf("like %s: capacity %v", like, answer)
			}
			for _, node := range nodes {
				if added := strings.HasPrefix(node.GetNode(), name+"+"); node.GetAdded() != added || (node.GetNodeId() == "") != added {
					t.Errorf("like %s: node %v", like, node)
				}
			}
		}
		answer, err := ask(&berthv1.CapacityRequest{MemoryBytes: 4 * gib, Vcpus: 2, AddNodes: 1, AddMemoryBytes: 32 * gib})
		if err != nil || answer.GetMore() != 4+7 { // 31 of 32 GiB have to exceed each VM plus what is there
			t.Errorf("with another memory: %v, %v", answer, err)
		}
		answer, err = ask(&berthv1.CapacityRequest{MemoryBytes: 4 * gib, Vcpus: 2, AddNodes: 1, Most: 3})
		if err != nil || answer.GetMore() != 3 || !answer.GetAtLeast() || answer.Without != nil || answer.GetAdded() == "" {
			t.Errorf("counted no further than asked: %v, %v", answer, err)
		}
		answer, err = ask(&berthv1.CapacityRequest{MemoryBytes: gib, Vcpus: 1, Cluster: "west", AddNodes: 1, AddLike: "hv2"})
		if err != nil || answer.GetMore() == 0 || answer.GetWithout() != 0 {
			t.Errorf("in a cluster without nodes: %v, %v", answer, err)
		}
		answer, err = ask(&berthv1.CapacityRequest{MemoryBytes: 4 * gib, Vcpus: 2})
		if err != nil || answer.GetMore() != 4 || answer.Without != nil {
			t.Errorf("nothing is kept of them: %v, %v", answer, err)
		}
	})

	t.Run("is counted as far as asked", func(t *testing.T) {
		if answer, err := ask(&berthv1.CapacityRequest{
			MemoryBytes: 4 * gib, Vcpus: 2, Most: 2,
		}); err != nil || answer.GetMore() != 2 || !answer.GetAtLeast() {
			t.Errorf("capacity %v, %v", answer, err)
		}
	})

	t.Run("is that of the VDC's cluster", func(t *testing.T) {
		for _, request := range []*berthv1.CapacityRequest{{Vdc: "prod"}, {Cluster: "west"}, {Vdc: "prod", Cluster: "west"}} {
			request.MemoryBytes, request.Vcpus = gib, 1
			if answer, err := ask(request); err != nil || answer.GetMore() != 0 || answer.GetCluster() != "west" || len(answer.GetNodes()) != 0 {
				t.Errorf("%v: %v, %v", request, answer, err)
			}
		}
	})

	for name, one := range map[string]struct {
		request       *berthv1.CapacityRequest
		code, subject string
	}{
		"of no memory":          {&berthv1.CapacityRequest{Vcpus: 1}, rpc.Invalid, ""},
		"of no vCPUs":           {&berthv1.CapacityRequest{MemoryBytes: gib}, rpc.Invalid, ""},
		"with a negative bound": {&berthv1.CapacityRequest{MemoryBytes: gib, Vcpus: 1, Most: -1}, rpc.Invalid, ""},
		"in no such cluster":    {&berthv1.CapacityRequest{MemoryBytes: gib, Vcpus: 1, Cluster: "east"}, rpc.NotFound, "cluster/east"},
		"in no such VDC":        {&berthv1.CapacityRequest{MemoryBytes: gib, Vcpus: 1, Vdc: "test"}, rpc.NotFound, "vdc/test"},
		"with -1 nodes more":    {&berthv1.CapacityRequest{MemoryBytes: gib, Vcpus: 1, AddNodes: -1}, rpc.Invalid, ""},
		"with too many more":    {&berthv1.CapacityRequest{MemoryBytes: gib, Vcpus: 1, AddNodes: 1001}, rpc.Invalid, ""},
		"with nodes of nothing": {&berthv1.CapacityRequest{MemoryBytes: gib, Vcpus: 1, AddNodes: 1, AddMemoryBytes: -1}, rpc.Invalid, ""},
		"with nodes like none": {
			&berthv1.CapacityRequest{MemoryBytes: gib, Vcpus: 1, AddNodes: 1, AddLike: "hv9"}, rpc.NotFound, "node/hv9",
		},
		"with nodes like any": {
			&berthv1.CapacityRequest{MemoryBytes: gib, Vcpus: 1, AddNodes: 1, Cluster: "west"}, rpc.Invalid, "cluster/west",
		},
		"in two clusters": {&berthv1.CapacityRequest{MemoryBytes: gib, Vcpus: 1, Vdc: "prod", Cluster: "default"}, rpc.Invalid, "vdc/prod"},
	} {
		t.Run("is not told "+name, func(t *testing.T) {
			_, err := ask(one.request)
			wantRefusal(t, err, one.code, one.subject)
		})
	}
}
