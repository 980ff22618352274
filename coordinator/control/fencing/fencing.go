// Package fencing proves silent nodes to be off, by their devices, their watchdogs or a person's word, and takes note of those
// that come back.
package fencing

import (
	"context"
	"sync"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// FenceDevices reach what nodes are switched off with. Package fence implements it.
type FenceDevices interface {
	// Off switches the node off and asks whether it is. Nil is the proof that it is; with any error nothing is known.
	Off(ctx context.Context, device model.FenceDevice) error
	// On asks one device whether the node is on.
	On(ctx context.Context, device model.FenceDevice) (bool, error)
	// Identity is the system UUID of the machine that a device switches, as it says itself. With an error it is not known.
	Identity(ctx context.Context, device model.FenceDevice) (string, error)
	// Reach is the first of some addresses (HOST:PORT) that takes a connection from here; empty: none does.
	Reach(ctx context.Context, addresses []string) string
}

// Fencing is the fencing of this leadership, and the calls of devices that are under way. It is safe for concurrent use.
type Fencing struct {
	*lead.Leader

	devices FenceDevices
	wake    func(node string) // what waits for a node goes on

	mu     sync.Mutex
	fencer *Fencer
	calls  map[string]chan struct{} // by node ID: closed when the call of its device has ended
	trial  *trial                   // nil: no device is asked for the power state without need
	checks chan struct{}            // as many as may be asked at once which machine they switch
	work   sync.WaitGroup
}

// New makes a FencingRoom. Wake is called when a node is proven to be off, or counts again.
func New(lead *lead.Leader, devices FenceDevices, wake func(node string)) *Fencing {
	f := &Fencing{Leader: lead, devices: devices, wake: wake, checks: make(chan struct{}, mostChecks)}
	f.Reset(time.Time{})
	return f
}

// Reset forgets what an earlier leadership knew.
func (c *Fencing) Reset(since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fencer, c.calls = NewFencer(since, c.NewID), map[string]chan struct{}{}
}

// with does something with what is known of fencing.
func (c *Fencing) with(do func(*Fencer)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do(c.fencer)
}

// Came takes note that a VM has come to its node.
func (c *Fencing) Came(vm *model.VM) {
	c.with(func(f *Fencer) { f.Came(vm, c.Now()) })
}

// Leased takes note that a node gets a lease now, or is told that it needs none any more.
func (c *Fencing) Leased(node string, leased bool) {
	c.with(func(f *Fencer) { f.Leased(node, leased, c.Now()) })
}

// FenceHeld says why a silent node that VMs wait for is not proven to be off; false if nothing is to be said.
func (c *Fencing) FenceHeld(node string) (verdict evidence.FenceVerdict, held bool) {
	c.with(func(f *Fencer) { verdict, held = f.Held(node) })
	return verdict, held
}

// contradicted says why the proof that a node is off does not hold; empty: it does, or there is none.
func (c *Fencing) contradicted(node *model.Node) (why string) {
	moment := c.Moment(c.Store.Snapshot())
	c.with(func(f *Fencer) { why = f.Contradicted(moment, node) })
	return why
}

// IsOff tells whether a node counts as off.
func (c *Fencing) IsOff(snapshot *state.Snapshot, id string) (off bool) {
	node, enrolled := snapshot.Node(id)
	moment := c.Moment(snapshot)
	c.with(func(f *Fencer) { off = enrolled && f.Off(moment, &node) })
	return off
}

// Stay is Fencer.Stay of this leadership.
func (c *Fencing) Stay(snapshot *state.Snapshot, op *operation.Operation, vm *model.VM) (came, fell time.Time) {
	moment := c.Moment(snapshot)
	c.with(func(f *Fencer) { came, fell = f.Stay(moment, op, vm) })
	return came, fell
}

// Contradicted says why the proof that a node is off does not hold; empty: it does, or there is none.
func (c *Fencing) Contradicted(node string) string {
	record, known := c.Store.Snapshot().Node(node)
	if !known || !c.Leading() {
		return ""
	}
	return c.contradicted(&record)
}

// Survey listens to all nodes now.
func (c *Fencing) Survey(snapshot *state.Snapshot) (survey *evidence.Survey) {
	moment := c.Moment(snapshot)
	c.with(func(f *Fencer) { survey = f.Survey(moment) })
	return survey
}

// Showing is Fencer.Showing, as of now.
func (c *Fencing) Showing(snapshot *state.Snapshot, vm string, contradicting bool) (node string) {
	moment := c.Moment(snapshot)
	c.with(func(f *Fencer) { node = f.Showing(moment, vm, contradicting) })
	return node
}

// Strangers are those of the nodes that show a VM which do not hold it. What a node showed before it was switched off does not
// count.
func (c *Fencing) Strangers(snapshot *state.Snapshot, vm model.VM) (strangers []string) {
	moment, shown := c.Moment(snapshot), c.Inventory.Shown(vm.ID)
	c.with(func(f *Fencer) { strangers = f.Strangers(moment, vm, shown) })
	return strangers
}
