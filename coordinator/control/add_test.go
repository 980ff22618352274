package control

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/shared/units"
)

func local() model.Resource {
	return defaultCluster(map[string]string{model.SettingStorage: string(model.LocalStorage)})
}

func TestAVMIsMadeWithoutBeingStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.put(customer("acme")...)
		request := lifecycle.AddVM(guest("web1", "acme", 10))
		tryout := request
		tryout.DryRun, tryout.RequestID = true, ""
		before := w.Store.Snapshot().Index()
		if added, err := w.AddVM(t.Context(), tryout); err != nil || added.VM.Name != "web1" || w.Store.Snapshot().Index() != before {
			t.Fatalf("a dry run: %+v, %v", added, err)
		}
		added, err := w.AddVM(t.Context(), request)
		if err != nil || added.Decision.ID != "" || added.VM.Home != "" {
			t.Fatalf("%+v, %v; want no decision in a cluster with shared storage", added, err)
		}
		again, err := w.AddVM(t.Context(), request)
		if err != nil || again.VM.ID != added.VM.ID {
			t.Errorf("the same request again: %+v, %v", again, err)
		}
		vm := w.vm("web1")
		if vm.Desired != model.Stopped || vm.Holder != "" || vm.VDC != "vdc-acme" || len(vm.Keys) != 1 || vm.Revision != added.VM.Revision {
			t.Errorf("vm %+v", vm)
		}
		w.must(lifecycle.StartVM{Name: "web1"})
		synctest.Wait()
		if w.vm("web1").Holder == "" {
			t.Error("it does not start")
		}
	})
}

func TestWhatCannotBeMadeIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.put(customer("acme")...)
		w.running("web1")
		for name, tt := range map[string]struct {
			change func(*lifecycle.AddVM)
			code   lead.Code
			says   string
		}{
			"a name twice":         {func(r *lifecycle.AddVM) { r.Name = "web1" }, lead.Exists, "exists already"},
			"without a size":       {func(r *lifecycle.AddVM) { r.VM = nil }, lead.Invalid, "not described"},
			"a bad size":           {func(r *lifecycle.AddVM) { r.VM.Spec.VCPUs = 0 }, lead.Invalid, "vcpus"},
			"a key that may not":   {func(r *lifecycle.AddVM) { r.VM.Keys[0].Name = "#RAM" }, lead.Invalid, "#RAM"},
			"a VDC that is none":   {func(r *lifecycle.AddVM) { r.VM.VDC = "c-acme" }, lead.Invalid, "vdc"},
			"a disk that is none":  {func(r *lifecycle.AddVM) { r.VM.Disks = []string{"d9"} }, lead.Invalid, "d9"},
			"a node without cause": {func(r *lifecycle.AddVM) { r.Node = "n1" }, lead.Invalid, "shared storage"},
		} {
			request := lifecycle.AddVM(guest("web2", "acme", 10))
			request.RequestID = ""
			tt.change(&request)
			_, err := w.AddVM(t.Context(), request)
			refusal, ok := isRefusal(err)
			if !ok || refusal.Code != tt.code || !strings.Contains(refusal.Message, tt.says) || refusal.NextStep == "" {
				t.Errorf("%s: %v; want %s saying %q", name, err, tt.code, tt.says)
			}
		}
		if vms := w.Store.Snapshot().VMs(); len(vms) != 1 {
			t.Errorf("%d VMs are there, want the one", len(vms))
		}
	})
}

func TestLocalStoragePlacesAVMWhenItIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.put(local())
		w.put(customer("acme")...)
		request := lifecycle.AddVM(guest("web1", "acme", 10))
		added, err := w.AddVM(t.Context(), request)
		if err != nil || added.Decision.Request.Purpose != placement.ForCreate || added.VM.Home == "" || added.VM.Home != added.Decision.Winner {
			t.Fatalf("%+v, %v", added, err)
		}
		if kept, _ := w.Store.Snapshot().Decision(added.VM.Decision); kept.Winner != added.VM.Home {
			t.Errorf("the decision that is kept says %q", kept.Winner)
		}
		again, err := w.AddVM(t.Context(), request)
		if err != nil || again.VM.Home != added.VM.Home || again.Decision.ID != added.Decision.ID {
			t.Errorf("the same request again: %+v, %v", again, err)
		}
		pinned := lifecycle.AddVM(guest("web2", "acme", 10))
		pinned.Node = other(added.VM.Home)
		if added, err := w.AddVM(t.Context(), pinned); err != nil || added.VM.Home != pinned.Node {
			t.Errorf("with its disk on %s: home %s, %v", pinned.Node, added.VM.Home, err)
		}

		if _, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "web1", Node: other(added.VM.Home)}); !isCode(err, lead.NoNodeFits) {
			t.Errorf("a start where the disk is not: %v", err)
		}
		// The others are idle, and the VM starts where its disk is all the same.
		busy := 4.0
		w.facts.change(added.VM.Home, func(f *model.NodeFacts) { f.Load1 = &busy })
		started := w.must(lifecycle.StartVM{Name: "web1"})
		synctest.Wait()
		vm := w.vm("web1")
		if started.Operation.Target != added.VM.Home || vm.Holder != added.VM.Home || vm.Home != added.VM.Home {
			t.Errorf("made on %s, started on %s", added.VM.Home, started.Operation.Target)
		}
		_, err = w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID})
		if refusal, ok := isRefusal(err); !ok || refusal.Code != lead.Conflict || !strings.Contains(refusal.Message, "local storage") {
			t.Errorf("a migration: %v", err)
		}
		full := lifecycle.AddVM(guest("huge", "acme", 10))
		full.VM.Spec.Memory = 64 * units.GiB
		if _, err := w.AddVM(t.Context(), full); !isCode(err, lead.NoNodeFits) {
			t.Errorf("a VM that fits nowhere: %v", err)
		}
	})
}

// A VM from before its cluster had local storage has no home until it runs.
func TestAVMWithoutAHomeGetsItWhereItStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := ""
		w := newWorld(t, func(order operation.Order) *operation.Answer {
			if order.Action == operation.ActStart && (failed == "" || failed == order.Node) {
				failed = order.Node
				return &operation.Answer{Outcome: operation.OutcomeFailed, Error: "no", Seen: operation.Observation{State: model.DomainAbsent}}
			}
			return obedient(order)
		})
		defer w.lose()
		web := &model.VM{Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1}}
		if _, err := w.AddVM(t.Context(), lifecycle.AddVM{Name: "web1", VM: web}); err != nil {
			t.Fatal(err)
		}
		w.put(local())
		w.must(lifecycle.StartVM{Name: "web1"})
		synctest.Wait()
		vm := w.vm("web1")
		if vm.Holder == "" || vm.Home != vm.Holder || slices.Contains([]string{failed, ""}, vm.Home) {
			t.Errorf("%s failed; home %q, holder %q", failed, vm.Home, vm.Holder)
		}
	})
}
