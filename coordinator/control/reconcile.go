package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/estate"
	"berth/coordinator/state"
)

// reconcileEvery is between two looks at whether all nodes have reported after a restore.
const reconcileEvery = 2 * time.Second

// metaRestored is the key of the replicated time at which a restored state was last compared with the nodes.
const metaRestored = "restored_at"

// untold refuses to make a disk that may have been made after the backup that the state was restored from: what its guest has
// written there would be gone.
func untold(snapshot *state.Snapshot, vm cluster.VM) error {
	restored, err := time.Parse(time.RFC3339Nano, snapshot.Meta(metaRestored))
	if err != nil {
		return nil // never
	}
	for _, id := range vm.Disks {
		disk, known := snapshot.Resource(id)
		if !known || disk.Volume != nil || !estate.IsVolume(&disk) || disk.CreatedAt.After(restored) {
			continue
		}
		return &Error{
			Code: Conflict, Subject: "vm/" + vm.Name,
			Message: fmt.Sprintf("disk %q of VM %q was not made yet when the backup was taken that the state comes from, and may have been since: a start would make it anew",
				disk.Name, vm.Name),
			NextStep: fmt.Sprintf("look for a volume %s* on the nodes with 'virsh vol-list'; then give the VM another disk, and copy what is there",
				cluster.VolumeName(disk.ID, "")),
		}
	}
	return nil
}

// quarantined refuses work on VMs while the records come from a backup that was not yet compared with the nodes.
func quarantined(snapshot *state.Snapshot) error {
	reason := snapshot.Meta(state.MetaQuarantine)
	if reason == "" {
		return nil
	}
	return &Error{
		Code: Unavailable, Subject: "cluster", Message: "quarantine: no VM is started, stopped or moved, because the state was " + reason,
		NextStep: "wait until every node has reported: 'berth status' names those that have not; " +
			"of one whose machine is off say so with 'berth node fence NODE --confirmed-off'",
	}
}

// reconcile watches for a quarantine until the context ends, and lifts it once every node has shown what it runs, or is proven
// to be off. Where record and node differ, the node is right: guests went on while the backup lay on a shelf. No guest is touched.
func (c *Control) reconcile(ctx context.Context) {
	ticker := time.NewTicker(reconcileEvery)
	defer ticker.Stop()
	told := ""
	for {
		snapshot := c.Store.Snapshot()
		if snapshot.Meta(state.MetaQuarantine) != "" {
			running, missing := c.inventories(snapshot)
			if len(missing) == 0 {
				c.lift(ctx, snapshot, running)
				continue
			}
			if waiting := strings.Join(missing, ", "); waiting != told {
				c.Logger.Warn("in quarantine until these nodes report", "nodes", waiting)
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

// Told tells whether it is known what a node runs: it shows that itself, and no order of before is still being carried out
// there; or it is proven to be off.
func Told(node *cluster.Node, facts *cluster.NodeFacts) bool {
	if facts.Liveness != cluster.Up {
		return node.Fenced() && facts.Liveness == cluster.Unreachable
	}
	return facts.Inventory && facts.DomainsKnown && len(facts.Working) == 0
}

// copyOf is a domain on a node.
type copyOf struct {
	node   cluster.Node
	domain cluster.Domain
}

// inventories are all domains that hold memory, by UUID, and the names of the nodes that have not told theirs.
func (c *Control) inventories(snapshot *state.Snapshot) (running map[string][]copyOf, missing []string) {
	running = map[string][]copyOf{}
	for _, node := range snapshot.Nodes() {
		facts := c.Inventory.Facts(node.ID, c.Now())
		if !Told(&node, &facts) {
			missing = append(missing, node.Name)
			continue
		}
		if facts.Liveness != cluster.Up {
			continue // it is off
		}
		for _, domain := range facts.Domains {
			if domain.State.Holds() {
				running[domain.UUID] = append(running[domain.UUID], copyOf{node, domain})
			}
		}
	}
	slices.Sort(missing)
	return running, missing
}

func (c *Control) lift(ctx context.Context, snapshot *state.Snapshot, running map[string][]copyOf) {
	at := c.Now()
	command := state.Command{
		Key: c.newID(), Kind: "reconcile", Caller: berth, At: at,
		Meta: map[string]string{state.MetaQuarantine: "", metaRestored: at.UTC().Format(time.RFC3339Nano)},
		Events: []cluster.Event{{
			At: at, Kind: "cluster.reconciled", Subject: "cluster", Caller: berth,
			Message: "the quarantine is over, every node has reported: VMs may be started, stopped and moved again",
		}},
	}
	for _, vm := range snapshot.VMs() {
		after, why := agreed(vm, running[vm.ID])
		if why == "" && vm.Operation == "" {
			continue
		}
		after.Operation = "" // what was at work when the backup was made is parked
		command.VMs = append(command.VMs, after)
		command.Expect = append(command.Expect, state.Expectation{Table: state.VMs, ID: vm.ID, Revision: vm.Revision})
		if why != "" {
			command.Events = append(command.Events, cluster.Event{
				At: at, Kind: "vm.reconciled", Subject: "vm/" + vm.Name, Message: why, Caller: berth,
			})
		}
	}
	for _, plan := range snapshot.Plans() {
		if plan.State.Live() || unfinished(&plan) {
			c.shelve(&command, plan)
		}
	}
	result, err := c.propose(ctx, command)
	switch {
	case err != nil:
		c.Logger.Warn("the quarantine could not be lifted", "error", err)
	case result.Refusal != nil:
		c.Logger.Warn("the quarantine could not be lifted", "refusal", result.Refusal.Message)
	default:
		c.Logger.Info("quarantine lifted", "changed_vms", len(command.VMs))
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(reconcileEvery):
	}
}

// shelve ends a plan that was at work, or waited, when the backup was made: nobody knows what has become of its reasons.
func (c *Control) shelve(command *state.Command, plan cluster.Plan) {
	was := plan.State
	discard(&plan, "the state was restored from a backup", command.At)
	if was != cluster.PlanProposed {
		plan.State = cluster.PlanCancelled
	}
	c.include(command, &plan, plan.Message)
}

func copiesIn(shown []copyOf) []Copy {
	var copies []Copy
	for _, one := range shown {
		copies = append(copies, Copy{Node: one.node.ID, Name: one.node.Name, Domain: one.domain})
	}
	return copies
}

// agreed is the record that says what the nodes show, and in words what changed; empty when nothing did.
func agreed(vm cluster.VM, copies []copyOf) (after cluster.VM, why string) {
	after = vm
	copies = slices.DeleteFunc(slices.Clone(copies), func(one copyOf) bool { return isLeft(&vm, one.node.ID, &one.domain) })
	switch {
	case len(copies) > 1:
		after.Condition = twice(vm, nil, vm.Holder, copiesIn(copies))
		return after, after.Condition
	case len(copies) == 0 && vm.Holder == "":
		return vm, ""
	case len(copies) == 0:
		after.Holder = ""
		after.Condition = "it ran when the backup was made, and no node shows it now"
		return after, after.Condition
	}
	here := copies[0]
	if vm.Holder == here.node.ID && vm.Epoch == here.domain.Epoch {
		return vm, ""
	}
	after.Holder, after.LastNode, after.Desired, after.Condition = here.node.ID, here.node.ID, cluster.Running, ""
	after.Epoch = max(vm.Epoch, here.domain.Epoch)
	return after, fmt.Sprintf("runs on %s, epoch %d, as its node shows", here.node.Name, here.domain.Epoch)
}
