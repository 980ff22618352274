package control

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/lifecycle"
	"berth/coordinator/control/outofband"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
)

// A node that was removed thaws, and runs a copy: that is suspended and said at the VM, and nothing is ended.
func TestACopyOnARemovedNodeIsSuspended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.on("n1", "web1", 2)
		other := w.on("n2", "db1", 1)
		time.Sleep(time.Minute)
		w.agents.mu.Lock()
		w.agents.removed = []evidence.Removed{{Node: "n9", Name: "node9", At: time.Now(), Domains: []model.Domain{
			{UUID: vm.ID, Name: "web1", State: model.DomainRunning, Managed: true, Epoch: 1},
			{UUID: "somebody else's", Name: "x", State: model.DomainRunning},
		}}}
		w.agents.mu.Unlock()
		time.Sleep(3 * outofband.Every)
		w.agents.mu.Lock()
		suspended := slices.Clone(w.agents.suspended)
		w.agents.mu.Unlock()
		if len(suspended) != 1 || suspended[0] != "n9 "+vm.ID+" 1" {
			t.Errorf("suspended %v", suspended)
		}
		after := w.vm("web1")
		if after.Holder != "n1" || !after.Condition.Is(model.OutOfBand) ||
			!strings.Contains(after.Condition.Text, "a copy of it is paused on node9 (epoch 1), which was removed") ||
			!strings.Contains(after.Condition.Text, "'virsh destroy web1' on node9 ends it") {
			t.Errorf("vm %+v", after)
		}
		if after := w.vm("db1"); after.Condition.Text != "" || after.Revision != other.Revision && after.Holder != "n2" {
			t.Errorf("vm %+v", after)
		}
		w.agents.mu.Lock()
		w.agents.removed = nil
		w.agents.mu.Unlock()
		time.Sleep(3 * outofband.Every)
		if after := w.vm("web1"); after.Condition.Text != "" {
			t.Errorf("it has gone, and the VM is %+v", after)
		}
	})
}

// A VM that runs on a removed node is started nowhere before that copy is suspended.
func TestACopyOnARemovedNodeIsInTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.on("n1", "web1", 1)
		w.facts.change("n1", without(vm.ID))
		w.record(vm.ID, func(vm *model.VM) { vm.Holder, vm.Desired = "", model.Stopped })
		runs := model.Domain{UUID: vm.ID, Name: "web1", State: model.DomainRunning, Managed: true, Epoch: 1}
		w.agents.mu.Lock()
		w.agents.stubborn = true
		w.agents.removed = []evidence.Removed{{Node: "n9", Name: "node9", At: time.Now(), Domains: []model.Domain{runs}}}
		w.agents.mu.Unlock()
		_, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "web1"})
		if err == nil || !strings.Contains(err.Error(), "node9") {
			t.Errorf("the start was answered with %v", err)
		}
		w.agents.mu.Lock()
		w.agents.stubborn = false
		w.agents.mu.Unlock()
		time.Sleep(3 * outofband.Every)
		if _, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "web1"}); err != nil {
			t.Errorf("the start was answered with %v", err)
		}
	})
}
