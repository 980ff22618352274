// Package sized compares how large guests of the simulator are, after people have changed that with virsh, with what a leader knows of it,
// promises because of it, and shows.
package sized

import (
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/drift"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/coordinator/view"
	"berth/integration/faults/machine"
	"berth/integration/faults/script"
	"berth/shared/units"
)

// Every is the pause between two looks.
const Every = time.Second

// late is how long a report may be on its way, and a decision into the log.
const late = time.Minute

// Guests are those of a site.
type Guests struct {
	Site     *machine.Site
	Machines []*machine.Machine

	behind map[string]time.Time // by VM: since when its next start has had other vCPUs than somebody has given it, at every look
}

// Change is somebody who changes the size of a guest.
func (g *Guests) Change(vm string, what script.Happening) {
	for _, h := range g.Machines {
		if machine.SetSize(h, vm, what) {
			g.Site.Draw(script.Sizes)
		}
	}
}

// Limits are how large a VM may become while it runs.
func Limits(site *machine.Site, spec *model.VMSpec) {
	if site.Sizes {
		spec.MaxMemory, spec.MaxVCPUs = machine.MostMemory, machine.MostVCPUs
	}
}

// Now is the view of what is stored and known.
func Now(snapshot *state.Snapshot, facts func(node string) model.NodeFacts, at time.Time) *view.View {
	records := view.Records{Clusters: snapshot.Resources(model.KindCluster), Nodes: snapshot.Nodes(), VMs: snapshot.VMs()}
	for _, op := range snapshot.LiveOperations() {
		if reservation, holds := op.Reservation(); holds {
			records.Reservations = append(records.Reservations, reservation)
		}
	}
	known := map[string]model.NodeFacts{}
	for _, node := range records.Nodes {
		known[node.ID] = facts(node.ID)
	}
	return view.New(at, 0, records, known)
}

// Promised is the memory of each node that is given away, as far as is known.
func Promised(snapshot *state.Snapshot, facts func(node string) model.NodeFacts, at time.Time) map[string]units.Bytes {
	used := map[string]units.Bytes{}
	for _, node := range Now(snapshot, facts, at).Nodes.All() {
		used[node.Node.ID] = node.PromisedUsed
	}
	return used
}

// told tells whether what a guest is like now was told to the leader: its node has listed and measured it long after the last change.
func (g *Guests) told(d *machine.Domain, facts *model.NodeFacts) bool {
	return !d.Forgotten && facts.DomainsKnown && facts.Telemetry && d.SizedBefore(facts.InventoryAt.Add(-late)) &&
		d.SizedBefore(facts.TelemetryAt.Add(-late)) && facts.Domain(d.UUID) != nil && facts.Domain(d.UUID).Balloon != nil
}

// Look compares what a leader promises and shows of guests with what they are.
func (g *Guests) Look(snapshot *state.Snapshot, facts func(node string) model.NodeFacts) {
	now := Now(snapshot, facts, g.Site.Now)
	was := g.behind
	g.behind = map[string]time.Time{}
	for _, h := range g.Machines {
		node, known := facts(h.ID), now.Node(h.ID)
		for _, d := range h.Sorted() {
			vm, recorded := snapshot.VM(d.UUID)
			if known == nil || !recorded || vm.Holder != h.ID || vm.Epoch != d.Epoch || vm.Operation != "" || !g.told(d, &node) {
				continue
			}
			domain, is := node.Domain(d.UUID), d.Size()
			if domain.Epoch != d.Epoch {
				continue
			}
			var counts model.Size
			for i := range known.Allocations {
				if one := &known.Allocations[i]; one.VM == d.UUID {
					counts = model.Size{Memory: one.Memory, VCPUs: one.VCPUs}
				}
			}
			if counts.Memory < is.Memory || counts.VCPUs < is.VCPUs {
				g.Site.Broken("size", d.UUID, "counts on %s for %v, and is told to have %v", h.ID, counts, is)
			}
			g.follows(&vm, domain, snapshot, was)
			if shown := drift.RunsAs(&vm, domain); vm.Ballooned && vm.RanSize != (model.Size{}) && shown != is {
				g.Site.Broken("size", d.UUID, "is shown on %s with %v, and is told to have %v", h.ID, shown, is)
			}
		}
	}
}

// follows asks of a guest whether its next start has the vCPUs that somebody has given it. Was is what behind was after the last look.
func (g *Guests) follows(vm *model.VM, domain *model.Domain, snapshot *state.Snapshot, was map[string]time.Time) {
	beside := drift.SizeBeside(vm, domain).VCPUs
	if beside == 0 || lead.Quarantined(snapshot) != nil {
		return
	}
	since, known := was[vm.ID]
	if !known {
		since = g.Site.Now
	}
	if g.behind[vm.ID] = since; g.Site.Now.Sub(since) > late {
		g.Site.Broken("size", vm.ID, "has been told on %s to have %d vCPUs, and its next start has %d", vm.Holder, beside, vm.Spec.VCPUs)
	}
}

// Targets asks of an operation that goes to a node whether that has the memory for it, with what its guests were told to have.
func (g *Guests) Targets(snapshot *state.Snapshot, op *operation.Operation, facts func(node string) model.NodeFacts) {
	reservation, holds := op.Reservation()
	if !g.Site.Sizes || !holds || op.Kind == operation.Adopt {
		return
	}
	for _, h := range g.Machines {
		if h.ID != op.Target {
			continue
		}
		node, used := facts(h.ID), reservation.Memory
		for _, d := range h.Sorted() {
			vm, _ := snapshot.VM(d.UUID)
			is := d.Size().Memory
			if !g.told(d, &node) {
				is = min(is, vm.Spec.Memory)
			}
			if d.UUID != op.VM {
				used += is
			}
		}
		if used > h.Capacity() {
			g.Site.Broken("I7", op.ID, "goes to %s, where guests are told to have %v with it, of %v", h.ID, used, h.Capacity())
		}
	}
}

// Runs is told when a guest has got to run. Started by Berth it is as large as its record says.
func (g *Guests) Runs(d *machine.Domain, snapshot *state.Snapshot) {
	vm, _ := snapshot.VM(d.UUID)
	if g.Site.Sizes && d.Reason == "booted" && !d.Is(machine.ByHand) && d.Epoch == vm.EpochsGiven() && d.Size() != vm.NextSize() {
		g.Site.Broken("size", d.UUID, "is started on %s with %v, and its record says %v", d.At.ID, d.Size(), vm.NextSize())
	}
}

// Accepted is the record of a VM whose size somebody keeps as it runs, and whether there is something to be kept.
func Accepted(vm model.VM, facts *model.NodeFacts, at time.Time) (after model.VM, news bool) {
	size := drift.SizeBeside(&vm, facts.Domain(vm.ID))
	if size == (model.Size{}) || vm.Operation != "" {
		return vm, false
	}
	after, err := drift.Sized(vm, size, "sim", at)
	return after, err == nil
}
