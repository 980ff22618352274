package control

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lifecycle"
	"berth/coordinator/control/plans"
	"berth/coordinator/drift"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// plugged attaches an interface to a VM.
func (w *world) plugged(vm model.VM, network string) {
	w.Helper()
	baseline, err := drift.Baseline(w.Store.Snapshot(), &vm)
	if err != nil {
		w.Fatal(err)
	}
	guest := drift.Guest{VM: &vm, Baseline: baseline}
	edit, err := guest.AttachInterface(network)
	if err != nil {
		w.Fatal(err)
	}
	if _, err := w.ActOnVM(w.Context(), lifecycle.ActOnVM{
		Kind: operation.Attach, VM: vm.ID, Edits: []model.DeviceEdit{edit}, RequestID: w.NewID(), Caller: "operator/alice",
	}); err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
}

// networks are those that a node has from now on.
func (w *world) networks(node string, names ...string) {
	w.facts.change(node, func(f *model.NodeFacts) { f.Networks = names })
}

// A guest with an interface that somebody attached later cannot run where its network is not. Whatever moves or starts it knows that.
func TestAnAttachedInterfaceHasToBeWhereAVMGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.store(state.RaiseLevel(state.FeatureLevel))
		w.networks("n1", "default", "far")
		vm := w.on("n1", "web1", 1)
		w.plugged(vm, "far")
		const lacks = "no active network far"
		_, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: "n3", Caller: "operator/test"})
		if err == nil || !strings.Contains(err.Error(), lacks) {
			t.Errorf("moved by hand: %v", err)
		}
		tried, err := w.DrainNode(t.Context(), plans.DrainNode{Node: "n1", DryRun: true, Caller: "operator/test"})
		moves := tried.Plan.Moves
		if err != nil || len(moves) != 1 || !moves[0].Stays || !strings.Contains(moves[0].Reason, "network refuses 2") {
			t.Errorf("a drain: %+v, %v", tried.Plan.Moves, err)
		}
		w.networks("n2", "default", "far")
		plan := w.ended(w.drain("n1").ID, 10*time.Minute)
		if is := w.guest(vm.ID); is.Holder != "n2" || len(plan.Moves) != 1 {
			t.Errorf("drained to %q by %+v", is.Holder, plan.Moves)
		}
		vm = w.guest(vm.ID)
		w.show(vm)
		w.stops(vm)
		_, err = w.StartVM(t.Context(), lifecycle.StartVM{Name: vm.Name, Node: "n3", RequestID: w.NewID(), Caller: "operator/test"})
		if err == nil || !strings.Contains(err.Error(), lacks) {
			t.Errorf("started by hand: %v", err)
		}
	})
}

// A balancer moves no VM to where a network of it is not, and a failure brings it nowhere else.
func TestAnAttachedInterfaceKeepsAVMFromNodesWithoutItsNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.store(state.RaiseLevel(state.FeatureLevel))
		w.networks("n1", "default", "far")
		w.networks("n3", "default", "far")
		var all []string
		for _, name := range []string{"web1", "web2", "web3", "web4"} {
			vm := w.on("n1", name, 1)
			w.plugged(vm, "far")
			all = append(all, vm.ID)
		}
		w.evened(map[string]string{model.SettingBalancing: "manual"})
		plan, err := w.ProposePlan(t.Context(), plans.ProposePlan{Cluster: model.DefaultCluster, RequestID: "p", Caller: "operator/test"})
		if err != nil || len(plan.Moves) == 0 {
			t.Fatalf("%+v, %v", plan, err)
		}
		for _, move := range plan.Moves {
			if move.Target != "n3" || !slices.Contains(all, move.VM) {
				t.Errorf("it proposes %+v", move)
			}
		}
	})
}

func TestAnAttachedInterfaceLeadsARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := fencedWorld(t)
		defer w.lose()
		w.store(state.RaiseLevel(state.FeatureLevel))
		vm := w.available("web1")
		lacking := "n2"
		if vm.Holder == lacking {
			lacking = "n3"
		}
		for _, node := range []string{"n1", "n2", "n3"} {
			if node != lacking {
				w.networks(node, "default", "far")
			}
		}
		w.plugged(vm, "far")
		w.silence(vm.Holder)
		time.Sleep(5 * time.Minute)
		if is := w.guest(vm.ID); is.Holder == lacking || is.Holder == vm.Holder || is.Holder == "" {
			t.Errorf("it ran on %s, %s lacks its network, and it was restarted on %q", vm.Holder, lacking, is.Holder)
		}
	})
}
