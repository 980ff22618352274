package agents

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	berthv1 "berth/shared/gen/berth/v1"
)

// An agent that does not know a field which keeps guests safe is not given what has it. The other orders it gets.
func TestAnOldAgentIsGivenNoOrderThatItWouldObeyInPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "n1", "n2")
		r.Lead(3)
		old, present := r.dial("n1"), r.dial("n2")
		old.knows = nil
		for _, a := range []*agent{old, present} {
			a.hello()
		}
		synctest.Wait()
		move := operation.Order{Operation: "o1", Step: 1, Action: operation.ActMigrate, VM: "v1"}
		look := operation.Order{Operation: "o2", Step: 1, Action: operation.ActInspect, VM: "v1"}
		for _, c := range []struct {
			node  string
			order operation.Order
			sent  bool
			lacks []string
		}{
			{"n1", move, false, []string{"accounted-ends"}}, {"n1", look, true, nil}, {"n2", move, true, nil}, {"n3", move, false, nil},
		} {
			c.order.Node = c.node
			if lacks := r.Lacks(c.order); !slices.Equal(lacks, c.lacks) {
				t.Errorf("%s lacks %v for %s, want %v", c.node, lacks, c.order.Action, c.lacks)
			}
			if sent := r.Order(3, c.order); sent != c.sent {
				t.Errorf("the order to %s to %s was sent: %t", c.node, c.order.Action, sent)
			}
		}
		old.hangUp()
		present.hangUp()
	})
}

// A watchdog that an old agent would arm is not armed. One that is armed gets its leases, because the host would be reset without.
func TestAnOldAgentArmsNoWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "n1", "n2")
		for _, node := range []string{"n1", "n2"} {
			r.change(t, node, func(n *model.Node) { n.Fence.Method = model.FenceWatchdog })
		}
		r.Lead(3)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.GiveLeases(ctx, Leases{
				Lasts: time.Minute, Verify: func(context.Context) error { return nil }, Given: func(string, bool) {},
			})
		}()
		unarmed, armed := r.dial("n1"), r.dial("n2")
		for _, a := range []*agent{unarmed, armed} {
			a.knows = nil
			a.hello()
		}
		unarmed.telemetry()
		armed.say(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Telemetry{Telemetry: &berthv1.NodeTelemetry{WatchdogSeconds: 30}}})
		time.Sleep(2 * leaseEvery)
		synctest.Wait()
		if got := leases(unarmed); len(got) != 0 {
			t.Errorf("an old agent whose watchdog is not armed got %v", got)
		}
		if got := leases(armed); len(got) == 0 {
			t.Error("an old agent whose watchdog is armed got no lease")
		}
		cancel()
		<-done
		unarmed.hangUp()
		armed.hangUp()
	})
}
