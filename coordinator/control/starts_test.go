package control

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/shared/units"
)

// begun are the VMs that a node was told to start, in the order of their first order.
func (w *world) begun(node string) (vms []string) {
	told := map[string]bool{}
	for _, order := range w.agents.ordered(operation.ActStart) {
		if order.Node == node && !told[order.VM] {
			told[order.VM] = true
			vms = append(vms, order.VM)
		}
	}
	return vms
}

// finish has the node say that the VM runs.
func (w *world) finish(vm string) {
	w.Helper()
	op, live := w.Store.Snapshot().LiveOperationOf(vm)
	if !live {
		w.Fatalf("nothing works on VM %s", vm)
	}
	w.facts.carryOut(operation.Order{Node: op.Target, Action: operation.ActStart, VM: vm, VMName: op.VMName, Epoch: op.Epoch})
	w.Answered(operation.Answer{
		Operation: op.ID, Node: op.Target, Step: op.Step, Outcome: operation.OutcomeDone,
		Seen: operation.Observation{State: model.DomainRunning, Epoch: op.Epoch},
	})
	synctest.Wait()
}

// lastOf is the last event of a kind.
func (w *world) lastOf(kind string) (last model.Event) {
	for _, event := range w.told(kind) {
		last = event
	}
	return last
}

// away says whether a node's agent cannot be reached.
func (w *world) away(node string, is bool) {
	w.agents.mu.Lock()
	defer w.agents.mu.Unlock()
	w.agents.away[node] = is
}

// A node starts five VMs at a time. Who comes later keeps the room, is told what it waits for, and goes in the order in which
// it came, under whichever leader.
func TestANodeStartsAFewVMsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := crowd(t, silent)
		defer func() { w.lose() }()
		var requests []lifecycle.StartVM
		for i := range 10 {
			request := wanted(fmt.Sprintf("vm%d", i), 256*units.MiB)
			request.Node = "n1"
			requests = append(requests, request)
		}
		started := w.ask(requests...)
		started = append(started, w.ask(func() lifecycle.StartVM { r := wanted("late", 256*units.MiB); r.Node = "n1"; return r }())...)
		synctest.Wait()
		for i, one := range started {
			op := one.started.Operation
			queued := op.Phase == operation.Queued && op.Message == fmt.Sprintf("waits for its turn: %d other starts come first on node1", i)
			if one.err != nil || op.Target != "n1" || queued != (i >= model.DefaultParallelStarts) {
				t.Errorf("start %d: %s, %q, %v", i, op.Phase, op.Message, one.err)
			}
		}
		if begun := w.begun("n1"); len(begun) != model.DefaultParallelStarts {
			t.Fatalf("%d VMs start at once", len(begun))
		}
		free, err := w.StartVM(t.Context(), func() lifecycle.StartVM { r := wanted("elsewhere", units.GiB); r.Node = "n2"; return r }())
		if err != nil || free.Operation.Phase != operation.Dispatched {
			t.Errorf("another node's start: %+v, %v", free.Operation, err)
		}

		w.finish(started[2].started.VM.ID)
		if begun := w.begun("n1"); len(begun) != 6 || begun[5] != started[5].started.VM.ID {
			t.Errorf("after one has started: %v", begun)
		}
		if event := w.lastOf("vm.start"); event.Message != "starts on node1, after waiting 0s for its turn" {
			t.Errorf("it is told as %+v", event)
		}

		if _, err := w.CancelOperation(t.Context(), started[6].started.Operation.ID, "operator/test"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if op, _ := w.Store.Snapshot().Operation(
			started[6].started.Operation.ID,
		); op.Result != operation.Failed || op.Message != "cancelled while it waited for its turn" {
			t.Errorf("cancelled: %+v", op)
		}

		w.lose()
		w.lead(2)
		time.Sleep(time.Minute)
		if begun := w.begun("n1"); len(begun) != 6 {
			t.Errorf("the next leader lets %d VMs start", len(begun)-1)
		}
		record := model.DefaultClusterRecord()
		record.Settings = map[string]string{model.SettingParallelStarts: "6"}
		w.put(record)
		time.Sleep(operation.ResendEvery)
		synctest.Wait()
		if begun := w.begun("n1"); len(begun) != 7 || begun[6] != started[7].started.VM.ID {
			t.Errorf("with six at a time: %v", begun)
		}
		for _, i := range []int{0, 1, 3, 4, 5, 7, 8, 9, 10} {
			w.finish(started[i].started.VM.ID)
		}
		if live := w.Store.Snapshot().LiveOperations(); len(live) != 1 { // the other node's
			t.Errorf("left are %+v", live)
		}
	})
}

// A start whose node fails waits for its turn on the next one too, behind those that came there before it.
func TestAStartThatIsPlacedAgainQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := crowd(t, func(order operation.Order) *operation.Answer {
			if order.Node == "n1" {
				return &operation.Answer{Outcome: operation.OutcomeFailed, Code: "no_memory", Error: "no memory"}
			}
			return nil
		})
		defer w.lose()
		w.facts.change("n3", func(f *model.NodeFacts) { f.Liveness = model.Unreachable })
		w.facts.change("n1", func(f *model.NodeFacts) { f.Liveness = model.Unreachable })
		var filling []lifecycle.StartVM
		for i := range model.DefaultParallelStarts {
			filling = append(filling, wanted(fmt.Sprintf("vm%d", i), 256*units.MiB))
		}
		first := w.ask(filling...)
		w.facts.change("n1", func(f *model.NodeFacts) { f.Liveness = model.Up })
		w.facts.change("n2", func(f *model.NodeFacts) { f.Liveness = model.Unreachable })
		w.away("n1", true)
		started, err := w.StartVM(t.Context(), wanted("web", 256*units.MiB))
		if err != nil || started.Operation.Target != "n1" {
			t.Fatalf("%+v, %v", started.Operation, err)
		}
		w.facts.change("n2", func(f *model.NodeFacts) { f.Liveness = model.Up })
		w.away("n1", false)
		w.AgentConnected("n1")
		synctest.Wait()
		op, _ := w.Store.Snapshot().Operation(started.Operation.ID)
		if op.Phase != operation.Queued || op.Target != "n2" || len(w.begun("n2")) != len(filling) {
			t.Fatalf("placed again: %+v", op)
		}
		if event := w.lastOf("vm.placed"); event.Message != "is to start on node2 after: no memory; waits for its turn: 5 other starts come "+
			"first on node2" {
			t.Errorf("it is told as %+v", event)
		}
		w.finish(first[0].started.VM.ID)
		if begun := w.begun("n2"); len(begun) != len(filling)+1 || begun[len(filling)] != started.VM.ID {
			t.Errorf("after one has started: %v", begun)
		}
	})
}
