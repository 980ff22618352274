package recovery

import (
	"context"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

const (
	// restampEvery is between two looks for times that have not come yet. There are some only after a leader's clock was wrong.
	restampEvery = time.Minute
	// restampAtOnce is how many records one command sets right.
	restampAtOnce = 200
)

// RunStamps sets times in records right that a leader with a wrong clock has written, at once and then now and again, until the
// context ends.
func (r *Recovery) RunStamps(ctx context.Context) {
	ticker := time.NewTicker(restampEvery)
	defer ticker.Stop()
	for {
		r.restamp(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (r *Recovery) restamp(ctx context.Context) {
	for ctx.Err() == nil {
		command, some := Restamp(r.Store.Snapshot(), r.Now())
		if !some {
			return
		}
		command.Key = r.NewID()
		result, err := r.Propose(ctx, command)
		if err != nil || result.Refusal != nil {
			return // the next look sees what is left
		}
		r.Logger.Warn("times in records had not come yet, and are set to the present: a coordinator's clock was ahead",
			"vms", len(command.VMs), "nodes", len(command.Nodes))
	}
}

// Restamp is the command that sets times in records right, if there are any that have not come yet.
func Restamp(snapshot *state.Snapshot, now time.Time) (command state.Command, some bool) {
	vms, nodes := evidence.Restamped(snapshot, now)
	vms, nodes = vms[:min(len(vms), restampAtOnce)], nodes[:min(len(nodes), restampAtOnce)]
	if len(vms)+len(nodes) == 0 {
		return command, false
	}
	command = state.Command{Kind: "restamp", Caller: lead.Berth, At: now, VMs: vms, Nodes: nodes}
	about := func(table state.Table, id string, revision uint64, subject string) {
		command.Expect = append(command.Expect, state.Expectation{Table: table, ID: id, Revision: revision})
		command.Events = append(command.Events, model.Event{
			At: now, Kind: "clock.corrected", Subject: subject, Caller: lead.Berth,
			Message: "its record had times that have not come yet, from a coordinator whose clock was ahead: they are set to the present",
		})
	}
	for i := range vms {
		about(state.VMs, vms[i].ID, vms[i].Revision, "vm/"+vms[i].Name)
	}
	for i := range nodes {
		about(state.Nodes, nodes[i].ID, nodes[i].Revision, "node/"+nodes[i].Name)
	}
	return command, true
}
