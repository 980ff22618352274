package agents

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
)

func (r *rig) change(t *testing.T, id string, change func(*model.Node)) {
	t.Helper()
	node, _ := r.store.Snapshot().Node(id)
	expected := node.Revision
	change(&node)
	r.apply(t, state.Command{
		Key: fmt.Sprint("change ", r.index), Kind: "test", Caller: "test", At: time.Now(), Nodes: []model.Node{node},
		Expect: []state.Expectation{{Table: state.Nodes, ID: id, Revision: expected}},
	})
}

// leases are those among what an agent has heard.
func leases(a *agent) []*berthv1.Lease {
	var found []*berthv1.Lease
	for _, message := range a.heard() {
		if lease := message.GetLease(); lease != nil {
			found = append(found, lease)
		}
	}
	return found
}

func TestLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "n1", "n2")
		r.Lead(3)
		defer r.Stop()
		r.change(t, "n1", func(n *model.Node) { n.Fence.Method = model.FenceWatchdog })
		r.apply(t, state.Command{
			Key: "vm", Kind: "test", Caller: "test", At: time.Now(), Expect: []state.Expectation{{Table: state.VMs, ID: "v1"}},
			VMs: []model.VM{{ID: "v1", Name: "v1", HA: true, Desired: model.Running, Holder: "n1"}},
		})
		var leads atomic.Bool
		var mu sync.Mutex
		counts := map[string]int{}
		told := func(what string) int {
			mu.Lock()
			defer mu.Unlock()
			return counts[what]
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.GiveLeases(ctx, Leases{
				Lasts: time.Minute,
				Verify: func(context.Context) error {
					if leads.Load() {
						return nil
					}
					return errors.New("no majority")
				},
				Given: func(node string, leased bool) {
					mu.Lock()
					defer mu.Unlock()
					counts[fmt.Sprint(node, " ", leased)]++
				},
			})
		}()
		one, two := r.dial("n1"), r.dial("n2")
		for _, a := range []*agent{one, two} {
			a.hello()
		}
		leads.Store(true)
		time.Sleep(10*time.Second + leaseEvery/2) // between two looks
		if got := leases(one); len(got) != 0 {
			t.Fatalf("a node that has reported nothing got %v", got)
		}
		one.telemetry()
		two.telemetry()
		time.Sleep(leaseEvery)
		synctest.Wait()
		if got := leases(one); len(got) != 1 || got[0].GetSeconds() != 60 || got[0].GetSequence() != one.sequence || told("n1 true") != 1 {
			t.Fatalf("after its report it got %v, %d were told of", got, told("n1 true"))
		}
		leads.Store(false)
		time.Sleep(10 * time.Second)
		if got := leases(one); len(got) != 0 || told("n1 true") != 1 {
			t.Fatalf("from a leader that may lead no more it got %v", got)
		}
		leads.Store(true)
		one.say(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Telemetry{Telemetry: &berthv1.NodeTelemetry{WatchdogSeconds: 30}}})
		synctest.Wait()
		r.change(t, "n1", func(n *model.Node) { n.Fence.Method = model.FenceNone })
		time.Sleep(leaseEvery)
		synctest.Wait()
		if got := leases(one); len(got) != 1 || got[0].GetSeconds() != 0 || told("n1 false") != 1 {
			t.Errorf("a node that needs none any more got %v", got)
		}
		if got := leases(two); len(got) != 0 || told("n2 true")+told("n2 false") != 0 {
			t.Errorf("a node that never needed one got %v", got)
		}
		cancel()
		<-done
		one.hangUp()
		two.hangUp()
		<-one.result
		<-two.result
	})
}

// Which machine an order would reach is not known of a node that two say they are, and whose answer comes is not known either.
func TestAHeldNodeGetsNoOrders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "n1")
		r.Lead(3)
		defer r.Stop()
		a := r.dial("n1")
		a.hello()
		synctest.Wait()
		order := operation.Order{Node: "n1", Operation: "o", Action: operation.ActInspect, VM: "v"}
		answered := func() int {
			a.say(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Result{Result: &berthv1.CommandResult{OperationId: "o", Step: 1}}})
			synctest.Wait()
			return len(r.allAnswers())
		}
		if !r.Order(3, order) || answered() != 1 {
			t.Fatal("a node that one machine is gets no order, or its answer is lost")
		}
		r.change(t, "n1", func(n *model.Node) { n.Twin = model.Twin{Machine: model.Machine{Boot: "other"}, Why: "two machines"} })
		if r.Order(3, order) {
			t.Error("one of two machines gets an order")
		}
		if answered() != 1 {
			t.Error("the answer of one of two machines is believed")
		}
		a.hangUp()
		<-a.result
	})
}

// What was proven to be off is told nothing until it has booted anew.
func TestAFencedNodeGetsNoOrders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "n1")
		r.Lead(3)
		defer r.Stop()
		a := r.dial("n1")
		a.hello()
		synctest.Wait()
		order := operation.Order{Node: "n1", Operation: "o", Action: operation.ActInspect, VM: "v"}
		if !r.Order(3, order) {
			t.Fatal("a node that is up gets no order")
		}
		r.change(t, "n1", func(n *model.Node) { n.Fencing.Phase = model.FencingProven })
		if r.Order(3, order) {
			t.Error("a fenced node gets an order")
		}
		r.change(t, "n1", func(n *model.Node) { n.Fencing = model.Fencing{} })
		if !r.Order(3, order) {
			t.Error("a node that is back gets no order")
		}
		a.hangUp()
		<-a.result
	})
}
