package agents

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	berthv1 "berth/shared/gen/berth/v1"
)

func (a *agent) lists(domains ...*berthv1.Domain) {
	a.say(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Inventory{Inventory: &berthv1.InventoryReport{
		Node: &berthv1.NodeInventory{}, Domains: domains,
	}}})
}

var running = &berthv1.Domain{Uuid: "v1", Name: "web1", State: berthv1.DomainState_DOMAIN_STATE_RUNNING, Managed: true, Epoch: 3}

// The agent of a node that was removed is listened to and given no orders. All that it is ever told to do is to suspend a guest.
func TestARemovedNodeIsListenedTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "n1")
		r.Lead(3)
		defer r.Stop()
		gone := r.dial("n9")
		gone.hello()
		synctest.Wait()
		first := gone.heard()
		if len(first) < 2 || !first[0].GetWelcome().GetRemoved() || first[1].GetLease() == nil || first[1].GetLease().GetSeconds() != 0 {
			t.Fatalf("it was answered with %v", first)
		}
		gone.lists(running, &berthv1.Domain{Uuid: "v2", State: berthv1.DomainState_DOMAIN_STATE_SHUTOFF})
		gone.telemetry()
		synctest.Wait()
		all := r.Removed()
		if len(all) != 1 || all[0].Node != "n9" || all[0].Name != "name-n9" || len(all[0].Domains) != 1 ||
			all[0].Domains[0].State != model.DomainRunning || all[0].Domains[0].Epoch != 3 {
			t.Fatalf("heard %+v", all)
		}
		if facts := r.inventory.Facts("n9", time.Now()); len(facts.Domains) > 0 || facts.Liveness == model.Up {
			t.Errorf("what it says is believed: %+v", facts)
		}
		if r.Order(3, operation.Order{Node: "n9", Action: operation.ActInspect}) || len(r.connected) > 0 {
			t.Error("an order was sent")
		}
		if _, err := r.Perform(t.Context(), "n9", lead.Task{Refuse: &lead.CopyOf{VM: "v1", Epoch: 3}}); err == nil {
			t.Error("it was given a task")
		}
		ended := make(chan error, 1)
		go func() { ended <- r.SuspendRemoved(t.Context(), "n9", lead.CopyOf{VM: "v1", Epoch: 3}) }()
		synctest.Wait()
		told := gone.heard()
		if len(told) != 1 || told[0].GetTask().GetSuspend().GetVmId() != "v1" || told[0].GetTask().GetSuspend().GetEpoch() != 3 {
			t.Fatalf("it was told %v", told)
		}
		gone.say(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_TaskResult{TaskResult: &berthv1.TaskResult{
			Id: told[0].GetTask().GetId(), Done: true,
		}}})
		if err := <-ended; err != nil {
			t.Errorf("the suspension ended with %v", err)
		}
		paused := &berthv1.Domain{Uuid: "v1", State: berthv1.DomainState_DOMAIN_STATE_PAUSED, Epoch: 3}
		gone.say(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_DomainChange{DomainChange: &berthv1.DomainChange{Domain: paused}}})
		synctest.Wait()
		if all := r.Removed(); all[0].Domains[0].State != model.DomainPaused {
			t.Errorf("heard %+v", all)
		}
		gone.hangUp()
		synctest.Wait()
		if all := r.Removed(); len(all) != 0 {
			t.Errorf("it has gone, and %+v", all)
		}
	})
}

// What removed nodes may take of a leader is bounded: how many there are, how much each lists, and how often it is read.
func TestRemovedNodesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "n1")
		r.Lead(3)
		defer r.Stop()
		var all []*agent
		for i := range removedAtOnce + 1 {
			a := r.dial(fmt.Sprintf("gone-%d", i))
			a.hello()
			synctest.Wait()
			all = append(all, a)
		}
		if got := len(r.Removed()); got != removedAtOnce {
			t.Errorf("%d are listened to", got)
		}
		if err := <-all[removedAtOnce].result; err == nil {
			t.Error("one too many was not sent away")
		}
		many := make([]*berthv1.Domain, removedDomains+100)
		for i := range many {
			many[i] = &berthv1.Domain{Uuid: fmt.Sprint(i), State: berthv1.DomainState_DOMAIN_STATE_RUNNING}
		}
		time.Sleep(time.Minute)
		all[0].lists(many...)
		all[0].lists()
		synctest.Wait()
		for _, one := range r.Removed() {
			if one.Node == "gone-0" && len(one.Domains) != removedDomains {
				t.Errorf("%d of its domains are kept", len(one.Domains))
			}
		}
		for _, a := range all[:removedAtOnce] {
			a.hangUp()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		synctest.Wait()
		if err := r.SuspendRemoved(ctx, "gone-0", lead.CopyOf{VM: "v1"}); err == nil {
			t.Error("one that has gone was told something")
		}
	})
}
