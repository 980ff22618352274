package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/state"
)

// Bounds of restarts that nobody has asked for.
const (
	MaxRestarts   = 3 // of a VM, before it rests
	RestartWindow = 10 * time.Minute

	restartEvery = time.Second      // between two looks for VMs to restart
	restartRest  = 15 * time.Second // before a VM is tried again that no node had room for
)

// Conditions of VMs that wait for a restart begin with these words.
const (
	restartRefused = "it cannot be restarted: "
	restartRests   = "it was restarted "
)

// Restartable are the VMs that are to be started again because they are to be highly available and positively run nowhere: a
// holder is only taken from a record by evidence. Those with most memory come first, while there is room for them: smaller ones
// fit between. Resting are those that were restarted too often lately, with what is to be said of them.
func Restartable(vms []cluster.VM, now time.Time) (ready []cluster.VM, resting map[string]string) {
	resting = map[string]string{}
	for i := range vms {
		vm := &vms[i]
		if !vm.HA || vm.Desired != cluster.Running || vm.Holder != "" || vm.Operation != "" {
			continue
		}
		if since := now.Sub(vm.RestartedAt); vm.Restarts >= MaxRestarts && since < RestartWindow {
			resting[vm.ID] = fmt.Sprintf("%s%d times within minutes, and is gone again: look into its guest and its nodes; it is tried again in %s, or by 'berth vm start %s'",
				restartRests, vm.Restarts, RestartWindow, vm.Name)
			continue
		}
		ready = append(ready, *vm)
	}
	slices.SortFunc(ready, func(a, b cluster.VM) int {
		return cmp.Or(cmp.Compare(b.Spec.Memory, a.Spec.Memory), cmp.Compare(a.ID, b.ID))
	})
	return ready, resting
}

// Restarted counts a restart. The count begins anew once a VM has run for long enough.
func Restarted(vm *cluster.VM, now time.Time) {
	if now.Sub(vm.RestartedAt) >= RestartWindow {
		vm.Restarts = 0
	}
	vm.Restarts++
	vm.RestartedAt = now
}

// Restarter remembers which VMs no node had room for: they are tried again after a while. It is not safe for concurrent use.
type Restarter struct {
	tried map[string]time.Time // by VM ID: when
}

// Due are those of the VMs that are to be started now, in their order. The others wait.
func (r *Restarter) Due(ready []cluster.VM, now time.Time) []cluster.VM {
	waits := map[string]time.Time{}
	due := slices.DeleteFunc(slices.Clone(ready), func(vm cluster.VM) bool {
		at, tried := r.tried[vm.ID]
		if lately := tried && now.Sub(at) < restartRest; !lately {
			return false
		}
		waits[vm.ID] = at
		return true
	})
	r.tried = waits
	return due
}

// Waits tells that a VM could not be started.
func (r *Restarter) Waits(vm string, now time.Time) { r.tried[vm] = now }

// restart starts VMs that are to be highly available and run nowhere, until the context ends. It is the only one that does.
func (c *Control) restart(ctx context.Context) {
	ticker := time.NewTicker(restartEvery)
	defer ticker.Stop()
	var restarter Restarter
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		snapshot := c.Store.Snapshot()
		if quarantined(snapshot) != nil || !c.settled(snapshot) {
			continue
		}
		ready, resting := Restartable(snapshot.VMs(), c.Now())
		for id, why := range resting {
			c.explain(ctx, snapshot, id, why)
		}
		due := restarter.Due(ready, c.Now())
		for i := range due {
			if !c.restartOne(ctx, snapshot, &due[i]) {
				restarter.Waits(due[i].ID, c.Now())
			}
			if ctx.Err() != nil {
				return
			}
		}
	}
}

// restartOne starts a VM elsewhere. It is false when that has to wait, which the VM's record says then.
func (c *Control) restartOne(ctx context.Context, snapshot *state.Snapshot, vm *cluster.VM) bool {
	if due, _ := Discardable(c.picture(snapshot), vm); len(due) > 0 {
		c.explain(ctx, snapshot, vm.ID, fmt.Sprintf("%s%s discards the paused copy first that was left there", restartRefused, nodeName(snapshot, due[0].Node)))
		return false
	}
	if node := c.showing(snapshot, vm.ID, false); node != "" {
		c.explain(ctx, snapshot, vm.ID, fmt.Sprintf("%s%s shows a copy of it: stop that one by hand, or boot the machine anew", restartRefused, node))
		return false
	}
	err := c.plan(ctx, "vm/"+vm.Name, func() (retry, error) {
		_, again, err := c.startOnce(ctx, startRequest{StartVM: StartVM{Name: vm.Name, Caller: berth}, restart: true})
		return again, err
	})
	var refusal *Error
	switch {
	case err == nil:
		return true
	case errors.As(err, &refusal) && refusal.Code != Busy && refusal.Code != Exists && refusal.Code != StaleView && refusal.Code != NoLeader:
		c.explain(ctx, snapshot, vm.ID, restartRefused+refusal.Message)
	case ctx.Err() == nil:
		c.Logger.Warn("a VM could not be restarted now", "vm", vm.Name, "error", err)
	}
	return false
}

// showing is Fencer.Showing, as of now.
func (c *Control) showing(snapshot *state.Snapshot, vm string, contradicting bool) (node string) {
	picture := c.picture(snapshot)
	c.fencing(func(f *Fencer) { node = f.Showing(picture, vm, contradicting) })
	return node
}

// explain says at a VM why it is not restarted. What begins alike is said once: figures that change are no news.
func (c *Control) explain(ctx context.Context, snapshot *state.Snapshot, id, why string) {
	vm, known := snapshot.VM(id)
	alike := strings.HasPrefix(vm.Condition, restartRefused) && strings.HasPrefix(why, restartRefused)
	if !known || vm.Condition == why || alike {
		return
	}
	vm.Condition = why
	at := c.Now()
	c.Logger.Warn("a VM that is to be highly available is not restarted", "vm", vm.Name, "why", why)
	c.try(ctx, state.Command{
		Key: c.newID(), Kind: "explain vm", Caller: berth, At: at,
		Expect: []state.Expectation{{Table: state.VMs, ID: vm.ID, Revision: vm.Revision}}, VMs: []cluster.VM{vm},
		Events: []cluster.Event{{At: at, Kind: "vm.not-restarted", Subject: "vm/" + vm.Name, Message: why, Caller: berth}},
	})
}
