package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/state"
)

// followEvery is between two looks for VMs that somebody has moved without Berth. What two looks show alike is believed: two
// nodes do not report at the same moment.
const followEvery = 5 * time.Second

// looked is what a look has found about VMs, in words by VM ID.
type looked map[string]string

// follow takes note, until the context ends, of VMs that were moved with virsh or another tool, so that ledgers and groups
// see them where they are; of VMs that two nodes run; and of work that nobody does.
func (c *Control) follow(ctx context.Context) {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	before := looked{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.takeUp()
			before = c.followOnce(ctx, before)
		}
	}
}

func (c *Control) followOnce(ctx context.Context, before looked) looked {
	snapshot, seen := c.Store.Snapshot(), looked{}
	if quarantined(snapshot) != nil {
		return seen
	}
	shown, _ := c.inventories(snapshot)
	for _, vm := range snapshot.VMs() {
		copies := shown[vm.ID]
		if vm.Holder == "" || vm.Operation != "" || len(copies) == 1 && copies[0].node.ID == vm.Holder && !isTwice(vm.Condition) {
			continue
		}
		after, event := c.asShown(snapshot, vm, copies)
		if event.Kind == "" {
			continue
		}
		seen[vm.ID] = event.Message
		if before[vm.ID] != event.Message {
			continue
		}
		event.At, event.Subject, event.Caller = c.Now(), "vm/"+vm.Name, berth
		c.try(ctx, state.Command{
			Key: c.newID(), Kind: "follow vm", Caller: berth, At: event.At,
			Expect: []state.Expectation{{Table: state.VMs, ID: vm.ID, Revision: vm.Revision}},
			VMs:    []cluster.VM{after}, Events: []cluster.Event{event},
		})
	}
	return seen
}

// asShown is a VM's record as the nodes show it, with what is to be told; nothing if the record is right or if it cannot be
// told. Only a copy with Berth's mark and the holder's epoch is the VM itself: orders to its new node carry that epoch.
func (c *Control) asShown(snapshot *state.Snapshot, vm cluster.VM, copies []copyOf) (after cluster.VM, event cluster.Event) {
	after = vm
	running := slices.DeleteFunc(slices.Clone(copies), func(one copyOf) bool { return one.domain.State != cluster.DomainRunning })
	switch {
	case len(running) > 1:
		if after.Condition = twice(running); after.Condition != vm.Condition {
			event = cluster.Event{Kind: "vm.runs-twice", Message: after.Condition}
		}
	case isTwice(vm.Condition) && len(copies) == 1 && copies[0].node.ID == vm.Holder:
		after.Condition = ""
		event = cluster.Event{Kind: "vm.runs-once", Message: "only " + copies[0].node.Name + " runs it"}
	case len(copies) == 1 && len(running) == 1:
		here := running[0]
		if here.node.ID == vm.Holder || !here.domain.Managed || here.domain.Epoch != vm.Epoch || !c.provenAbsent(vm) {
			return after, event
		}
		event = cluster.Event{
			Kind:    "vm.moved-elsewhere",
			Message: fmt.Sprintf("was moved from %s to %s by somebody else", nodeName(snapshot, vm.Holder), here.node.Name),
		}
		after.Holder, after.LastNode, after.MovedAt = here.node.ID, here.node.ID, c.Now()
		after.Condition = strayed(snapshot, vm, here.node)
	}
	return after, event
}

// strayed says which disk of a VM that somebody else has moved is recorded on another node's local pool: nobody but who moved
// it knows what its content is now. Empty: none is.
func strayed(snapshot *state.Snapshot, vm cluster.VM, node cluster.Node) string {
	for _, id := range vm.Disks {
		disk, _ := snapshot.Resource(id)
		if disk.Volume == nil || len(disk.Volume.Nodes) == 0 || slices.Contains(disk.Volume.Nodes, node.ID) {
			continue
		}
		return fmt.Sprintf("somebody else moved it to %s, and its disk %s is recorded on %s: move it back there before it is stopped",
			node.Name, disk.Name, nodeName(snapshot, disk.Volume.Nodes[0]))
	}
	return ""
}

const stopOne = ": stop one copy by hand"

// twice says on which nodes one VM is.
func twice(copies []copyOf) string {
	names := make([]string, 0, len(copies))
	for _, one := range copies {
		names = append(names, one.node.Name)
	}
	return "its UUID is on " + strings.Join(names, " and ") + stopOne
}

func isTwice(condition string) bool { return strings.HasSuffix(condition, stopOne) }
