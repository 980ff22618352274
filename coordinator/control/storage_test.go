package control

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/shared/units"
)

// pools are a local pool and a shared one of the default cluster.
func pools() []model.Resource {
	in := map[string]string{"cluster": model.DefaultCluster}
	return []model.Resource{
		{ID: "p-fast", Kind: model.KindPool, Name: "fast", Links: in, Settings: map[string]string{model.SettingScope: string(model.PoolLocal)}},
		{ID: "p-wide", Kind: model.KindPool, Name: "wide", Links: in, Settings: map[string]string{model.SettingScope: string(model.PoolShared)}},
	}
}

// root is the disk that a new VM is made with.
func root(pool string, size units.Bytes) *model.Resource {
	return &model.Resource{
		Kind: model.KindDisk, Name: "web1-root", Links: map[string]string{"pool": pool},
		Settings: map[string]string{"size": fmt.Sprint(int64(size))},
	}
}

// disked asks for a VM with a root disk of 10 GiB.
func disked(pool string) lifecycle.StartVM {
	return lifecycle.StartVM{
		Name: "web1", Root: root(pool, 10*units.GiB), RequestID: "start web1",
		Caller: "operator/test",
		VM:     &model.VM{Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1}},
	}
}

func (w *world) disk(name string) model.Resource {
	found, _ := w.Store.Snapshot().ResourceByName(model.KindDisk, name)
	return found
}

func (w *world) wantLeft(want ...string) {
	w.Helper()
	if diff := cmp.Diff(want, w.agents.left()); diff != "" {
		w.Errorf("volumes (-want +got):\n%s", diff)
	}
}

// began starts a VM with a root disk and waits until it runs.
func (w *world) began(pool string) model.VM {
	w.Helper()
	started := w.must(disked(pool))
	synctest.Wait()
	vm := w.vm("web1")
	if vm.Holder == "" || vm.Operation != "" {
		w.Fatalf("it does not run: %+v", w.operation(started.Operation.ID))
	}
	w.show(vm)
	return vm
}

// halted is a VM with a root disk that ran.
func (w *world) halted(pool string) model.VM {
	w.Helper()
	vm := w.began(pool)
	if _, err := w.ActOnVM(w.Context(), lifecycle.ActOnVM{Kind: operation.Stop, VM: vm.ID}); err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
	w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.Domains = nil })
	return w.vm("web1")
}

// answers makes a script that says this to one action, and else obeys.
func answers(action operation.Action, outcome operation.Outcome, seen model.DomainState) func(operation.Order) *operation.Answer {
	return func(order operation.Order) *operation.Answer {
		if order.Action == action {
			return &operation.Answer{Outcome: outcome, Error: "it broke", Seen: operation.Observation{State: seen, Epoch: order.Epoch}}
		}
		if order.Action == operation.ActInspect {
			return &operation.Answer{Outcome: operation.OutcomeDone, Seen: operation.Observation{State: model.DomainAbsent}}
		}
		return obedient(order)
	}
}

func refusedAs(t *testing.T, what string, err error, code lead.Code, saying string) {
	t.Helper()
	var refused *lead.Error
	if !errors.As(err, &refused) || refused.Code != code || !strings.Contains(refused.Message, saying) {
		t.Errorf("%s: %v; want %s saying %q", what, err, code, saying)
	}
	if refused != nil && refused.NextStep == "" {
		t.Errorf("%s: no next step", what)
	}
}

func TestAStartMakesItsDisk(t *testing.T) {
	for pool, place := range map[string]string{"p-fast": "", "p-wide": "shared"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, obedient)
			defer w.lose()
			w.put(pools()...)
			vm := w.began(pool)
			disk, order := w.disk("web1-root"), w.agents.ordered(operation.ActStart)[0]
			if disk.Volume == nil || disk.Volume.Pool != pool || disk.Volume.Capacity != 10*units.GiB || !slices.Equal(vm.Disks, []string{disk.ID}) {
				t.Fatalf("disk %+v of %+v", disk.Volume, vm.Disks)
			}
			if len(order.Spec.Disks) != 1 || order.Spec.Disks[0].Volume != disk.Volume.Name || order.Volumes[0].Name != disk.Volume.Name {
				t.Errorf("ordered %+v with %+v", order.Spec.Disks, order.Volumes)
			}
			if place == "" {
				place = vm.Holder
				if !slices.Equal(disk.Volume.Nodes, []string{vm.Holder}) {
					t.Errorf("on %v, started on %s", disk.Volume.Nodes, vm.Holder)
				}
			}
			w.wantLeft(place + " web1-root")
		})
	}
}

func TestAStartThatFailsLeavesNeitherDiskNorVolume(t *testing.T) {
	for name, script := range map[string]func(operation.Order) *operation.Answer{
		"failed":   answers(operation.ActStart, operation.OutcomeFailed, model.DomainAbsent),
		"in doubt": answers(operation.ActStart, operation.OutcomeAmbiguous, model.DomainAbsent),
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, script)
			defer w.lose()
			w.put(pools()...)
			before := w.agents.left()
			started := w.must(disked("p-wide"))
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if op := w.operation(started.Operation.ID); op.Result != operation.Failed || op.Attempt != operation.MaxAttempts {
				t.Fatalf("%s: %+v", name, op)
			}
			if vm, disk := w.vm("web1"), w.disk("web1-root"); vm.ID != "" || disk.ID != "" {
				t.Errorf("%s: left VM %+v, disk %+v", name, vm, disk)
			}
			if diff := cmp.Diff(before, w.agents.left()); diff != "" {
				t.Errorf("%s: volumes:\n%s", name, diff)
			}
		})
	}
}

// A start that is cancelled while its end is in doubt removes what it may have made.
func TestACancelledStartClears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var silent atomic.Bool
		silent.Store(true)
		w := newWorld(t, func(order operation.Order) *operation.Answer {
			if order.Action == operation.ActClear && silent.Load() {
				return nil
			}
			return answers(operation.ActStart, operation.OutcomeAmbiguous, model.DomainUnknown)(order)
		})
		defer w.lose()
		w.put(pools()...)
		started := w.must(disked("p-fast"))
		synctest.Wait()
		if op := w.operation(started.Operation.ID); op.Phase != operation.Clearing {
			t.Fatalf("%+v", op)
		}
		w.wantLeft(started.Operation.Target + " web1-root")
		if _, err := w.CancelOperation(t.Context(), started.Operation.ID, "operator/test"); err != nil {
			t.Fatal(err)
		}
		silent.Store(false)
		time.Sleep(5 * time.Second)
		if op := w.operation(started.Operation.ID); op.Result != operation.Failed || op.Attempt != 1 {
			t.Errorf("%+v", op)
		}
		w.wantLeft()
	})
}

// What is being made counts before it is there.
func TestWhatIsBeingMadeTakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(operation.Order) *operation.Answer { return nil })
		defer w.lose()
		w.put(pools()...)
		first := disked("p-wide")
		first.Root.Settings["size"] = fmt.Sprint(int64(60 * units.GiB))
		w.must(first)
		second := disked("p-wide")
		second.Name, second.RequestID, second.Root.Name = "web2", "start web2", "web2-root"
		second.Root.Settings["size"] = fmt.Sprint(int64(60 * units.GiB))
		_, err := w.StartVM(t.Context(), second)
		refusedAs(t, "a second disk of 60 GiB in 100", err, lead.NoNodeFits, "40 GiB left to promise")
		second.Root.Settings["size"] = fmt.Sprint(int64(40 * units.GiB))
		w.must(second)
		second.Name, second.RequestID, second.Root.Name = "web3", "start web3", "web3-root"
		second.Root.Settings["size"] = fmt.Sprint(int64(200 * units.GiB))
		_, err = w.StartVM(t.Context(), second)
		refusedAs(t, "a disk larger than its pool", err, lead.NoNodeFits, "in all")
		if disk := w.disk("web3-root"); disk.ID != "" {
			t.Errorf("a refused start leaves disk %+v", disk)
		}
	})
}

func TestADiskInALocalPoolKeepsItsVMUnlessItGoesAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.put(pools()...)
		vm := w.began("p-fast")
		_, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: other(vm.Holder)})
		refusedAs(t, "without its disk", err, lead.Conflict, "its disk web1-root is in the local pool fast of node")
		moved, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: other(vm.Holder), CopyStorage: true})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		op, after := w.operation(moved.Operation.ID), w.vm("web1")
		if op.Result != operation.Done || after.Holder != other(vm.Holder) || after.Condition.Text != "" {
			t.Fatalf("%+v of %+v", op, after)
		}
		if disk := w.disk("web1-root"); !slices.Equal(disk.Volume.Nodes, []string{after.Holder}) {
			t.Errorf("its disk is on %v", disk.Volume.Nodes)
		}
		order := w.agents.ordered(operation.ActMigrate)[0]
		if !order.CopyStorage || len(order.Volumes) != 1 || order.Volumes[0].BackingName != "" || order.Deadline < 25*time.Minute {
			t.Errorf("ordered %+v", order)
		}
		w.wantLeft(after.Holder + " web1-root")
	})
}

func TestACopyThatBreaksLeavesTheDiskWhereItWas(t *testing.T) {
	for name, script := range map[string]func(operation.Order) *operation.Answer{
		"prepare failed":   answers(operation.ActPrepare, operation.OutcomeFailed, model.DomainAbsent),
		"prepare in doubt": answers(operation.ActPrepare, operation.OutcomeAmbiguous, model.DomainAbsent),
		"copy refused":     answers(operation.ActMigrate, operation.OutcomeRefused, model.DomainRunning),
		"copy failed":      answers(operation.ActMigrate, operation.OutcomeFailed, model.DomainRunning),
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, script)
			defer w.lose()
			w.put(pools()...)
			vm := w.began("p-fast")
			moved, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: other(vm.Holder), CopyStorage: true})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if op := w.operation(moved.Operation.ID); op.Result != operation.Failed || w.vm("web1").Holder != vm.Holder {
				t.Errorf("%s: %+v", name, op)
			}
			if disk := w.disk("web1-root"); !slices.Equal(disk.Volume.Nodes, []string{vm.Holder}) {
				t.Errorf("%s: its disk is on %v", name, disk.Volume.Nodes)
			}
			w.wantLeft(vm.Holder + " web1-root")
		})
	}
}

// In a cluster with local storage a VM whose disks are volumes has a new home where they go.
func TestAHomeGoesAlongWithTheDisks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.put(append(pools(), defaultCluster(map[string]string{model.SettingStorage: string(model.LocalStorage)}))...)
		vm := w.began("p-fast")
		if vm.Home != vm.Holder {
			t.Fatalf("home %q, on %s", vm.Home, vm.Holder)
		}
		if _, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID, CopyStorage: true, Node: other(vm.Holder)}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if after := w.vm("web1"); after.Holder != other(vm.Holder) || after.Home != after.Holder {
			t.Errorf("on %s, home %s", after.Holder, after.Home)
		}
		plain := w.running("web2")
		w.record(plain.ID, func(vm *model.VM) { vm.Spec.Disks = []model.Disk{{Path: "/srv/web2.qcow2", Format: "qcow2"}} })
		_, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: plain.ID, CopyStorage: true})
		refusedAs(t, "a disk that is a file", err, lead.Conflict, "/srv/web2.qcow2 is a file")
	})
}

// Whoever leads goes on from the records.
func TestTheNextLeaderGoesOnWithVolumes(t *testing.T) {
	for _, stopAt := range []operation.Action{operation.ActPrepare, operation.ActMigrate, operation.ActResume, operation.ActClear} {
		synctest.Test(t, func(t *testing.T) {
			var silent atomic.Bool
			silent.Store(true)
			w := newWorld(t, func(order operation.Order) *operation.Answer {
				if silent.Load() && order.Action == stopAt {
					return nil
				}
				return obedient(order)
			})
			w.put(pools()...)
			vm := w.began("p-fast")
			moved, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: other(vm.Holder), CopyStorage: true})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if op := w.operation(moved.Operation.ID); !op.Live() {
				t.Fatalf("%s: ended: %+v", stopAt, op)
			}
			w.lose()
			silent.Store(false)
			w.lead(2)
			defer func() { w.lose() }()
			if op := w.operation(moved.Operation.ID); op.Result != operation.Done {
				t.Errorf("%s: %+v", stopAt, op)
			}
			w.wantLeft(other(vm.Holder) + " web1-root")
		})
	}
}

func TestAStartTellsTheCPUThatItsVMHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		for node, models := range map[string][]string{"n1": {"Haswell", "Nehalem"}, "n2": {"Haswell", "Nehalem"}, "n3": {"Nehalem"}} {
			w.facts.change(node, func(f *model.NodeFacts) { f.CPUModels, f.HostCPU = models, "cpu of "+node })
		}
		plain := w.running("plain")
		order := w.agents.ordered(operation.ActStart)[0]
		if plain.CPU != "Nehalem" || order.Spec.CPU != "Nehalem" || plain.Spec.CPU != "" {
			t.Errorf("the baseline: has %q, ordered %q, asks for %q", plain.CPU, order.Spec.CPU, plain.Spec.CPU)
		}
		w.must(lifecycle.StartVM{Name: "named", VM: &model.VM{Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1, CPU: "Haswell"}}})
		synctest.Wait()
		if named := w.vm("named"); named.CPU != "Haswell" || named.Holder == "n3" {
			t.Errorf("named: has %q on %s", named.CPU, named.Holder)
		}
		w.must(lifecycle.StartVM{Name: "passed", VM: &model.VM{Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1, CPU: model.CPUHostPassthrough}}})
		synctest.Wait()
		passed := w.vm("passed")
		w.show(passed)
		if passed.CPU != model.CPUHostPassthrough || passed.PassedCPU != "cpu of "+passed.Holder {
			t.Errorf("passed through: %q, %q", passed.CPU, passed.PassedCPU)
		}
		_, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: passed.ID, Node: other(passed.Holder)})
		refusedAs(t, "to another CPU", err, lead.NoNodeFits, "the node has another CPU")
		w.record(passed.ID, func(vm *model.VM) { vm.PassedCPU = "" })
		_, err = w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: passed.ID, Node: other(passed.Holder)})
		refusedAs(t, "of a CPU that nobody knows", err, lead.Conflict, "did not tell which it is")
	})
}
