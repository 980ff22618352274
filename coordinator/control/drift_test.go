package control

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/shared/units"
)

const (
	image    = "/srv/web1.qcow2"
	overlay  = "/srv/web1.before-upgrade"
	attached = "/srv/more.raw"
)

// withImage starts a VM with a disk, and has its node show what it runs with.
func (w *world) withImage(live ...model.Device) model.VM {
	w.Helper()
	w.knowPools(true)
	return w.startImage(live...)
}

// knowPools is what nodes tell of their pools, or that they tell nothing yet.
func (w *world) knowPools(known bool) {
	for _, node := range w.Store.Snapshot().Nodes() {
		w.facts.change(node.ID, func(f *model.NodeFacts) { f.PoolsKnown = known })
	}
}

// startImage is withImage where nodes may not have told their pools.
func (w *world) startImage(live ...model.Device) model.VM {
	w.Helper()
	w.store(state.RaiseLevel(state.FeatureLevel))
	started, err := w.StartVM(w.Context(), lifecycle.StartVM{
		Name: "web1", RequestID: "web1", Caller: "operator/test",
		VM: &model.VM{Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1, Disks: []model.Disk{{Path: image, Format: "qcow2", Bus: "virtio"}}}},
	})
	if err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
	vm := w.guest(started.VM.ID)
	w.show(vm)
	w.runsWith(vm, live...)
	return vm
}

func diskAt(key, path string) model.Device {
	return model.Device{Kind: "disk", Key: key, Source: model.DiskSource{Path: path}, Format: "qcow2"}
}

// runsWith changes what a VM's node shows of its devices, without saying so.
func (w *world) runsWith(vm model.VM, live ...model.Device) {
	w.edit(vm.Holder, vm, func(d *model.Domain) { d.Devices = append([]model.Device{}, live...) })
}

// changedTo changes it, and the agent tells.
func (w *world) changedTo(vm model.VM, live ...model.Device) {
	w.runsWith(vm, live...)
	w.facts.mu.Lock()
	w.facts.changed = append(w.facts.changed, model.ToldDevices{VM: vm.ID, Node: vm.Holder, Epoch: vm.Epoch, Devices: live})
	w.facts.mu.Unlock()
	time.Sleep(time.Second)
}

func (w *world) stops(vm model.VM) {
	w.Helper()
	if _, err := w.ActOnVM(w.Context(), lifecycle.ActOnVM{Kind: operation.Stop, VM: vm.ID, RequestID: w.NewID()}); err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
	w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.Domains = nil })
	if is := w.guest(vm.ID); is.Holder != "" {
		w.Fatalf("it is not stopped: %+v", is)
	}
}

// againWith starts a stopped VM again, and tells with which devices beside its record.
func (w *world) againWith(vm model.VM) string {
	w.Helper()
	if _, err := w.StartVM(w.Context(), lifecycle.StartVM{Name: vm.Name, RequestID: w.NewID(), Caller: "operator/test"}); err != nil {
		return err.Error()
	}
	synctest.Wait()
	orders := w.agents.ordered(operation.ActStart)
	var texts []string
	for _, edit := range orders[len(orders)-1].Edits {
		texts = append(texts, edit.Key+" "+edit.Is)
	}
	return strings.Join(texts, ", ")
}

// A snapshot made with virsh: the guest writes into another file than the record has. Whoever starts it again, it goes on from there.
func TestWhatAGuestRanWithLastIsWhatItIsStartedWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer func() { w.lose() }() // of the last leader
		vm := w.withImage(diskAt("vda", image))
		w.changedTo(vm, diskAt("vda", image))
		if is := w.guest(vm.ID); is.Drift != nil {
			t.Fatalf("it runs as its record says, and that has %+v", is.Drift)
		}
		w.changedTo(vm, diskAt("vda", overlay), diskAt("vdb", attached))
		is := w.guest(vm.ID)
		if len(is.Edits()) != 2 || is.Drift.Node != vm.Holder || !strings.Contains(is.Edits()[0].XML, overlay) {
			t.Fatalf("its record has %+v", is.Drift)
		}
		if told := w.told("vm.changed-beside"); len(told) != 2 || !strings.Contains(told[0].Message, overlay) {
			t.Errorf("told: %+v", told)
		}
		w.lose() // the next leader has heard nothing
		w.lead(2)
		w.stops(vm)
		if with := w.againWith(vm); with != "vda "+overlay+", vdb "+attached {
			t.Errorf("it is started with %q", with)
		}
	})
}

// What is changed in the last moment is seen before the guest is asked to stop.
func TestAGuestIsLookedAtBeforeItIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.withImage(diskAt("vda", image))
		w.runsWith(vm, diskAt("vda", overlay))
		w.stops(vm)
		if with := w.againWith(vm); with != "vda "+overlay {
			t.Errorf("it is started with %q", with)
		}
	})
}

// A guest ends right after its snapshot was taken, and before anybody has looked at what was told of it: its next start uses that.
func TestWhatWasToldOfAGuestThatHasEndedSinceIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.withImage(diskAt("vda", image))
		w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.Domains = nil })
		w.changedTo(vm, diskAt("vda", overlay))
		if is := w.guest(vm.ID); len(is.Edits()) != 1 || !strings.Contains(is.Edits()[0].XML, overlay) {
			t.Errorf("its record has %+v", is.Drift)
		}
	})
}

// libvirtd is restarted right after a disk was copied to another place: its node lists nothing for a moment, and the change is kept once it
// does, though it is told no second time.
func TestAChangeIsKeptThoughItsNodeListsNothingForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.withImage(diskAt("vda", image))
		lists := func(known bool) {
			w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.DomainsKnown = known })
		}
		lists(false)
		w.changedTo(vm, diskAt("vda", overlay))
		if is := w.guest(vm.ID); is.Drift != nil {
			t.Fatalf("its record has %+v, and its node lists nothing", is.Drift)
		}
		lists(true)
		time.Sleep(time.Second)
		if is := w.guest(vm.ID); len(is.Edits()) != 1 || !strings.Contains(is.Edits()[0].XML, overlay) {
			t.Errorf("its record has %+v", is.Drift)
		}
	})
}

// Somebody starts a stopped VM with virsh, copies its disk to another place, and ends it there as Berth says: what it has written is not
// lost to its next start.
func TestWhatAVMRanWithBesideBerthIsWhatItIsStartedWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.withImage(diskAt("vda", image))
		node := vm.Holder
		w.stops(vm)
		stray := w.guest(vm.ID)
		w.shows(node, stray, nil)
		stray.Holder = node // where it is edited
		w.changedTo(stray, diskAt("vda", overlay))
		if is := w.guest(vm.ID); len(is.Edits()) != 1 || is.Drift.Node != node || !strings.Contains(is.Edits()[0].XML, overlay) {
			t.Fatalf("its record has %+v", is.Drift)
		}
		w.facts.change(node, func(f *model.NodeFacts) { f.Domains = nil })
		time.Sleep(time.Minute)
		if with := w.againWith(vm); with != "vda "+overlay {
			t.Errorf("it is started with %q", with)
		}
	})
}

// The snapshot is written back into the disk of the record: there is nothing to tell any more.
func TestWhatIsAsItsRecordHasItAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.withImage(diskAt("vda", overlay))
		w.changedTo(vm, diskAt("vda", overlay))
		w.changedTo(vm, diskAt("vda", image))
		if is := w.guest(vm.ID); is.Drift != nil || len(w.told("vm.as-recorded")) != 1 {
			t.Errorf("%+v, told %+v", is.Drift, w.told("vm.as-recorded"))
		}
	})
}

// Two people have changed the same disk, one beside Berth and one with Berth: nobody guesses which of them has the newest writes.
func TestARecordThatWasChangedUnderADriftIsNotStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.withImage(diskAt("vda", overlay))
		w.changedTo(vm, diskAt("vda", overlay))
		w.stops(vm)
		w.record(vm.ID, func(vm *model.VM) { vm.Spec.Disks[0].Path = "/srv/restored.qcow2" })
		if said := w.againWith(vm); !strings.Contains(said, overlay) || !strings.Contains(said, "/srv/restored.qcow2") {
			t.Fatalf("it is started, or refused with %q", said)
		}
		w.record(vm.ID, func(vm *model.VM) { vm.Drift.Reverted = true })
		if with := w.againWith(vm); with != "" {
			t.Errorf("after it was reverted it is started with %q", with)
		}
	})
}

// A VM that is being moved is left alone, and looked at when that has ended.
func TestADriftIsNotLostToAnOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.withImage(diskAt("vda", overlay))
		w.record(vm.ID, func(vm *model.VM) { vm.Operation = "op-of-somebody" })
		w.changedTo(vm, diskAt("vda", overlay))
		if is := w.guest(vm.ID); is.Drift != nil {
			t.Fatalf("in the middle of an operation its record is changed: %+v", is.Drift)
		}
		w.record(vm.ID, func(vm *model.VM) { vm.Operation = "" })
		time.Sleep(time.Second)
		if is := w.guest(vm.ID); len(is.Edits()) != 1 || is.Edits()[0].Is != overlay {
			t.Errorf("its record has %+v", is.Drift)
		}
	})
}

// Two hosts may each have a file of the same path: as long as nobody has said that it is the same, the VM starts where it ran.
func TestAVMIsBoundToTheNodeThatAloneHasItsDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.withImage(diskAt("vda", image))
		w.changedTo(vm, diskAt("vda", image))
		is := w.guest(vm.ID)
		if is.Bound != vm.Holder || len(w.told("vm.bound")) != 1 {
			t.Fatalf("it runs on %s, and is bound to %q", vm.Holder, is.Bound)
		}
		other := "n1"
		if vm.Holder == other {
			other = "n2"
		}
		if _, err := w.MigrateVM(w.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: other, RequestID: "move"}); err == nil {
			t.Error("it is moved away from its disk")
		}
		w.stops(vm)
		start := lifecycle.StartVM{Name: vm.Name, Node: other, RequestID: w.NewID(), Caller: "operator/test"}
		if _, err := w.StartVM(w.Context(), start); err == nil {
			t.Fatal("it is started elsewhere, on a file of the same path")
		}
		if with := w.againWith(vm); with != "" {
			t.Fatalf("where its disk is it is started with %q", with)
		}
		again := w.guest(vm.ID)
		if again.Holder != vm.Holder {
			t.Fatalf("it is on %s, its disk on %s", again.Holder, vm.Holder)
		}
		w.show(again)
		w.changedTo(again, diskAt("vda", image))

		// Somebody says that all nodes have it.
		w.put(model.Resource{ID: "p1", Kind: model.KindPool, Name: "srv", Settings: map[string]string{
			model.SettingScope: string(model.PoolShared),
		}})
		for _, node := range w.Store.Snapshot().Nodes() {
			w.facts.change(node.ID, func(f *model.NodeFacts) {
				f.Pools = append(f.Pools, model.PoolFacts{Name: "srv", Active: true, Path: "/srv"})
			})
		}
		time.Sleep(15 * time.Second)
		if is := w.guest(vm.ID); is.Bound != "" || len(w.told("vm.unbound")) != 1 {
			t.Errorf("its disk is in a shared pool, and it is bound to %q", is.Bound)
		}
	})
}

// sharesFolder declares a pool as shared, and has all nodes tell that they have it in a folder.
func (w *world) sharesFolder(folder string) {
	w.put(model.Resource{ID: "p1", Kind: model.KindPool, Name: "srv", Settings: map[string]string{
		model.SettingScope: string(model.PoolShared),
	}})
	for _, one := range w.Store.Snapshot().Nodes() {
		w.facts.change(one.ID, func(f *model.NodeFacts) {
			f.PoolsKnown, f.Pools = true, append(f.Pools, model.PoolFacts{Name: "srv", Active: true, Path: folder})
		})
	}
}

// A disk that somebody changes beside Berth while its node tells no pools binds the VM as well, until the node tells that it is in a shared
// one. That another node has a shared pool in a folder of that path says nothing: this node may have a file system of its own there.
func TestADiskBindsAVMThoughNoPoolsAreTold(t *testing.T) {
	for _, nobody := range []bool{false, true} {
		for elsewhere, stays := range map[string]bool{"/var/tmp/copy.qcow2": true, "/srv/copy.qcow2": false} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, obedient)
				defer w.lose()
				w.sharesFolder("/srv")
				vm := w.withImage(diskAt("vda", image))
				if vm.Bound != "" {
					t.Fatalf("its disk is in a shared pool, and it is bound to %q", vm.Bound)
				}
				if nobody {
					w.knowPools(false)
				} else {
					w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.PoolsKnown = false })
				}
				pools := w.facts.Facts(vm.Holder, time.Now()).Pools
				w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.Pools = nil })
				w.changedTo(vm, diskAt("vda", elsewhere))
				time.Sleep(2 * time.Second)
				if is := w.guest(vm.ID); len(is.Edits()) != 1 || is.Bound != vm.Holder || len(w.told("vm.bound")) != 1 {
					t.Fatalf("nobody tells pools %t: its record has %+v, and it is bound to %q", nobody, is.Edits(), is.Bound)
				}
				w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.Pools = pools })
				w.knowPools(true)
				time.Sleep(15 * time.Second)
				if is := w.guest(vm.ID); (is.Bound == vm.Holder) != stays || len(w.told("vm.bound")) != 1 {
					t.Errorf("nobody told pools %t: with %s it is bound to %q, which is told %d times", nobody, elsewhere, is.Bound,
						len(w.told("vm.bound")))
				}
			})
		}
	}
}

// A node that tells no pools for a moment binds no VM whose disks were looked at before: only what is new to it does.
func TestPoolsThatAreNotToldBindNothingThatWasLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.sharesFolder("/srv")
		vm := w.withImage(diskAt("vda", image))
		w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.PoolsKnown, f.Pools = false, nil })
		w.changedTo(vm, diskAt("vda", image), model.Device{Kind: "interface", Key: "52:54:00:00:00:09", Network: "default"})
		time.Sleep(2 * time.Second)
		if is := w.guest(vm.ID); len(is.Edits()) != 1 || is.Bound != "" {
			t.Errorf("its record has %+v, and it is bound to %q", is.Edits(), is.Bound)
		}
	})
}

// A stopped VM that is bound to a node which tells no pools stays bound, though the folder of its disk is a shared pool's on other nodes.
// Once the node is removed, what it may have had for itself is gone, and the others tell.
func TestAStoppedVMIsNotUnboundByTheFoldersOfOtherNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.withImage(diskAt("vda", image))
		w.changedTo(vm, diskAt("vda", image))
		w.stops(vm)
		w.sharesFolder("/srv")
		w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.PoolsKnown, f.Pools = false, nil })
		time.Sleep(15 * time.Second)
		if is := w.guest(vm.ID); is.Bound != vm.Holder {
			t.Fatalf("its file may be what %s alone has, and it is bound to %q", vm.Holder, is.Bound)
		}
		node, _ := w.Store.Snapshot().Node(vm.Holder)
		w.store(state.Command{Kind: "remove node", Delete: []state.Record{{Table: state.Nodes, ID: node.ID}}},
			state.Expectation{Table: state.Nodes, ID: node.ID, Revision: node.Revision})
		time.Sleep(15 * time.Second)
		if is := w.guest(vm.ID); is.Bound != "" {
			t.Errorf("its node is removed, all others have its disk, and it is bound to %q", is.Bound)
		}
	})
}

// A guest writes to its disk at once, and the next order may come before anybody has looked at it: the end of its start binds it. A new
// leader may hear of that end before it hears anything else of the node, and the guest may be gone when it does.
func TestTheEndOfAStartBindsAVM(t *testing.T) {
	for _, known := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, obedient)
			defer w.lose()
			w.knowPools(known)
			vm := w.startImage(diskAt("vda", image))
			other := map[bool]string{true: "n2", false: "n1"}[vm.Holder == "n1"]
			if vm.Bound != vm.Holder || len(w.told("vm.bound")) != 1 {
				t.Errorf("pools known %t: it is on %s, and bound to %q, which is told %d times", known, vm.Holder, vm.Bound, len(w.told("vm.bound")))
			}
			if _, err := w.MigrateVM(w.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: other, RequestID: "move"}); err == nil {
				t.Error("it is moved away from its disk")
			}
			w.facts.change(vm.Holder, without(vm.ID))
			w.record(vm.ID, func(vm *model.VM) { vm.Holder = "" })
			w.knowPools(true)
			start := lifecycle.StartVM{Name: vm.Name, Node: other, RequestID: w.NewID(), Caller: "operator/test"}
			if _, err := w.StartVM(w.Context(), start); err == nil {
				t.Error("it is started elsewhere, on a file of the same path")
			}
		})
	}
}

// So does the end of a start that is told to have failed, if its guest may have run: as long as nobody tells which pools there are, too.
func TestTheEndOfAStartThatMayHaveRunBindsAVM(t *testing.T) {
	for _, known := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			node, ended := "", true
			w := newWorld(t, func(order operation.Order) *operation.Answer {
				if node == "" && order.Action == operation.ActStart {
					node = order.Node
					return &operation.Answer{
						Outcome: operation.OutcomeFailed, Error: "no", Seen: operation.Observation{State: model.DomainAbsent, Ended: ended},
					}
				}
				return obedient(order)
			})
			defer w.lose()
			w.store(state.RaiseLevel(state.FeatureLevel))
			w.knowPools(known)
			spec := model.VMSpec{Memory: units.GiB, VCPUs: 1, Disks: []model.Disk{{Path: image, Format: "qcow2", Bus: "virtio"}}}
			begin := func(name string) model.VM {
				t.Helper()
				started, err := w.StartVM(w.Context(), lifecycle.StartVM{
					Name: name, RequestID: name, Caller: "operator/test", VM: &model.VM{Spec: spec},
				})
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				vm, _ := w.Store.Snapshot().VM(started.VM.ID)
				return vm
			}
			vm := begin("web1")
			if vm.Bound != node || vm.Holder != "" || len(w.told("vm.bound")) != 1 {
				t.Fatalf("pools known %t: it may have written on %s: %+v", known, node, vm)
			}
			other := map[bool]string{true: "n2", false: "n1"}[node == "n1"]
			start := lifecycle.StartVM{Name: vm.Name, Node: other, RequestID: w.NewID(), Caller: "operator/test"}
			if _, err := w.StartVM(w.Context(), start); err == nil {
				t.Error("it is started elsewhere, on a file of the same path")
			}
			if node, ended = "", false; begin("web2").Bound == node {
				t.Error("a guest that never began binds its VM")
			}
			w.put(model.Resource{ID: "p1", Kind: model.KindPool, Name: "srv", Settings: map[string]string{
				model.SettingScope: string(model.PoolShared),
			}})
			for _, one := range w.Store.Snapshot().Nodes() {
				w.facts.change(one.ID, func(f *model.NodeFacts) {
					f.PoolsKnown, f.Pools = true, append(f.Pools, model.PoolFacts{Name: "srv", Active: true, Path: "/srv"})
				})
			}
			time.Sleep(15 * time.Second)
			if is, _ := w.Store.Snapshot().VM(vm.ID); is.Bound != "" {
				t.Errorf("all nodes have its disk, and it is bound to %q", is.Bound)
			}
		})
	}
}

// A record that is changed while the VM runs takes effect at its next start, whatever the guest that runs looks like.
func TestARecordThatIsChangedWhileItsVMRunsIsStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.withImage(diskAt("vda", image))
		w.changedTo(vm, diskAt("vda", image))
		w.record(vm.ID, func(vm *model.VM) {
			vm.Spec.Disks[0].Path = "/srv/restored.qcow2"
			vm.Spec.Disks = append(vm.Spec.Disks, model.Disk{Path: "/srv/new.raw", Format: "raw", Bus: "virtio"})
		})
		w.changedTo(vm, diskAt("vda", image))
		w.stops(vm)
		if is := w.guest(vm.ID); is.Drift != nil {
			t.Errorf("its record has %+v", is.Drift)
		}
		if with := w.againWith(vm); with != "" {
			t.Errorf("it is started with %q", with)
		}
	})
}

// A stopped VM whose disk somebody has put where all nodes see it is bound no more.
func TestAStoppedVMIsUnbound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.withImage(diskAt("vda", image))
		w.changedTo(vm, diskAt("vda", image))
		w.stops(vm)
		w.record(vm.ID, func(vm *model.VM) { vm.Spec.Disks = nil })
		time.Sleep(15 * time.Second)
		if is := w.guest(vm.ID); is.Bound != "" {
			t.Errorf("it has no disk, and is bound to %q", is.Bound)
		}
	})
}

// A guest that was asked to restart may take minutes for that. What is changed of it meanwhile is told at once.
func TestAChangeDuringARebootIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(order operation.Order) *operation.Answer {
			if order.Action == operation.ActReboot {
				return nil
			}
			return obedient(order)
		})
		defer w.lose()
		vm := w.withImage(diskAt("vda", image))
		op, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Reboot, VM: vm.ID, RequestID: "r", Caller: "operator/test"})
		if err != nil {
			t.Fatal(err)
		}
		w.changedTo(vm, diskAt("vda", overlay))
		time.Sleep(2 * time.Second)
		if is := w.guest(vm.ID); len(is.Edits()) != 1 || is.Operation != op.ID {
			t.Errorf("its record has %+v, operation %q", is.Drift, is.Operation)
		}
		time.Sleep(operation.RebootPatience + time.Minute)
		if is := w.guest(vm.ID); len(is.Edits()) != 1 || is.Operation != "" {
			t.Errorf("after the reboot it has %+v, operation %q", is.Drift, is.Operation)
		}
	})
}
