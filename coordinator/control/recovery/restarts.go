package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// restartRefused is before the text of why a VM cannot be restarted.
const restartRefused = "it cannot be restarted: "

// restartEvery is between two looks for VMs to restart.
const restartEvery = time.Second

// RunRestarts starts VMs that are to be highly available and run nowhere, until the context ends. It is the only one that does.
func (r *Recovery) RunRestarts(ctx context.Context) {
	ticker := time.NewTicker(restartEvery)
	defer ticker.Stop()
	var restarter evidence.Restarter
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		snapshot := r.Store.Snapshot()
		if lead.Quarantined(snapshot) != nil || !r.ViewComplete(snapshot) {
			continue
		}
		if _, paused := r.Moment(snapshot).Paused(); paused {
			continue // the status says so
		}
		again := evidence.Again(snapshot)
		ready, resting := evidence.Restartable(snapshot.VMsMarked(model.MarkDown), r.Now(), again)
		for id, why := range resting {
			r.explain(ctx, snapshot, id, why)
		}
		ready, behind := restarter.Behind(ready, r.Now(), evidence.Ahead(r.Moment(snapshot), again))
		for id, why := range behind {
			r.explain(ctx, snapshot, id, why)
		}
		r.restartDue(ctx, snapshot, &restarter, ready)
	}
}

// attempt is what a try to restart a VM has come to.
type attempt int

const (
	begun     attempt = iota
	waits             // it has to wait, which the VM's record says
	undecided         // nobody knows whether it could start
)

// restartDue tries the VMs that are due, in their order. Behind one that is undecided none is started, because that might take its room:
// the next look begins with it.
func (r *Recovery) restartDue(ctx context.Context, snapshot *state.Snapshot, restarter *evidence.Restarter, ready []model.VM) {
	due := restarter.Due(ready, r.Now())
	for i := range due {
		switch r.restartOne(ctx, snapshot, &due[i]) {
		case waits:
			restarter.Waits(due[i].ID, r.Now())
		case undecided:
			return
		}
	}
}

// restartOne starts a VM elsewhere.
func (r *Recovery) restartOne(ctx context.Context, snapshot *state.Snapshot, vm *model.VM) attempt {
	if due, _ := evidence.Discardable(r.Moment(snapshot), vm); len(due) > 0 {
		r.explain(ctx, snapshot, vm.ID, cannotRestart(
			due[0].Node, "%s discards the paused copy first that was left there", lead.NodeName(snapshot, due[0].Node),
		))
		return waits
	}
	if node := r.fencing.Showing(snapshot, vm.ID, false); node != "" {
		r.explain(ctx, snapshot, vm.ID, cannotRestart("", "%s shows a copy of it: stop that one by hand, or boot the machine anew", node))
		return waits
	}
	err := r.starter.Restart(ctx, vm.Name)
	var refusal *lead.Error
	switch {
	case err == nil:
		return begun
	case ctx.Err() != nil:
		return undecided
	case errors.As(err, &refusal) && (refusal.Code == lead.StaleView || refusal.Code == lead.NoLeader):
		r.Logger.Warn("it was not decided whether a VM can be restarted", "vm", vm.Name, "error", err)
		return undecided
	case errors.As(err, &refusal) && refusal.Code != lead.Busy && refusal.Code != lead.Exists:
		r.explain(ctx, snapshot, vm.ID, cannotRestart("", "%s", refusal.Message))
	default:
		r.Logger.Warn("a VM could not be restarted now", "vm", vm.Name, "error", err)
	}
	return waits
}

// cannotRestart is the condition of a VM that cannot be restarted now. Node is the ID of the node that is in the way; empty: none is.
func cannotRestart(node, format string, args ...any) model.Condition {
	return model.Condition{Kind: model.RestartRefused, About: node, Text: restartRefused + fmt.Sprintf(format, args...)}
}

// explain says at a VM why it is not restarted. That it cannot be is said once: figures in the text that change are no news.
func (r *Recovery) explain(ctx context.Context, snapshot *state.Snapshot, id string, why model.Condition) {
	vm, known := snapshot.VM(id)
	alike := why.Is(model.RestartRefused, model.RestartBehind) && vm.Condition.Is(why.Kind)
	if !known || vm.Condition.Same(why) || alike {
		return
	}
	vm.Condition = why
	at := r.Now()
	r.Logger.Warn("a VM that is to be highly available is not restarted", "vm", vm.Name, "why", why.Text)
	r.Try(ctx, state.Command{
		Key: r.NewID(), Kind: "explain vm", Caller: lead.Berth, At: at,
		Expect: []state.Expectation{{Table: state.VMs, ID: vm.ID, Revision: vm.Revision}}, VMs: []model.VM{vm},
		Events: []model.Event{{At: at, Kind: "vm.not-restarted", Subject: "vm/" + vm.Name, Message: why.Text, Caller: lead.Berth}},
	})
}
