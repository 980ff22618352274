package recovery

import (
	"context"
	"strings"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// reconcileEvery is between two looks at whether all nodes have reported after a restore.
const reconcileEvery = 2 * time.Second

// Reconcile watches for a quarantine until the context ends, and lifts it once every node has shown what it runs, or is proven
// to be off. Where record and node differ, the node is right: guests went on while the backup lay on a shelf. No guest is touched.
func (r *Recovery) Reconcile(ctx context.Context) {
	ticker := time.NewTicker(reconcileEvery)
	defer ticker.Stop()
	told := ""
	for {
		snapshot := r.Store.Snapshot()
		if snapshot.Meta(state.MetaQuarantine) != "" {
			running, missing := r.Moment(snapshot).Running()
			if len(missing) == 0 {
				r.lift(ctx, snapshot, running)
				continue
			}
			if waiting := strings.Join(missing, ", "); waiting != told {
				r.Logger.Warn("in quarantine until these nodes report", "nodes", waiting)
				told = waiting
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (r *Recovery) lift(ctx context.Context, snapshot *state.Snapshot, running map[string][]evidence.Copy) {
	at, moment := r.Now(), r.Moment(snapshot)
	command := state.Command{
		Key: r.NewID(), Kind: "reconcile", Caller: lead.Berth, At: at,
		Meta: map[string]string{state.MetaQuarantine: "", lead.MetaRestored: at.UTC().Format(time.RFC3339Nano)},
		Events: []model.Event{{
			At: at, Kind: "cluster.reconciled", Subject: "cluster", Caller: lead.Berth,
			Message: "the quarantine is over, every node has reported: VMs may be started, stopped and moved again",
		}},
	}
	for _, vm := range snapshot.VMs() {
		after, disks, why := moment.Agreed(vm, running[vm.ID])
		for _, disk := range disks {
			command.Resources = append(command.Resources, disk)
			command.Expect = append(command.Expect, state.Expectation{Table: state.Resources, ID: disk.ID, Revision: disk.Revision})
		}
		if why == "" && vm.Operation == "" {
			continue
		}
		after.Operation = "" // what was at work when the backup was made is parked
		command.VMs = append(command.VMs, after)
		command.Expect = append(command.Expect, state.Expectation{Table: state.VMs, ID: vm.ID, Revision: vm.Revision})
		if why != "" {
			command.Events = append(command.Events, model.Event{
				At: at, Kind: "vm.reconciled", Subject: "vm/" + vm.Name, Message: why, Caller: lead.Berth,
			})
		}
	}
	r.plans.CancelRestored(snapshot, &command)
	result, err := r.Propose(ctx, command)
	switch {
	case err != nil:
		r.Logger.Warn("the quarantine could not be lifted", "error", err)
	case result.Refusal != nil:
		r.Logger.Warn("the quarantine could not be lifted", "refusal", result.Refusal.Message)
	default:
		r.Logger.Info("quarantine lifted", "changed_vms", len(command.VMs))
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(reconcileEvery):
	}
}
