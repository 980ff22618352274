package control

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/answering"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/schema"
	"berth/coordinator/state"
	"berth/shared/units"
)

// atOnce is what a node may cause to be committed at once by what it says unasked; then it is one a second.
const atOnce = 1024

// left is what is left of that for a node. Nothing is after it was asked.
func (w *world) left(node string) (left int) {
	for w.Spend(node) {
		left++
	}
	return left
}

// A node says all the time that its guest has other disks. Each time that would be written down, with an event of its own.
func TestAGuestThatChangesAllTheTimeIsWrittenDownSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.withImage(diskAt("vda", image))
		w.changedTo(vm, diskAt("vda", image))
		if had := w.left(vm.Holder); had < atOnce-5 {
			t.Fatalf("the test is worth nothing: %d commits were left", had)
		}
		before := w.guest(vm.ID).Revision
		const flips = 60
		for i := range flips {
			w.runsWith(vm, diskAt("vda", []string{overlay, attached}[i%2]))
			w.facts.mu.Lock()
			w.facts.changed = append(w.facts.changed, model.ToldDevices{VM: vm.ID, Node: vm.Holder, Epoch: vm.Epoch})
			w.facts.mu.Unlock()
			time.Sleep(500 * time.Millisecond)
		}
		if wrote := len(w.told("vm.changed-beside")); wrote > flips/2+2 {
			t.Errorf("%d of %d changes within %d seconds were written down", wrote, flips, flips/2)
		}
		w.changedTo(vm, diskAt("vda", overlay))
		time.Sleep(5 * time.Second)
		if is := w.guest(vm.ID); is.Revision == before || len(is.Edits()) != 1 {
			t.Errorf("what it has in the end is not written down: %+v", is.Drift)
		}
	})
}

// A node shows others' guests and hides them again. That is told at its own expense: what happens to theirs later is written down as ever.
func TestANodeThatLiesAboutOthersGuestsTakesNothingFromThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		available := 64 * units.GiB
		w.facts.change("n1", func(f *model.NodeFacts) { f.Memory, f.Available = available, &available })
		var vms []model.VM
		for i := range 10 {
			vms = append(vms, w.on("n1", fmt.Sprint("web", i), 1))
		}
		time.Sleep(time.Minute)
		for range 300 {
			for _, vm := range vms {
				w.shows("n2", vm, nil)
			}
			time.Sleep(2 * time.Second)
			for _, vm := range vms {
				w.facts.change("n2", without(vm.ID))
			}
			time.Sleep(3 * time.Second)
		}
		if told := len(w.told("vm.runs-twice")); told < 300 {
			t.Errorf("the test is worth nothing: it was told %d times", told)
		}
		if left := w.left("n2"); left > atOnce/2 {
			t.Errorf("the liar has %d commits left", left)
		}
		if left := w.left("n1"); left < atOnce-20 {
			t.Errorf("of those of the node that it lies about %d are left", left)
		}
	})
}

// site makes the world one of ten nodes, of which the first says that it has much more memory than the others. Starts go where most is
// free.
func (w *world) site() {
	w.Helper()
	w.store(state.RaiseLevel(state.FeatureLevel))
	w.put(model.Resource{
		ID: "policy-roomy", Kind: model.KindPolicy, Name: "roomy", Settings: map[string]string{schema.SettingGate: "off"},
		Lists: map[string][]string{schema.ListWeighers: {"memory-free=1"}},
	})
	record := defaultCluster(nil)
	record.Links = map[string]string{schema.LinkPolicy: "policy-roomy"}
	w.put(record)
	w.facts.change("n1", func(f *model.NodeFacts) {
		available := 640 * units.GiB
		f.Memory, f.Available, f.CPUs = available, &available, 400
	})
	for i := 2; i <= 10; i++ {
		id := fmt.Sprint("n", i)
		w.facts.mu.Lock()
		one := w.facts.nodes["n3"]
		w.facts.nodes[id] = one
		w.facts.mu.Unlock()
		if i > 3 {
			w.store(state.Command{
				Nodes: []model.Node{{ID: id, Name: fmt.Sprint("node", i), Cluster: model.DefaultCluster, EnrolledAt: time.Now()}},
			}, state.Expectation{Table: state.Nodes, ID: id})
		}
	}
}

// mute are agents of which some answer nothing while that is so.
func mute(is func(order operation.Order) bool) func(operation.Order) *operation.Answer {
	return func(order operation.Order) *operation.Answer {
		if is(order) {
			return nil
		}
		return obedient(order)
	}
}

// marked tells whether a node draws no starts.
func (w *world) marked(node string) bool {
	record, _ := w.Store.Snapshot().Node(node)
	return record.Unanswered.Holds()
}

// begin starts VMs that nobody has named a node for.
func (w *world) begin(prefix string, count int) (operations []string) {
	w.Helper()
	for i := range count {
		started, err := w.start(fmt.Sprint(prefix, i))
		if err != nil {
			w.Fatal(err)
		}
		operations = append(operations, started.Operation.ID)
	}
	synctest.Wait()
	return operations
}

// A node says that it has the most memory of ten, and never answers. It gets what one node works on at a time and no more; all other starts
// come to their end within the patience with it and a look, also those that waited for their turn there.
func TestANodeThatNeverAnswersDrawsNoMoreStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, mute(func(order operation.Order) bool { return order.Node == "n1" }))
		defer w.lose()
		w.site()
		first := w.begin("first", 12)
		for i, id := range first {
			if op := w.operation(id); op.Target != "n1" || (op.Phase == operation.Queued) != (i >= model.DefaultParallelStarts) {
				t.Fatalf("the test is worth nothing: start %d is %s on %s", i, op.Phase, op.Target)
			}
		}
		time.Sleep(answering.Patience - 2*time.Second)
		if w.marked("n1") {
			t.Error("it was marked too early")
		}
		time.Sleep(4 * time.Second)
		if !w.marked("n1") || len(w.told("node.unanswering")) != 1 {
			t.Fatalf("it is not marked: %+v", w.told("node.unanswering"))
		}
		for i, id := range first {
			op := w.operation(id)
			if ran := op.Result == operation.Done && op.Target != "n1" && op.Attempt == 1; ran != (i >= model.DefaultParallelStarts) {
				t.Errorf("start %d: %s %s on %s, attempt %d: %v", i, op.Phase, op.Result, op.Target, op.Attempt, op.Evidence)
			}
		}
		for _, id := range w.begin("later", 20) {
			if op := w.operation(id); op.Result != operation.Done || op.Target == "n1" {
				t.Errorf("a later start is %s on %s", op.Phase, op.Target)
			}
		}
		time.Sleep(time.Hour)
		if begun := w.begun("n1"); len(begun) != model.DefaultParallelStarts || !w.marked("n1") {
			t.Errorf("within an hour it got %d starts, and is marked: %t", len(begun), w.marked("n1"))
		}
		for _, id := range first[:model.DefaultParallelStarts] {
			if op := w.operation(id); op.Phase != operation.Dispatched || op.Target != "n1" {
				t.Errorf("an order that was given went elsewhere: %+v", op)
			}
		}
		request := wanted("named", units.GiB)
		request.Node = "n1"
		named, err := w.StartVM(t.Context(), request)
		if err != nil || named.Operation.Target != "n1" {
			t.Errorf("a start that names it: %+v, %v", named.Operation, err)
		}
	})
}

// Of a slow node the first answer is enough. One that does so again and again stays out for longer.
func TestASlowNodeIsBackAtItsFirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, mute(func(order operation.Order) bool { return order.Node == "n1" }))
		defer func() { w.lose() }()
		w.site()
		ops := w.begin("vm", 3)
		time.Sleep(answering.Patience + 2*time.Second)
		if !w.marked("n1") {
			t.Fatal("it is not marked")
		}
		w.finish(w.operation(ops[0]).VM)
		time.Sleep(2 * time.Second)
		if w.marked("n1") || len(w.told("node.answering")) != 1 {
			t.Errorf("it has answered, and is marked: %t, %+v", w.marked("n1"), w.told("node.answering"))
		}
		time.Sleep(answering.Patience)
		if !w.marked("n1") {
			t.Fatal("it is not marked again")
		}
		w.finish(w.operation(ops[1]).VM)
		time.Sleep(30 * time.Second)
		if !w.marked("n1") {
			t.Error("it is back within the first minute of its second mark")
		}
		time.Sleep(30 * time.Second)
		if w.marked("n1") {
			t.Error("it is out for more than a minute")
		}
		w.lose() // a new leader counts from its own beginning
		w.lead(2)
		time.Sleep(answering.Patience - 2*time.Second)
		if w.marked("n1") {
			t.Error("the new leader has not waited")
		}
		time.Sleep(4 * time.Second)
		if !w.marked("n1") {
			t.Error("the new leader does not mark it")
		}
	})
}

// Many nodes that do not answer have something in common that hangs. None is marked then, nor one while no other is in order.
func TestManyNodesThatDoNotAnswerAreNotMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, silent)
		defer w.lose()
		w.site()
		for _, node := range []string{"n2", "n3", "n4", "n5"} {
			request := wanted("on-"+node, units.GiB)
			request.Node = node
			if _, err := w.StartVM(t.Context(), request); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Minute)
		for i := range 10 {
			if w.marked(fmt.Sprint("n", i+1)) {
				t.Errorf("node%d is marked", i+1)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, silent)
		defer w.lose()
		w.store(state.RaiseLevel(state.FeatureLevel))
		for _, node := range []string{"n2", "n3"} {
			w.facts.change(node, func(f *model.NodeFacts) { f.Liveness = model.Unreachable })
		}
		w.begin("vm", 1)
		time.Sleep(10 * time.Minute)
		if w.marked("n1") {
			t.Error("the only node that is in order is marked")
		}
		w.facts.change("n2", func(f *model.NodeFacts) { f.Liveness = model.Up })
		time.Sleep(time.Minute)
		if !w.marked("n1") {
			t.Error("it is not marked when another one is in order")
		}
		w.facts.change("n2", func(f *model.NodeFacts) { f.Liveness = model.Unreachable })
		time.Sleep(time.Minute)
		if w.marked("n1") {
			t.Error("it is marked, and no other one is in order")
		}
	})
}

// A node that was not heard has not been silent about its starts: it is counted from when it is heard. Who breaks its session again and
// again gains some minutes by that.
func TestSilenceOfStartsCountsWhileTheNodeIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, mute(func(order operation.Order) bool { return order.Node == "n1" }))
		defer w.lose()
		w.site()
		hears := func(is model.Liveness) { w.facts.change("n1", func(f *model.NodeFacts) { f.Liveness = is }) }
		w.begin("vm", 1)
		time.Sleep(answering.Patience / 2)
		hears(model.Unreachable)
		time.Sleep(10 * time.Minute)
		hears(model.Up)
		time.Sleep(answering.Patience - 2*time.Second)
		if w.marked("n1") {
			t.Error("it is marked for the time in which it was not heard")
		}
		flaps := 0
		for ; flaps < 30 && !w.marked("n1"); flaps++ {
			hears(model.Suspect)
			time.Sleep(2 * time.Second)
			hears(model.Up)
			time.Sleep(30 * time.Second)
		}
		if flaps < 5 || flaps > 12 {
			t.Errorf("it is marked after %d sessions of half a minute", flaps)
		}
	})
}

// A new boot ends a mark, and so does the end of all that the node was ordered. Volumes may take minutes to be made.
func TestWhatElseEndsAMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, mute(func(order operation.Order) bool { return order.Node == "n1" }))
		defer w.lose()
		w.site()
		w.facts.change("n1", func(f *model.NodeFacts) { f.HeardAt = time.Now() })
		w.begin("vm", 1)
		time.Sleep(answering.Patience + 2*time.Second)
		if !w.marked("n1") {
			t.Fatal("it is not marked")
		}
		w.facts.change("n1", func(f *model.NodeFacts) { f.Boot = "b2" })
		time.Sleep(3 * time.Second)
		if w.marked("n1") {
			t.Error("it is marked after its host has booted anew")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, mute(func(order operation.Order) bool { return order.Node == "n1" }))
		defer w.lose()
		w.site()
		w.put(pools()...)
		started := w.must(disked("p-fast"))
		if op := w.operation(started.Operation.ID); op.Target != "n1" || len(op.Volumes) == 0 {
			t.Fatalf("the test is worth nothing: %+v", op)
		}
		time.Sleep(answering.LongPatience - 2*time.Second)
		if w.marked("n1") {
			t.Error("it had no time to make a volume")
		}
		time.Sleep(4 * time.Second)
		if !w.marked("n1") {
			t.Error("it is not marked for a start with a volume")
		}
		step := w.operation(started.Operation.ID)
		w.Answered(operation.Answer{
			Operation: step.ID, Node: "n1", Step: step.Step, Outcome: operation.OutcomeAmbiguous,
			Seen: operation.Observation{State: model.DomainUnknown},
		})
		time.Sleep(time.Minute)
		if op := w.operation(started.Operation.ID); op.Phase != operation.Judging || !w.marked("n1") {
			t.Errorf("that it cannot tell is no answer: the start is %s, and the node marked: %t", op.Phase, w.marked("n1"))
		}
	})
}
