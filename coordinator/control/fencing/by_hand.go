package fencing

import (
	"context"
	"fmt"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// FenceNode asks for a node to be proven off.
type FenceNode struct {
	Node         string // ID
	ConfirmedOff bool   // the caller has seen that the machine is off; without it the node's device is asked to switch it off
	Force        bool   // also while the node answers: what runs there loses its power
	Caller       string
}

// FenceNode proves that a node is off and returns its record then. A node that is proven to be off already stays so. Refusals
// are of type *Error.
func (c *Fencing) FenceNode(ctx context.Context, request FenceNode) (model.Node, error) {
	for range lead.MostReplans {
		snapshot := c.Store.Snapshot()
		node, err := c.fenceable(snapshot, request)
		if err != nil || node.Fenced() {
			return node, err
		}
		if request.ConfirmedOff {
			c.with(func(f *Fencer) { node = f.ByHand(node, request.Caller, c.Now()) })
			c.endFencing(ctx, node, request.Caller+" has seen that it is off", true)
			continue
		}
		if why, _ := c.Identify(ctx, &node).Refused(&node); why != "" {
			continue // and is refused
		}
		if err := c.awaitDevice(ctx, node, request.Caller); err != nil {
			return node, err
		}
	}
	return model.Node{}, lead.TooBusy("node/" + request.Node)
}

// fenceable refuses what must not be fenced, or cannot.
func (c *Fencing) fenceable(snapshot *state.Snapshot, request FenceNode) (node model.Node, err error) {
	if !c.Leading() {
		return model.Node{}, lead.ErrNotLeading
	}
	// In a quarantine nothing is switched off; that a machine is off may be what it waits for.
	if err := lead.Quarantined(snapshot); err != nil && !request.ConfirmedOff {
		return model.Node{}, err
	}
	moment := c.Moment(snapshot)
	c.with(func(f *Fencer) { node, err = f.Fenceable(moment, request) })
	return node, err
}

// Fenceable is the record of a node that somebody asks to be proven off. The error is an *Error if that must not be, or
// cannot.
func (f *Fencer) Fenceable(p evidence.Moment, request FenceNode) (model.Node, error) {
	node, known := p.Node(request.Node)
	if !known {
		return node, &lead.Error{
			Code: lead.NotFound, Subject: "node/" + request.Node, Message: fmt.Sprintf(
				"there is no node %q", request.Node,
			), NextStep: "see 'berth node list'",
		}
	}
	subject := "node/" + node.Name
	if why := f.Contradicted(p, &node); why != "" {
		return node, &lead.Error{
			Code: lead.Conflict, Subject: subject, Message: fmt.Sprintf("node %s was proven to be off already, and that is not true: "+
				"%s", node.Name, why),
			NextStep: "look at the copies that run there with 'berth node show " + node.Name + "', then boot the machine anew",
		}
	}
	if node.Fenced() {
		return node, nil
	}
	facts := p.Facts(node.ID)
	switch {
	case request.ConfirmedOff && facts.Liveness != model.Unreachable:
		return node, &lead.Error{
			Code: lead.Conflict, Subject: subject, Message: fmt.Sprintf("node %s is not off: it is %s", node.Name, facts.Liveness),
			NextStep: fmt.Sprintf("switch it off first; a node that is off is unreachable %s later at most", model.UnreachableAfter),
		}
	case request.ConfirmedOff:
		return node, nil
	}
	if err := hasDevice(&node); err != nil {
		return node, err
	}
	if why, next := f.Identity(&node).Refused(&node); why != "" {
		return node, &lead.Error{
			Code: lead.Conflict, Subject: subject, Message: fmt.Sprintf("node %s is not switched off: %s", node.Name, why),
			NextStep: next + "; " + evidence.SeenOff(node.Name),
		}
	}
	if struck := f.Struck(p, &node); struck != "" {
		return node, &lead.Error{
			Code: lead.Conflict, Subject: subject,
			Message:  fmt.Sprintf("node %s is not switched off: %s", node.Name, evidence.WrongMachine(struck)),
			NextStep: evidence.RightDevice(node.Name) + "; " + evidence.SeenOff(node.Name),
		}
	}
	if facts.Liveness != model.Unreachable && !request.Force {
		return node, &lead.Error{
			Code: lead.Conflict, Subject: subject, Message: fmt.Sprintf("node %s is %s%s", node.Name, facts.Liveness, atStake(p.VMsOn(node.ID))),
			NextStep: fmt.Sprintf("move its VMs away with 'berth node drain %s'; --force switches it off all the same", node.Name),
		}
	}
	return node, nil
}

// atStake says which VMs would lose their power.
func atStake(vms []model.VM) string {
	names := make([]string, 0, len(vms))
	for i := range vms {
		names = append(names, vms[i].Name)
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return ", and VM " + names[0] + " would lose its power"
	}
	return fmt.Sprintf(", and %d VMs would lose their power (%s)", len(names), evidence.SomeOf(names))
}

// hasDevice refuses a node that nothing can switch off.
func hasDevice(node *model.Node) error {
	if node.Fence.Method == model.FenceCommand {
		return nil
	}
	why := map[model.FenceMethod]string{
		model.FenceNone:     "it has no fence device",
		model.FenceManual:   "only somebody's word proves that it is off",
		model.FenceWatchdog: "its watchdog proves that it is off, by itself, when it has been silent for long enough",
	}[node.Fence.Method]
	return &lead.Error{
		Code: lead.Conflict, Subject: "node/" + node.Name, Message: fmt.Sprintf("node %s cannot be switched off from here: %s", node.Name, why),
		NextStep: fmt.Sprintf(
			"set a device with 'berth node set %s --fence command', or say that the machine is off with 'berth node fence %s --confirmed-off'",
			node.Name, node.Name,
		),
	}
}

// awaitDevice has a node's device asked, and waits for what comes of it. One call that is at work already will do.
func (c *Fencing) awaitDevice(ctx context.Context, node model.Node, caller string) error {
	moment := c.Moment(c.Store.Snapshot())
	var nodes []evidence.Silence
	c.with(func(f *Fencer) { nodes = f.Silences(moment) })
	for i := range nodes {
		if left := nodes[i].Left; nodes[i].Node.ID == node.ID && left > 0 {
			return &lead.Error{
				Code: lead.Busy, Subject: "node/" + node.Name, Message: fmt.Sprintf(
					"an earlier leader may still be asking the fence device of node %s", node.Name,
				),
				NextStep: fmt.Sprintf("try again in %s", left.Round(time.Second)),
			}
		}
	}
	if err := c.askDevice(ctx, node, caller, "asked for by hand"); err != nil {
		return err
	}
	c.mu.Lock()
	ended := c.calls[node.ID]
	c.mu.Unlock()
	if ended != nil {
		select {
		case <-ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	after, known := c.Store.Snapshot().Node(node.ID)
	switch {
	case known && after.Fencing.Phase == model.FencingFailed:
		return &lead.Error{
			Code: lead.Unavailable, Subject: "node/" + node.Name, Message: fmt.Sprintf(
				"no proof that node %s is off: %s", node.Name, after.Fencing.Message,
			),
			NextStep: fmt.Sprintf("look at its fence device with 'berth node fence %s --check'", node.Name),
		}
	case known && !after.Fenced() && (after.Boot != node.Boot || evidence.BootedAnew(c.Inventory.Facts(node.ID, c.Now()), &after, node.Boot)):
		return &lead.Error{
			Code: lead.Conflict, Subject: "node/" + node.Name, Message: fmt.Sprintf("node %s has booted anew while it was switched off", node.Name),
			NextStep: fmt.Sprintf(
				"nothing of its earlier boot runs any more; keep the machine from switching on by itself, or leave it on: see 'berth node show %s'",
				node.Name,
			),
		}
	}
	return nil
}

// NodePower asks the fence devices of a node whether the node is on, one after the other. Refusals are of type *Error.
func (c *Fencing) NodePower(ctx context.Context, id string) (on []bool, err error) {
	node, known := c.Store.Snapshot().Node(id)
	if !known {
		return nil, &lead.Error{
			Code: lead.NotFound, Subject: "node/" + id, Message: fmt.Sprintf("there is no node %q", id), NextStep: "see 'berth node list'",
		}
	}
	if err := hasDevice(&node); err != nil {
		return nil, err
	}
	c.Identify(ctx, &node)
	for _, device := range node.Fence.All() {
		one, err := c.devices.On(ctx, device)
		if err != nil {
			c.with(func(f *Fencer) { f.powers.tried(&node, unanswered(device, err), c.Now()) })
			return nil, &lead.Error{
				Code: lead.Unavailable, Subject: "node/" + node.Name, Message: err.Error(),
				NextStep: fmt.Sprintf(
					"try %s by hand on the leader's machine, then mend the device with 'berth node set %s'", device.Target(), node.Name,
				),
			}
		}
		on = append(on, one)
	}
	if len(on) > 1 || on[0] {
		c.with(func(f *Fencer) { f.powers.tried(&node, "", c.Now()) })
	}
	return on, nil
}
