package drift

import (
	"cmp"
	"slices"
	"time"

	"berth/coordinator/admission"
	"berth/coordinator/binding"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/shared/domxml"
)

// Grown are the records of the disks that somebody has made larger, with the size that they have.
func (f *Found) Grown() (disks []model.Resource) {
	for i := range f.Disks {
		if !f.Disks[i].Shrunk() {
			disks = append(disks, f.Disks[i].Taken())
		}
	}
	return disks
}

// Look is what a leader knows at one time of what guests run with. It says which nodes are looked at, and in which order.
type Look struct {
	Records Records
	At      time.Time
	Facts   func(node string) model.NodeFacts
	// Shown are the IDs of the nodes that show a VM, by its ID, and RanOn of those that tell what it ran with there before it was gone, the
	// one that has told it last at the end.
	Shown, RanOn func(vm string) []string
}

// Records are what is stored.
type Records interface {
	estate.Facts
	Meta(key string) string
	VM(id string) (model.VM, bool)
	LiveOperationOf(vm string) (operation.Operation, bool)
}

// Found is what follows from a look at one VM.
type Found struct {
	Before, VM model.VM // its record, and what that is to be
	Known      bool     // it is one of Berth's
	// Disks are those of it that somebody has resized beside Berth. Their records are to have the size that they have (Grown).
	Disks []Resized
	// Ask is the ID of the node that has to tell the elements of its devices, before the record is changed; empty: none has to.
	Ask string
	// Again tells that nothing can be said now: an operation works on the VM, or its node does not tell. The change is not forgotten.
	Again bool
	// Unsure tells that nobody says which pools there are, so it is not known whether a node alone has a disk of the VM. It is looked at
	// again, also when what was found is stored.
	Unsure bool
}

// Settle looks at a VM of which a node has told devices that are news.
func (l *Look) Settle(told model.ToldDevices) Found {
	vm, known := l.Records.VM(told.VM)
	op, _ := l.Records.LiveOperationOf(told.VM)
	found := Found{Before: vm, VM: vm, Known: known}
	switch {
	case !known: // a stranger's
	case vm.Operation != "" && op.Kind != operation.Reboot: // which leaves the guest where it is, with what it has, and takes minutes
		found.Again = true
	default:
		node := l.runsOn(&vm)
		if node == "" {
			found.VM = l.atRest(l.ran(vm, vm.LastNode, told))
		} else {
			l.seen(&found, node, told)
			found.VM = l.resized(found.VM, node)
			if domain, _ := l.shown(&vm, node); domain != nil {
				found.Disks = ResizedBeside(l.Records, &vm, node, domain.Devices)
			}
		}
		wrote := cmp.Or(node, vm.LastNode)
		found.Unsure = found.VM.Bound == "" && wrote != "" && !l.tellsPools(wrote)
	}
	return found
}

// Answered is what follows once the node has told the elements.
func (l *Look) Answered(found Found, live []model.Device) Found {
	found.VM = l.resized(l.compare(found.Before, found.Ask, live), found.Ask)
	found.Ask = ""
	return found
}

// Unanswered is what follows if it has not.
func (l *Look) Unanswered(found Found) Found {
	domain, listed := l.shown(&found.Before, found.Ask)
	if ended := domain == nil && listed; !ended || amended(&found.Before) { // else what was told of it will do
		found.VM, found.Again = found.Before, true
	}
	found.Ask = ""
	return found
}

// Last is the record of a VM that is about to be stopped: with what its node has told now of its devices, or, if it has told nothing, with
// what it showed last. That may have been told, and not be written down yet.
func (l *Look) Last(vm model.VM, live []model.Device, told bool) model.VM {
	vm = l.resized(vm, vm.Holder)
	if told {
		return l.compare(vm, vm.Holder, live)
	}
	if domain, _ := l.shown(&vm, vm.Holder); domain != nil && !amended(&vm) {
		return l.compare(vm, vm.Holder, domain.Devices)
	}
	return vm
}

// Ran is the record of a VM that runs nowhere, with what it ran with last. Its record may have a holder still, which has lost it.
func (l *Look) Ran(vm model.VM) model.VM { return l.ran(vm, vm.LastNode, model.ToldDevices{}) }

// ran is the record of a VM that has ended on a node, with what it ran with: it has written to that. Told is what the node had told while
// it ran, if anything. Another node may tell the end: somebody moved the VM there, and it ended before anybody had written that down.
func (l *Look) ran(vm model.VM, node string, told model.ToldDevices) model.VM {
	found := func(e model.DeviceEdit) bool { return e.Found } // nobody had told what it ran with when that was found
	if vm.Settled == vm.Epoch || vm.EndUnwatched() && slices.ContainsFunc(vm.Drifted(), found) {
		return vm
	}
	for _, on := range slices.Backward(l.RanOn(vm.ID)) {
		facts := l.Facts(on)
		if last, ended := facts.LastRuns[vm.ID]; ended && last.Epoch == vm.Epoch {
			return l.compare(vm, on, last.Devices)
		}
	}
	if told.Devices != nil && told.Node == node && told.Epoch == vm.Epoch && !amended(&vm) {
		return l.compare(vm, node, told.Devices)
	}
	return vm
}

// amended tells whether somebody has changed devices of the VM with Berth. What a node has told may be older than that.
func amended(vm *model.VM) bool { return len(vm.ChangedBeside()) < len(vm.Drifted()) }

// runsOn is the node that a VM is to be looked at on: its holder, or, where that does not have it, the one on which somebody has started
// it beside Berth, or to which somebody has moved it. It writes to its disks there. Empty: it runs nowhere, or on several.
func (l *Look) runsOn(vm *model.VM) string {
	if vm.Holder != "" {
		if domain, listed := l.shown(vm, vm.Holder); domain != nil || !listed {
			return vm.Holder
		}
	}
	var found []string
	for _, node := range l.Shown(vm.ID) {
		if domain, _ := l.shown(vm, node); domain != nil {
			found = append(found, node)
		}
	}
	if len(found) != 1 {
		return vm.Holder
	}
	return found[0]
}

// seen takes into account the guest that a node shows, or what was told of it before it ended.
func (l *Look) seen(found *Found, node string, told model.ToldDevices) {
	vm := found.Before
	domain, listed := l.shown(&vm, node)
	switch {
	case !listed: // its libvirt was restarted, perhaps, or nobody hears its node
		found.Again = true
	case domain == nil:
		found.VM = l.ran(vm, node, told)
	default:
		found.VM = l.compare(vm, node, domain.Devices)
		// The elements themselves are only asked for where they are needed.
		if found.VM.Drift != nil && found.VM.Drift != vm.Drift || amended(&vm) {
			found.Ask = node
		}
	}
}

// shown is the domain of a VM as a node has shown it last; nil: nothing tells what it runs with. Listed tells whether the node tells now
// what it has.
func (l *Look) shown(vm *model.VM, node string) (domain *model.Domain, listed bool) {
	facts := l.Facts(node)
	domain = facts.Domain(vm.ID)
	if domain == nil || domain.Devices == nil || !domain.Managed || domain.Epoch != vm.Epoch ||
		!domain.State.Lives() || domain.State == model.DomainPausedMigration && node != vm.Holder { // a guest that was restored may stand so, too
		return nil, facts.DomainsKnown
	}
	return domain, facts.DomainsKnown
}

// compare is the record of a VM that runs on a node with these devices.
func (l *Look) compare(vm model.VM, node string, live []model.Device) model.VM {
	baseline, err := Baseline(l.Records, &vm)
	if err != nil {
		return vm // a link of it leads nowhere: its next start says so
	}
	facts := l.Facts(node)
	record, _ := l.Records.Node(node)
	edits := Compare(&vm, baseline, live, &facts)
	if len(edits) > 0 {
		edits = Judged(edits, baseline, admission.Permitted(l.Records, l.Facts, record.ClusterName()))
	}
	after, _ := After(vm, edits, node, l.At)
	if !l.tellsPools(node) && !writesAnew(&vm, &after, baseline) {
		return after // what it writes to was looked at when the node told its pools, or is looked at once it does
	}
	return l.Bind(after, node, l.own(node))
}

// writesAnew tells whether the record of a VM names a file for it to write to that the one before did not name.
func writesAnew(before, after *model.VM, baseline []domxml.Device) bool {
	had := binding.Written(baseline, before)
	return slices.ContainsFunc(binding.Written(baseline, after), func(source model.DiskSource) bool {
		return source.Path != "" && !slices.Contains(had, source)
	})
}

// atRest is the record of a stopped VM: somebody may have moved its disks, or declared the pool that they are in.
func (l *Look) atRest(vm model.VM) model.VM { return l.Bind(vm, vm.Bound, l.own(vm.Bound)) }

// tellsPools tells whether it is known which pools a node has. One that was removed has none of its own that count any more.
func (l *Look) tellsPools(node string) bool {
	if _, enrolled := l.Records.Node(node); !enrolled {
		return true
	}
	return l.Facts(node).PoolsKnown
}

// own are the facts of a node with the pools that it has told itself: none, while libvirt reads a slow one or nobody has heard the
// node. The pools of another node do not tell: that one has a shared pool in a folder, and this one may have a file system of its own in a
// folder of the same path. So a file counts as what this node alone has, until it says otherwise. Of a node that was removed the others
// tell.
func (l *Look) own(node string) *model.NodeFacts {
	facts := l.Facts(node)
	if _, enrolled := l.Records.Node(node); !enrolled {
		facts = l.around(node)
	}
	if !facts.PoolsKnown {
		facts.Pools, facts.PoolsKnown = nil, true
	}
	return &facts
}

// around are facts of a node that has told its pools, in the cluster of a node that may be silent.
func (l *Look) around(silent string) model.NodeFacts {
	near, _ := l.Records.Node(silent)
	for _, node := range l.Records.Nodes() {
		facts := l.Facts(node.ID)
		if node.ClusterName() == near.ClusterName() && facts.Liveness == model.Up && facts.PoolsKnown {
			return facts
		}
	}
	return model.NodeFacts{}
}

// Bound is the record of a stopped VM whose devices somebody has changed with Berth, with the node that alone has a disk of it: the one
// that it ran on last, if any.
func (l *Look) Bound(vm model.VM) model.VM {
	node := cmp.Or(vm.Bound, vm.LastNode) // a start that has failed may have written to another node than the last holder
	switch {
	case node == "":
		return vm
	case vm.Bound == "" && !l.tellsPools(node): // nothing of it is there alone, and to what it gets now nobody has written there
		facts := l.around(node)
		return l.Bind(vm, node, &facts)
	default:
		return l.Bind(vm, node, l.own(node))
	}
}

// Wrote binds a VM whose start has ended to the node that alone has a disk of it: a guest writes at once, and the next order may come
// before anybody has looked at it. So does one whose start has failed as far as anybody knows, because its host was lost. Where nobody
// tells yet which pools there are, the VM is bound, and free again once somebody does: a new leader may hear that a start has ended
// before the node has told anything else, and the guest may be gone when it does.
func (l *Look) Wrote(next *operation.Next) {
	next.Bind(l.Bind(next.VM, next.Wrote, l.own(next.Wrote)))
}

// Bind is the record of a VM with the node that alone has a disk of it, or alone is to have its document. What is not known leaves it
// as it is. Facts are of a node of the same cluster.
func (l *Look) Bind(vm model.VM, node string, facts *model.NodeFacts) model.VM {
	if !facts.PoolsKnown {
		return vm
	}
	record, _ := l.Records.Node(node)
	local, err := LocalDisk(l.Records, &vm, record.ClusterName(), facts)
	switch {
	case err != nil:
	case local != "" || binding.Lacks(l.Records, &vm, record.ClusterName()) != "":
		vm.Bound = node
	default:
		vm.Bound = ""
	}
	return vm
}
