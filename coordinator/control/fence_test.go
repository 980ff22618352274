package control

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/fencing"
	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/shared/units"
)

// devices stand for fence agents. Off takes its time, and fails as the test says.
type devices struct {
	mu       sync.Mutex
	takes    time.Duration
	fail     error
	off      func()            // called when a machine is switched off
	dark     bool              // it says that the machine is off
	hangs    bool              // it says nothing until nobody waits any more
	power    int               // questions for the power state at work now
	beside   int               // calls that were made beside such a question
	machines map[string]string // by plug: what the device says that it switches
	reach    string            // the address that answers from the leader's machine
	calls    []string          // plugs, in order
	work     int               // calls at work now
	most     int
}

func (d *devices) Off(ctx context.Context, device model.FenceDevice) error {
	d.mu.Lock()
	d.calls = append(d.calls, device.Arguments["plug"])
	d.beside += d.power
	d.work++
	d.most = max(d.most, d.work)
	takes, fail, off := d.takes, d.fail, d.off
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.work--
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(takes):
	}
	if fail == nil && off != nil {
		off()
	}
	return fail
}

func (d *devices) Identity(_ context.Context, device model.FenceDevice) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if is := d.machines[device.Arguments["plug"]]; is != "" {
		return is, nil
	}
	return "", errors.New("fence_x does not tell which machine it switches")
}

func (d *devices) Reach(context.Context, []string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reach
}

func (d *devices) On(ctx context.Context, _ model.FenceDevice) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hangs {
		d.power++
		d.mu.Unlock()
		<-ctx.Done()
		d.mu.Lock()
		d.power--
		return false, ctx.Err()
	}
	return !d.dark, d.fail
}

func (d *devices) asked() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.calls)
}

// fencedWorld is a world whose nodes have fence devices, under boot b1.
func fencedWorld(t *testing.T) (*world, *devices) {
	w := newWorld(t, obedient)
	for _, node := range w.Store.Snapshot().Nodes() {
		w.device(node.ID, supply(node.ID))
		w.facts.change(node.ID, func(f *model.NodeFacts) { f.Boot, f.HeardAt = "b1", time.Now() })
	}
	time.Sleep(2 * evidence.FenceGrace)
	return w, w.devices
}

// supply are the devices of a node with a power supply on each of some plugs.
func supply(plug string, more ...string) model.FenceDevice {
	device := model.FenceDevice{Method: model.FenceCommand, Program: "fence_x", Arguments: map[string]string{"plug": plug}}
	for _, one := range more {
		device.Also = append(device.Also, supply(one))
	}
	return device
}

func (w *world) device(id string, device model.FenceDevice) {
	node, _ := w.Store.Snapshot().Node(id)
	node.Fence = device
	w.store(state.Command{Nodes: []model.Node{node}}, state.Expectation{Table: state.Nodes, ID: id, Revision: node.Revision})
}

// available runs a VM that is to be highly available.
func (w *world) available(name string) model.VM {
	w.Helper()
	vm := w.running(name)
	vm, _ = w.Store.Snapshot().VM(vm.ID)
	vm.HA = true
	w.store(state.Command{VMs: []model.VM{vm}}, state.Expectation{Table: state.VMs, ID: vm.ID, Revision: vm.Revision})
	vm, _ = w.Store.Snapshot().VM(vm.ID)
	return vm
}

// silence makes a node fall silent, as if it had been heard until now.
func (w *world) silence(id string) {
	w.facts.change(id, func(f *model.NodeFacts) {
		f.Liveness, f.LivenessReason, f.HeardAt = model.Unreachable, "no session", time.Now()
	})
	w.agents.mu.Lock()
	w.agents.away[id] = true
	w.agents.mu.Unlock()
}

// speak makes a node be heard again.
func (w *world) speak(id, boot string) {
	w.agents.mu.Lock()
	delete(w.agents.away, id)
	w.agents.mu.Unlock()
	w.facts.change(id, func(f *model.NodeFacts) {
		f.Liveness, f.LivenessReason, f.HeardAt, f.Boot = model.Up, "", time.Now(), boot
	})
	w.AgentConnected(id)
}

func (w *world) host(id string) model.Node {
	node, _ := w.Store.Snapshot().Node(id)
	return node
}

func (w *world) guest(id string) model.VM {
	vm, _ := w.Store.Snapshot().VM(id)
	return vm
}

// toldOf are the kinds of events about a subject.
func (w *world) toldOf(subject string) string {
	var kinds []string
	for _, event := range w.Store.Snapshot().EventsAfter(0) {
		if event.Subject == subject {
			kinds = append(kinds, event.Kind)
		}
	}
	return strings.Join(kinds, " ")
}

func TestAVMWithHARestartsOnceItsNodeIsProvenOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := fencedWorld(t)
		defer w.lose()
		vm, plain := w.available("web1"), w.running("plain")
		if plain.Holder != vm.Holder { // both on the node that dies
			moved, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: plain.ID, Node: vm.Holder, RequestID: "m", Caller: "operator/test"})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if op := w.operation(moved.Operation.ID); op.Result != operation.Done {
				t.Fatalf("%+v", op)
			}
		}
		dead := vm.Holder
		silent := time.Now()
		w.silence(dead)
		time.Sleep(model.DefaultFenceAfter - time.Second)
		if d.asked() != 0 {
			t.Fatal("the device was asked before the node was silent for long enough")
		}
		time.Sleep(3 * time.Second)
		if node := w.host(dead); node.Fencing.Phase != model.FencingAsked || node.Fencing.Boot != "b1" || w.guest(vm.ID).Holder != dead {
			t.Fatalf("while the device is asked: %+v, the VM is held by %q", node.Fencing, w.guest(vm.ID).Holder)
		}
		time.Sleep(d.takes)
		for w.guest(vm.ID).Holder == dead || w.guest(vm.ID).Holder == "" {
			time.Sleep(time.Second)
			if time.Since(silent) > 3*time.Minute {
				t.Fatalf("not restarted: %+v, %+v", w.guest(vm.ID), w.host(dead).Fencing)
			}
		}
		after := w.guest(vm.ID)
		op := w.Store.Snapshot().Operations()[0]
		if after.Restarts != 1 || !op.Restart || after.Epoch <= vm.Epoch || after.Condition.Text != "" {
			t.Errorf("after the restart: %+v, operation %+v", after, op)
		}
		if took := op.EndedAt.Sub(w.host(dead).Fencing.EndedAt); took > time.Minute {
			t.Errorf("the restart took %s after the proof", took)
		} else {
			t.Logf("GOAL row 19: restarted %s after the proof (virtual time) | wanted 60 s at most | met", took)
		}
		if left := w.guest(plain.ID); left.Holder != "" || left.Desired != model.Running || !strings.Contains(
			left.Condition.Text, "proven to be off",
		) {
			t.Errorf("the other VM of the node: %+v", left)
		}
		if d.asked() != 1 {
			t.Errorf("the device was asked %d times", d.asked())
		}
		if got, want := w.toldOf("node/"+w.host(dead).Name), "node.fence node.fenced"; got != want {
			t.Errorf("history of the node %q, want %q", got, want)
		}
	})
}

// Row 20: a node that is silent, and alive. Whatever its device says but "off", nothing is restarted, and nothing is touched.
func TestSilenceIsNotDeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := fencedWorld(t)
		defer w.lose()
		d.fail = errors.New("it says that it is on")
		vm := w.available("web1")
		w.silence(vm.Holder)
		time.Sleep(2 * time.Hour)
		if after := w.guest(vm.ID); after.Holder != vm.Holder || after.Epoch != vm.Epoch {
			t.Fatalf("after two hours of silence: %+v", after)
		}
		node := w.host(vm.Holder)
		if n := d.asked(); n < 20 || n > 40 || d.most != 1 || node.Fencing.Phase != model.FencingFailed || node.Fencing.Attempt < 20 {
			t.Errorf("the device was asked %d times, at most %d at once: %+v", n, d.most, node.Fencing)
		}
		if verdict, held := w.FenceHeld(node.ID); !held || !strings.Contains(verdict.Why, "it says that it is on") {
			t.Errorf("the alarm says %+v", verdict)
		}
		w.speak(node.ID, "b1")
		time.Sleep(time.Minute)
		if after := w.host(node.ID); after.Fencing != (model.Fencing{}) {
			t.Errorf("once it is heard again: %+v", after.Fencing)
		}
		if starts := w.agents.ordered(operation.ActStart); len(starts) != 1 {
			t.Errorf("%d starts were ordered", len(starts))
		}
		t.Logf("GOAL row 20: 2 h of silence, %d calls of the device, 0 restarts | wanted 0 | met", d.asked())
	})
}

func TestOtherwiseNothingIsAsked(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(w *world, vm model.VM)
		says    string // alarm; empty: there is none
	}{
		"no VM with HA": {prepare: func(w *world, vm model.VM) {
			vm.HA = false
			w.store(state.Command{VMs: []model.VM{vm}}, state.Expectation{Table: state.VMs, ID: vm.ID, Revision: vm.Revision})
			w.silence(vm.Holder)
		}},
		"most nodes": {prepare: func(w *world, vm model.VM) {
			w.silence(vm.Holder)
			w.silence(other(vm.Holder))
		}, says: "2 of 3 nodes are silent"},
		"no device": {prepare: func(w *world, vm model.VM) {
			w.device(vm.Holder, model.FenceDevice{})
			w.silence(vm.Holder)
		}, says: "nothing can prove"},
		"a quarantine": {prepare: func(w *world, vm model.VM) {
			w.store(state.Command{Meta: map[string]string{state.MetaQuarantine: "restored"}})
			w.silence(vm.Holder)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, d := fencedWorld(t)
				defer w.lose()
				vm := w.available("web1")
				c.prepare(w, vm)
				time.Sleep(time.Hour)
				if d.asked() != 0 || w.guest(vm.ID).Holder != vm.Holder {
					t.Errorf("asked %d times, %+v", d.asked(), w.guest(vm.ID))
				}
				if verdict, held := w.FenceHeld(vm.Holder); held != (c.says != "") || !strings.Contains(verdict.Why, c.says) {
					t.Errorf("the alarm says %+v", verdict)
				}
				if alarms := strings.Count(w.toldOf("node/"+w.host(vm.Holder).Name), "node.not-fenced"); alarms > 1 || alarms == 0 && c.says != "" {
					t.Errorf("%d alarms in the history", alarms)
				}
			})
		})
	}
}

// Row 23: a leader that dies while a device is asked leaves it at work. The next one lets it come to its end.
func TestTwoLeadersNeverAskADeviceAtOnce(t *testing.T) {
	t.Run("one", func(t *testing.T) { twoLeaders(t, 1) })
	t.Run("of each power supply", func(t *testing.T) { twoLeaders(t, 2) })
}

func twoLeaders(t *testing.T, supplies int) {
	synctest.Test(t, func(t *testing.T) {
		w, d := fencedWorld(t)
		limit := time.Duration(supplies) * 2 * model.DefaultFenceTimeout
		d.takes = limit - 30*time.Second
		vm := w.available("web1")
		if supplies > 1 {
			w.device(vm.Holder, supply(vm.Holder+"/a", vm.Holder))
		}
		w.silence(vm.Holder)
		for d.asked() == 0 {
			time.Sleep(time.Second)
		}
		asked := w.host(vm.Holder).Fencing
		w.lose()
		w.facts.mu.Lock()
		for id, f := range w.facts.nodes { // the next leader has heard nothing of the dead one
			if id == vm.Holder {
				f.HeardAt, f.Boot = time.Time{}, ""
				w.facts.nodes[id] = f
			}
		}
		w.facts.mu.Unlock()
		w.lead(2)
		defer w.lose()
		time.Sleep(limit + 5*time.Second)
		if d.asked() != 1 || w.host(vm.Holder).Fencing != asked {
			t.Fatalf("asked %d times while the call of the old leader may be at work: %+v", d.asked(), w.host(vm.Holder).Fencing)
		}
		time.Sleep(d.takes + 30*time.Second)
		if after := w.host(vm.Holder); d.asked() != 2 || !after.Fenced() || after.Fencing.Attempt != 2 || after.Fencing.Boot != "b1" {
			t.Errorf("asked %d times: %+v", d.asked(), after.Fencing)
		}
		if after := w.guest(vm.ID); after.Holder == "" || after.Holder == vm.Holder {
			t.Errorf("not restarted: %+v", after)
		}
	})
}

func TestANewBootBringsANodeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := fencedWorld(t)
		defer w.lose()
		vm := w.available("web1")
		dead := vm.Holder
		w.silence(dead)
		for !w.isFenced(dead) {
			time.Sleep(time.Second)
		}
		if w.host(dead).Fencing.Boot != "b1" {
			t.Fatalf("%+v", w.host(dead).Fencing)
		}
		w.facts.change(dead, func(f *model.NodeFacts) { f.Domains = nil })
		w.speak(dead, "b2")
		time.Sleep(10 * time.Second)
		if after := w.host(dead); after.Fencing != (model.Fencing{}) || after.Boot != "b2" || w.Contradicted(dead) != "" {
			t.Errorf("after it has booted anew: %+v", after)
		}
	})
}

// A device may take minutes, and say that it has switched the machine off when that is up again and has new VMs. What was
// proven is of the boot before.
func TestANodeThatBootsAnewWhileItIsFencedIsNotOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := fencedWorld(t)
		defer w.lose()
		d.takes = 50 * time.Second
		vm := w.available("web1")
		dead := vm.Holder
		w.silence(dead)
		for w.host(dead).Fencing.Phase != model.FencingAsked {
			time.Sleep(time.Second)
		}
		w.facts.change(dead, func(f *model.NodeFacts) { f.Domains = nil })
		w.speak(dead, "b2")
		time.Sleep(10 * time.Second)
		started, err := w.StartVM(t.Context(), lifecycle.StartVM{
			Name: "new", Node: dead, RequestID: "new",
			VM: &model.VM{Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1, Kernel: "/vmlinuz"}, HA: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Minute)
		if after := w.host(dead); after.Fencing != (model.Fencing{}) || after.Boot != "b2" || d.asked() != 1 {
			t.Errorf("the node counts as off: %+v", after)
		}
		if after := w.guest(started.VM.ID); after.Holder != dead || after.Restarts != 0 {
			t.Errorf("the VM that runs there was taken from it: %+v", after)
		}

		d.takes = 5 * time.Second
		d.off = func() { w.speak(dead, "b3") }
		_, err = w.FenceNode(t.Context(), fencing.FenceNode{Node: dead, Force: true, Caller: "ann"})
		if !isCode(err, lead.Conflict) || d.asked() != 2 {
			t.Errorf("switched off by force, and on again by itself: %v after %d calls", err, d.asked())
		}
	})
}

// A proof is over as soon as the node is heard under another boot, and not only when its record tells of that.
func TestAProofEndsWithTheNextBoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := fencedWorld(t)
		defer w.lose()
		vm := w.available("web1")
		dead := vm.Holder
		w.silence(dead)
		for !w.isFenced(dead) {
			time.Sleep(time.Second)
		}
		if !w.IsOff(w.Store.Snapshot(), dead) {
			t.Error("it does not count as off")
		}
		w.facts.change(dead, func(f *model.NodeFacts) { f.Liveness, f.HeardAt, f.Boot = model.Up, time.Now(), "b2" })
		if !w.isFenced(dead) || w.IsOff(w.Store.Snapshot(), dead) {
			t.Error("it counts as off, and answers under another boot")
		}
		w.silence(dead)
		time.Sleep(10 * time.Second)
		if after := w.host(dead); after.Fenced() || after.Boot != "b2" {
			t.Errorf("it was heard under another boot, if only for a moment: %+v", after)
		}
	})
}

// Of a node that was never heard nobody knows which boot was proven to be over: the one that is heard then may be it.
func TestANodeThatWasNeverHeardComesBackWithItsNextBoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := fencedWorld(t)
		defer w.lose()
		w.store(
			state.Command{Nodes: []model.Node{{ID: "n9", Name: "n9", Cluster: model.DefaultCluster}}},
			state.Expectation{Table: state.Nodes, ID: "n9"},
		)
		w.facts.change("n9", func(f *model.NodeFacts) { f.Liveness = model.Unreachable })
		if _, err := w.FenceNode(t.Context(), fencing.FenceNode{Node: "n9", ConfirmedOff: true, Caller: "ann"}); err != nil || !w.isFenced("n9") {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		w.speak("n9", "b1")
		time.Sleep(10 * time.Second)
		if !w.isFenced("n9") || w.Contradicted("n9") == "" {
			t.Errorf("it counts again: %+v", w.host("n9").Fencing)
		}
		w.speak("n9", "b2")
		time.Sleep(10 * time.Second)
		if after := w.host("n9"); after.Fencing != (model.Fencing{}) || after.Boot != "b2" {
			t.Errorf("after it has booted anew: %+v", after)
		}
	})
}

// A device with the address of another machine says "off", and that is true, of that machine. The node it was asked about runs on.
func TestADeviceThatStrikesAnotherMachineIsNotBelieved(t *testing.T) {
	t.Run("which nobody reaches", func(t *testing.T) { strikesAnother(t, "") })
	t.Run("which others reach", func(t *testing.T) { strikesAnother(t, "10.0.0.9:16514") })
}

// strikesAnother plays it, with the address of the machine that is not struck and answers there.
func strikesAnother(t *testing.T, answers string) {
	synctest.Test(t, func(t *testing.T) {
		w, d := fencedWorld(t)
		defer w.lose()
		w.store(state.RaiseLevel(state.FeatureLevel))
		vm := w.available("web1")
		silent := vm.Holder
		d.reach = answers
		w.facts.change(silent, func(f *model.NodeFacts) { f.Peers = "10.0.0.9:16514" })
		time.Sleep(5 * time.Second)
		struck := "n1"
		if silent == struck {
			struck = "n2"
		}
		d.off = func() { w.silence(struck) }
		w.silence(silent)
		time.Sleep(model.DefaultFenceAfter + d.takes + time.Minute)
		node := w.host(silent)
		if node.Fencing.Phase != model.FencingFailed || node.Fencing.Struck != struck || w.guest(vm.ID).Holder != silent {
			t.Fatalf("%+v; the VM is held by %q", node.Fencing, w.guest(vm.ID).Holder)
		}
		d.off = nil
		time.Sleep(10 * time.Minute) // both are silent by now, and what the device says of either is true
		held, known := w.FenceHeld(silent)
		want := "perhaps switched off " + w.host(struck).Name + " in its place"
		if d.asked() != 1 || !known || !strings.Contains(held.Why, want) || !strings.Contains(held.Next, "berth node set "+node.Name+" --fence") {
			t.Errorf("asked %d times; held %t: %+v", d.asked(), known, held)
		}
		_, err := w.FenceNode(t.Context(), fencing.FenceNode{Node: silent, Caller: "ann"})
		if refusal := (*lead.Error)(nil); !errors.As(err, &refusal) || refusal.Code != lead.Conflict || !strings.Contains(refusal.Message, want) {
			t.Errorf("by hand: %v", err)
		}
		// The other one was booted, by its device or by hand: that clears nothing.
		w.speak(struck, "b2")
		time.Sleep(time.Minute)
		if w.guest(vm.ID).Holder != silent || d.asked() != 1 {
			t.Errorf("after the boot: held by %q, asked %d times", w.guest(vm.ID).Holder, d.asked())
		}
		if _, err := w.FenceNode(t.Context(), fencing.FenceNode{Node: silent, ConfirmedOff: true, Caller: "ann"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if after := w.guest(vm.ID); after.Holder == silent || after.Holder == "" {
			t.Errorf("after somebody's word: %+v", after)
		}
	})
}

// The machine that is struck was not heard when the device was asked, and came back while that was at work.
func TestADeviceThatStrikesAMachineThatHasJustComeBackIsNotBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := fencedWorld(t)
		defer w.lose()
		snapshot, asked := w.Store.Snapshot(), time.Now()
		back := model.NodeFacts{Liveness: model.Suspect, Boot: "b1", HeardAt: asked.Add(-time.Hour)}
		moment := func(at time.Duration) evidence.Moment {
			return evidence.Moment{Records: snapshot, At: asked.Add(at), Facts: func(node string) model.NodeFacts {
				if node == "n2" {
					return back
				}
				return model.NodeFacts{Liveness: model.Unreachable, Boot: "b1", HeardAt: asked.Add(-time.Hour)}
			}}
		}
		f := fencing.NewFencer(asked.Add(-time.Hour), func() string { return "id" })
		record, _ := snapshot.Node("n1")
		_, node, _ := f.Ask(record, lead.Berth, "it is silent", asked)
		f.Witness(moment(0), "n1")
		back.HeardAt = asked.Add(2 * time.Second)
		said := asked.Add(8 * time.Second)
		if wait, struck := f.Doubt(moment(8*time.Second), &node, said); !wait || struck != "" {
			t.Errorf("it waits %t, struck %q", wait, struck)
		}
		if _, struck := f.Doubt(moment(time.Hour), &node, said); struck != "node2" || node.Fencing.Struck != "n2" {
			t.Errorf("struck %q: %+v", struck, node.Fencing)
		}
	})
}

// A node that only fell silent for a while when another one's device was asked was not struck: the device is asked again.
func TestANodeThatAnswersAgainWasNotStruck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := fencedWorld(t)
		defer w.lose()
		vm := w.available("web1")
		silent := vm.Holder
		other := "n1"
		if silent == other {
			other = "n2"
		}
		d.off = func() { w.silence(other) }
		w.silence(silent)
		time.Sleep(model.DefaultFenceAfter + d.takes + 30*time.Second)
		if struck := w.host(silent).Fencing.Struck; struck != other {
			t.Fatalf("struck %q", struck)
		}
		d.off = nil
		w.speak(other, "b1")
		time.Sleep(time.Minute)
		if after := w.guest(vm.ID); !w.isFenced(silent) || after.Holder == silent || d.asked() != 2 {
			t.Errorf("asked %d times: %+v, the VM %+v", d.asked(), w.host(silent).Fencing, after)
		}
	})
}

// A leader that stood still after it had written down that a device is asked does not ask it then: the next one may be at it.
func TestADeviceIsNotAskedLate(t *testing.T) {
	at := time.Now()
	f := fencing.NewFencer(at, func() string { return "id" })
	_, node, free := f.Ask(model.Node{ID: "n1"}, lead.Berth, "it is silent", at)
	if early := f.TooLate(&node, at.Add(5*time.Second)); !free || early != "" {
		t.Errorf("free %t, too early: %s", free, early)
	}
	if late := f.TooLate(&node, at.Add(6*time.Second)); !strings.Contains(late, "stood still for 6s") {
		t.Errorf("late: %q", late)
	}
}

// Row 21: a node that was frozen, fenced by a device that lied, and thawed. It stays out, and no VM that it shows is started
// again, by nobody.
func TestANodeThatAnswersUnderItsOldBootIsNotBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := fencedWorld(t)
		defer w.lose()
		vm, plain := w.available("web1"), w.running("plain")
		if plain.Holder != vm.Holder {
			if _, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: plain.ID, Node: vm.Holder, RequestID: "m"}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			plain = w.guest(plain.ID)
			w.show(plain)
		}
		dead := vm.Holder
		w.silence(dead)
		for w.guest(vm.ID).Holder == dead || w.guest(vm.ID).Holder == "" {
			time.Sleep(time.Second)
		}
		time.Sleep(time.Second)
		w.speak(dead, "b1")
		time.Sleep(time.Minute)
		if node := w.host(dead); !node.Fenced() || w.Contradicted(dead) == "" {
			t.Fatalf("it counts again: %+v", node.Fencing)
		}
		if facts := w.facts.Facts(dead, time.Now()); w.IsOff(w.Store.Snapshot(), dead) || facts.Domain(plain.ID) == nil {
			t.Errorf("what it shows does not count: %+v", facts.Domains)
		}
		if _, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "plain", RequestID: "again"}); !isCode(err, lead.Conflict) {
			t.Errorf("a VM that it shows: %v", err)
		}
		started, err := w.StartVM(t.Context(), lifecycle.StartVM{
			Name: "new", RequestID: "new", VM: &model.VM{Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1, Kernel: "/vmlinuz"}},
		})
		if err != nil || started.Operation.Target == dead {
			t.Errorf("a new VM is started on %s: %v", started.Operation.Target, err)
		}
		left := w.guest(plain.ID)
		left.HA = true
		w.store(state.Command{VMs: []model.VM{left}}, state.Expectation{Table: state.VMs, ID: left.ID, Revision: left.Revision})
		time.Sleep(time.Hour)
		if after := w.guest(plain.ID); after.Holder != "" || !strings.Contains(after.Condition.Text, "shows a copy of it") {
			t.Errorf("restarted beside its copy: %+v", after)
		}
		if _, err := w.FenceNode(t.Context(), fencing.FenceNode{Node: dead, ConfirmedOff: true}); !isCode(err, lead.Conflict) {
			t.Errorf("fenced once more: %v", err)
		}
	})
}

func TestFencingByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := fencedWorld(t)
		defer w.lose()
		vm := w.running("web1")
		fence := func(r fencing.FenceNode) (model.Node, error) {
			r.Node, r.Caller = vm.Holder, "operator/test"
			return w.FenceNode(t.Context(), r)
		}
		if _, err := fence(fencing.FenceNode{}); !isCode(err, lead.Conflict) || !strings.Contains(err.Error(), "VM web1 would lose its power") {
			t.Errorf("a node that is up: %v", err)
		}
		if _, err := fence(fencing.FenceNode{ConfirmedOff: true, Force: true}); !isCode(err, lead.Conflict) {
			t.Errorf("a node that is up, said to be off: %v", err)
		}
		if _, err := w.FenceNode(t.Context(), fencing.FenceNode{Node: "n9"}); !isCode(err, lead.NotFound) {
			t.Errorf("no node: %v", err)
		}
		w.silence(vm.Holder)
		d.fail = errors.New("no route to host")
		if _, err := fence(fencing.FenceNode{}); !isCode(err, lead.Unavailable) || !strings.Contains(err.Error(), "no route to host") {
			t.Errorf("no proof: %v", err)
		}
		if _, err := w.NodePower(t.Context(), vm.Holder); !isCode(err, lead.Unavailable) {
			t.Errorf("its power state: %v", err)
		}
		if w.guest(vm.ID).Holder == "" {
			t.Fatal("without a proof its VMs were taken from it")
		}
		d.fail = nil
		var wait sync.WaitGroup
		for range 3 { // as one: the device is asked once
			wait.Go(func() {
				if node, err := fence(fencing.FenceNode{}); err != nil || !node.Fenced() || node.Fencing.Caller != "operator/test" {
					t.Errorf("fenced: %+v, %v", node.Fencing, err)
				}
			})
		}
		wait.Wait()
		if d.asked() != 2 || d.most != 1 {
			t.Errorf("the device was asked %d times, %d at once", d.asked(), d.most)
		}
		time.Sleep(5 * time.Second)
		if after := w.guest(vm.ID); after.Holder != "" {
			t.Errorf("its VM: %+v", after)
		}
		if starts := w.agents.ordered(operation.ActStart); len(starts) != 1 {
			t.Error("a VM without HA was restarted")
		}
	})
}

func TestAnOperatorsWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := fencedWorld(t)
		defer w.lose()
		vm := w.available("web1")
		w.device(vm.Holder, model.FenceDevice{Method: model.FenceManual})
		w.silence(vm.Holder)
		if _, err := w.FenceNode(t.Context(), fencing.FenceNode{Node: vm.Holder}); !isCode(err, lead.Conflict) {
			t.Errorf("without a device: %v", err)
		}
		node, err := w.FenceNode(t.Context(), fencing.FenceNode{Node: vm.Holder, ConfirmedOff: true, Caller: "operator/test"})
		if err != nil || !node.Fenced() || node.Fencing.Method != model.FenceManual {
			t.Fatalf("%+v, %v", node.Fencing, err)
		}
		time.Sleep(10 * time.Second)
		if after := w.guest(vm.ID); after.Holder == "" || after.Holder == vm.Holder || d.asked() != 0 {
			t.Errorf("not restarted: %+v, the device was asked %d times", after, d.asked())
		}
	})
}

// The power of a node that is up is cut by force: what was heard before the proof does not contradict it.
func TestANodeThatIsUpIsSwitchedOffByForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := fencedWorld(t)
		defer w.lose()
		vm := w.available("web1")
		d.off = func() { // its session is open still
			w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.Liveness, f.HeardAt = model.Suspect, time.Now() })
		}
		if _, err := w.FenceNode(t.Context(), fencing.FenceNode{Node: vm.Holder, Force: true}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if after := w.guest(vm.ID); after.Holder == "" || after.Holder == vm.Holder {
			t.Errorf("not restarted: %+v", after)
		}
	})
}

func TestAWatchdogProvesByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := fencedWorld(t)
		vm := w.available("web1")
		w.device(vm.Holder, model.FenceDevice{Method: model.FenceWatchdog})
		w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.Watchdog, f.HeardAt = 30*time.Second, time.Now() })
		time.Sleep(5 * time.Second)
		if w.host(vm.Holder).Watchdog != 0 {
			t.Fatalf("armed by no lease of this leader: %+v", w.host(vm.Holder))
		}
		w.Leased(vm.Holder, true)
		time.Sleep(5 * time.Second)
		if w.host(vm.Holder).Watchdog != 30*time.Second {
			t.Fatalf("its watchdog is not written down: %+v", w.host(vm.Holder))
		}
		w.Leased(vm.Holder, true)
		w.silence(vm.Holder)
		time.Sleep(evidence.LeaseDuration)
		w.lose()
		w.lead(2) // which does not know when the last lease was given, and so counts from now
		defer w.lose()
		time.Sleep(evidence.LeaseDuration + 30*time.Second + evidence.WatchdogMargin - 2*time.Second)
		if w.isFenced(vm.Holder) {
			t.Fatal("it is proven off before its watchdog must have fired")
		}
		time.Sleep(10 * time.Second)
		if after := w.guest(vm.ID); !w.isFenced(vm.Holder) || after.Holder == "" || after.Holder == vm.Holder || d.asked() != 0 {
			t.Errorf("%+v, %+v", w.host(vm.Holder).Fencing, after)
		}
	})
}

func TestRestartsThatDoNotHelpComeToRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := fencedWorld(t)
		defer w.lose()
		vm := w.available("web1")
		gone := func() { // as the evidence of a living node would have it
			vm := w.guest(vm.ID)
			for _, id := range []string{"n1", "n2", "n3"} {
				w.facts.change(id, func(f *model.NodeFacts) {
					f.Domains = slices.DeleteFunc(f.Domains, func(d model.Domain) bool { return d.UUID == vm.ID })
				})
			}
			vm.Holder, vm.Condition.Text = "", "it crashed"
			w.store(state.Command{VMs: []model.VM{vm}}, state.Expectation{Table: state.VMs, ID: vm.ID, Revision: vm.Revision})
		}
		for i := range evidence.MaxRestarts {
			gone()
			time.Sleep(10 * time.Second)
			if after := w.guest(vm.ID); after.Holder == "" || after.Restarts != i+1 {
				t.Fatalf("restart %d: %+v", i+1, after)
			}
		}
		gone()
		time.Sleep(evidence.RestartWindow / 2)
		if after := w.guest(vm.ID); after.Holder != "" || !strings.Contains(after.Condition.Text, "it was restarted 3 times") {
			t.Fatalf("after the last: %+v", after)
		}
		time.Sleep(evidence.RestartWindow)
		if after := w.guest(vm.ID); after.Holder == "" || after.Restarts != evidence.MaxRestarts+1 {
			t.Fatalf("after its rest: %+v", after)
		}
		gone()
		if _, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "web1", RequestID: "by hand"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if after := w.guest(vm.ID); after.Restarts != 0 || after.Holder == "" {
			t.Errorf("started by hand: %+v", after)
		}
	})
}

func TestAVMThatFitsNowhereIsNamedAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := fencedWorld(t)
		defer w.lose()
		vm := w.available("web1")
		for _, id := range []string{"n1", "n2", "n3"} {
			w.facts.change(id, func(f *model.NodeFacts) {
				if id != vm.Holder {
					f.Memory = units.GiB
				}
			})
		}
		w.silence(vm.Holder)
		time.Sleep(30 * time.Minute)
		after := w.guest(vm.ID)
		if after.Holder != "" || !strings.HasPrefix(after.Condition.Text, "it cannot be restarted: ") {
			t.Fatalf("%+v", after)
		}
		if alarms := strings.Count(w.toldOf("vm/web1"), "vm.not-restarted"); alarms != 1 {
			t.Errorf("%d alarms", alarms)
		}
		if n := len(w.Store.Snapshot().Decisions(100)); n > 3 {
			t.Errorf("%d decisions are kept of one VM that fits nowhere", n)
		}
		w.facts.change(other(vm.Holder), func(f *model.NodeFacts) { f.Memory = 8 * units.GiB })
		time.Sleep(time.Minute)
		if after := w.guest(vm.ID); after.Holder != other(vm.Holder) || after.Condition.Text != "" {
			t.Errorf("once there is room: %+v", after)
		}
	})
}

// memoryOfOne is that of a node with room for one of the VMs below.
const memoryOfOne = units.GiB + 9*units.GiB/4

// prioritised runs VMs with HA on n1.
func (w *world) prioritised(sizes map[model.RestartPriority]units.Bytes) map[model.RestartPriority]model.VM {
	w.Helper()
	vms := map[model.RestartPriority]model.VM{}
	for priority, memory := range sizes {
		started, err := w.StartVM(w.Context(), lifecycle.StartVM{
			Name: "vm-" + string(priority) + "x", RequestID: "start " + string(priority), Caller: "operator/test", Node: "n1",
			VM: &model.VM{Spec: model.VMSpec{Memory: memory, VCPUs: 1, Kernel: "/k"}, HA: true, RestartPriority: priority},
		})
		if err != nil {
			w.Fatal(err)
		}
		synctest.Wait()
		vms[priority] = w.guest(started.VM.ID)
		w.show(vms[priority])
	}
	return vms
}

func TestTheHighestPriorityGetsTheRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := fencedWorld(t)
		defer w.lose()
		vms := w.prioritised(map[model.RestartPriority]units.Bytes{
			model.RestartHigh: 3 * units.GiB / 2, model.RestartNormal: 2 * units.GiB, model.RestartLow: 17 * units.GiB / 8,
		})
		room := func(id string, memory units.Bytes) {
			w.facts.change(id, func(f *model.NodeFacts) { f.Memory = memory })
		}
		room("n2", memoryOfOne)
		room("n3", units.GiB)
		w.silence("n1")
		holders := func() string {
			var all []string
			for _, priority := range []model.RestartPriority{model.RestartHigh, model.RestartNormal, model.RestartLow} {
				vm := w.guest(vms[priority].ID)
				if all = append(all, vm.Holder); vm.Holder != "" {
					w.show(vm)
				}
			}
			return strings.Join(all, " ")
		}
		for _, step := range []struct {
			node string
			want string
		}{{"", "n2  "}, {"n3", "n2 n3 "}} {
			if step.node != "" {
				room(step.node, memoryOfOne)
			}
			time.Sleep(5 * time.Minute)
			if got := holders(); got != step.want {
				t.Fatalf("high, normal and low run on %q, want %q", got, step.want)
			}
		}
		room("n2", 2*memoryOfOne)
		time.Sleep(time.Minute)
		if got := holders(); got != "n2 n3 n2" {
			t.Errorf("with room for all they run on %q", got)
		}
	})
}

// A VM that needs another one is started after that, and without it when it does not come.
func TestAVMIsStartedInItsOrder(t *testing.T) {
	for _, comes := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w, _ := fencedWorld(t)
			defer w.lose()
			w.store(state.RaiseLevel(state.FeatureLevel))
			vms := w.prioritised(map[model.RestartPriority]units.Bytes{model.RestartHigh: units.GiB / 4, model.RestartNormal: 2 * units.GiB})
			app, db := vms[model.RestartHigh], vms[model.RestartNormal]
			app.RestartAfter, db.Labels = []string{"db"}, []string{"db"}
			for _, vm := range []model.VM{app, db} {
				w.store(state.Command{VMs: []model.VM{vm}}, state.Expectation{Table: state.VMs, ID: vm.ID, Revision: vm.Revision})
			}
			for _, id := range []string{"n2", "n3"} {
				w.facts.change(id, func(f *model.NodeFacts) { f.Memory = 2 * units.GiB })
			}
			w.silence("n1")
			time.Sleep(5 * time.Minute)
			if is := w.guest(app.ID); is.Holder != "" || !is.Condition.Is(model.RestartBehind) || w.guest(db.ID).Holder != "" {
				t.Fatalf("the other one has no room: %+v", is)
			}
			if alarms := strings.Count(w.toldOf("vm/"+app.Name), "vm.not-restarted"); alarms != 1 {
				t.Errorf("%d alarms", alarms)
			}
			if comes {
				w.facts.change("n2", func(f *model.NodeFacts) { f.Memory = 8 * units.GiB })
			} else {
				time.Sleep(evidence.BehindPatience)
			}
			time.Sleep(time.Minute)
			is, other := w.guest(app.ID), w.guest(db.ID)
			if is.Holder == "" || is.Condition.Text != "" || (other.Holder != "") != comes || comes && is.StartedAt.Before(other.StartedAt) {
				t.Errorf("comes %t: %+v, started %s after the other", comes, is, is.StartedAt.Sub(other.StartedAt))
			}
		})
	}
}

// While the state changes under the decision nobody knows whether a VM could start: those behind it do not take its room.
func TestNoVMOvertakesAnUndecidedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := fencedWorld(t)
		defer w.lose()
		vms := w.prioritised(map[model.RestartPriority]units.Bytes{model.RestartHigh: 2 * units.GiB, model.RestartLow: 2 * units.GiB})
		w.facts.change("n2", func(f *model.NodeFacts) { f.Memory = memoryOfOne })
		w.facts.change("n3", func(f *model.NodeFacts) { f.Memory = units.GiB })
		high, low := vms[model.RestartHigh].ID, vms[model.RestartLow].ID
		changes := 0
		w.log.before = func(command state.Command) {
			if len(command.Operations) == 0 || command.VMs[0].ID != high || changes == 5 {
				return
			}
			changes++
			vm := w.guest(high)
			vm.Description = strings.Repeat("x", changes)
			w.store(state.Command{VMs: []model.VM{vm}}, state.Expectation{Table: state.VMs, ID: vm.ID, Revision: vm.Revision})
		}
		w.silence("n1")
		time.Sleep(5 * time.Minute)
		if changes != 5 || w.guest(high).Holder != "n2" || w.guest(low).Holder != "" {
			t.Errorf("after %d changes the high one is on %q, the low one on %q", changes, w.guest(high).Holder, w.guest(low).Holder)
		}
	})
}

func TestThePriorityComesFirstThenTheLargestVM(t *testing.T) {
	vms := []model.VM{
		{ID: "a", HA: true, Desired: model.Running, Spec: model.VMSpec{Memory: 1}},
		{ID: "b", HA: true, Desired: model.Running, Spec: model.VMSpec{Memory: 3}},
		{ID: "c", HA: true, Desired: model.Running, Spec: model.VMSpec{Memory: 2}, Holder: "n1"},
		{ID: "d", HA: true, Desired: model.Stopped, Spec: model.VMSpec{Memory: 2}},
		{ID: "e", Desired: model.Running, Spec: model.VMSpec{Memory: 2}},
		{ID: "f", HA: true, Desired: model.Running, Operation: "o", Spec: model.VMSpec{Memory: 2}},
		{ID: "g", HA: true, Desired: model.Running, Spec: model.VMSpec{Memory: 3}},
		{ID: "h", HA: true, Desired: model.Running, RestartPriority: model.RestartLow, Spec: model.VMSpec{Memory: 9}},
		{ID: "i", HA: true, Desired: model.Running, RestartPriority: model.RestartHigh, Spec: model.VMSpec{Memory: 1}},
		{ID: "j", HA: true, Desired: model.Running, RestartPriority: model.RestartHigh, Spec: model.VMSpec{Memory: 2}},
	}
	ready, _ := evidence.Restartable(vms, time.Now(), func(vm *model.VM) bool { return vm.HA })
	var ids []string
	for i := range ready {
		ids = append(ids, ready[i].ID)
	}
	if got := strings.Join(ids, ""); got != "jibgah" {
		t.Errorf("%s are restarted", got)
	}
}

func (w *world) isFenced(id string) bool {
	node := w.host(id)
	return node.Fenced()
}
