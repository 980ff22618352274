package lifecycle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"berth/coordinator/control/lead"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/placement/across"
	"berth/coordinator/placement/key"
	"berth/coordinator/schema"
	"berth/coordinator/state"
	"berth/coordinator/view"
)

// searched is in which clusters a VM may be placed and what it has in each, as of one snapshot.
type searched struct {
	across.Search
	vm       model.VM
	facts    estate.Facts               // the snapshot, with what is made together with the VM
	resolved map[string]estate.Resolved // by cluster name
	view     *view.View
}

// search walks up from a VM, on what the nodes show now. See searchOn.
func (p *Placer) search(snapshot *state.Snapshot, facts estate.Facts, vm model.VM, purpose placement.Purpose) (searched, error) {
	return searchOn(p.Inventory.View(snapshot, p.Now()), snapshot, facts, vm, purpose)
}

// searchOn walks up from a VM. The VM has no part in the figures that a start is judged by: its record still names the node
// that it ran on when it is started after its guest switched itself off. The error is an *Error: the estate does not hold
// together above it, or no cluster may take it.
func searchOn(
	view *view.View, snapshot *state.Snapshot, facts estate.Facts, vm model.VM, purpose placement.Purpose,
) (searched, error) {
	if before, there := snapshot.VM(vm.ID); there {
		view = view.Without(before.ID, before.Holder)
	}
	found, resolved, err := estate.SearchOf(facts, view, vm, purpose)
	if err != nil {
		return searched{}, Unlinked(vm, err)
	}
	return searched{Search: found, vm: vm, facts: facts, resolved: resolved, view: view}, nil
}

// Unlinked is the refusal of a VM that links to what is not there.
func Unlinked(vm model.VM, err error) *lead.Error {
	return &lead.Error{Code: lead.Invalid, Subject: "vm/" + vm.Name, Message: err.Error(), NextStep: "link it to what there is, see 'berth " +
		"vm --help'"}
}

// ask adds to what is asked of each cluster.
func (s *searched) ask(change func(*placement.Request)) {
	for i := range s.Options {
		change(&s.Options[i].Request)
	}
}

// only leaves the cluster of a node that is named: then nothing else is to be put in order.
func (s *searched) only(snapshot *state.Snapshot, nodeID string) {
	node, known := snapshot.Node(nodeID)
	at := slices.IndexFunc(s.Options, func(o across.Option) bool { return known && o.Cluster == node.ClusterName() })
	if at >= 0 && len(s.Options) > 1 {
		s.Options, s.Bound = s.Options[at:at+1:at+1], "node/"+node.Name+" is named"
	}
}

// local tells whether a cluster that the VM may be placed in has local storage.
func (s *searched) local(clusterName string) bool {
	one := s.resolved[clusterName]
	return model.SettingsOf(&one.Record).Storage == model.LocalStorage
}

// localOnly tells whether the VM is bound to a cluster with local storage.
func (s *searched) localOnly() bool { return len(s.Options) == 1 && s.local(s.Options[0].Cluster) }

// unchanged expects what a decision has read of the estate: the clusters that were compared, with their settings, node keys
// and keys, the pods and zones that they are in and their policies; what says where the VM runs; its disks, what they are
// copies of, and the pools that were chosen. The default cluster has no record until it is declared, and a built-in policy
// has none.
func (s *searched) unchanged(snapshot *state.Snapshot, decision placement.Decision) []state.Expectation {
	read := map[string]uint64{}
	follow := func(id string) model.Resource {
		record, found := snapshot.Resource(id)
		if found {
			read[id] = record.Revision
		}
		return record
	}
	for _, name := range slices.Sorted(maps.Keys(s.resolved)) {
		record := s.resolved[name].Record
		read[record.ID] = record.Revision
		follow(record.Links[schema.LinkPolicy])
		pod := follow(record.Links[schema.LinkPod])
		follow(pod.Links[schema.LinkZone])
	}
	follow(s.vm.VDC)
	follow(s.vm.Within)
	for _, id := range s.vm.Disks {
		follow(id)
		disk, _ := s.facts.Resource(id)
		follow(disk.Links[schema.LinkImage])
		if disk.Volume != nil {
			follow(disk.Volume.Pool)
		}
	}
	for i := range decision.Pools {
		follow(decision.Pools[i].Pool)
	}
	expect := make([]state.Expectation, 0, len(read))
	for _, id := range slices.Sorted(maps.Keys(read)) {
		expect = append(expect, state.Expectation{Table: state.Resources, ID: id, Revision: read[id]})
	}
	return expect
}

// target is the node that a decision found for a start, with what the start makes there and does to the VM.
func (s *searched) target(snapshot *state.Snapshot, decision placement.Decision) (operation.Target, error) {
	node, _ := snapshot.Node(decision.Winner)
	in := s.resolved[decision.Request.Cluster]
	target := operation.Target{
		Node: decision.Winner, Name: decision.WinnerName, Decision: decision.ID, Sticky: model.StickyCopies(&in.Record, &node),
		Resident: key.ResidentsOf(decision.Request.CustomerKeys), Owner: in.Owner,
		MakesHome: s.local(in.Cluster) && s.vm.Home == "", CPU: decision.Request.CPU,
		Boot: cmp.Or(s.view.Node(node.ID).Facts.Boot, node.Boot), // its record hears of a new one later
	}
	var err error
	if target.Volumes, _, err = estate.VolumesOf(s.facts, s.vm, decision.Pools); err != nil {
		return operation.Target{}, Unlinked(s.vm, err)
	}
	spec, err := estate.SpecIn(s.facts, s.vm, decision.Pools)
	if err != nil {
		return operation.Target{}, Unlinked(s.vm, err)
	}
	switch {
	case spec.XML != "":
		target.CPU = "" // as the XML says
	case spec.CPU == model.CPUHostPassthrough:
		target.CPU, target.PassedCPU = spec.CPU, s.view.Node(node.ID).Facts.HostCPU
	}
	spec.CPU = target.CPU
	if s.vm.Image != "" || len(s.vm.Disks)+len(s.vm.NICs) > 0 || spec.CPU != s.vm.Spec.CPU {
		target.Spec = &spec
	}
	return target, nil
}

// decide runs the engine on the view of the search. The decision is of the view's moment.
func (p *Placer) decide(search searched, caller string) placement.Decision {
	decision := across.Place(search.view, search.Search, p.Random())
	decision.ID, decision.Caller = model.NewID(search.view.At, p.Random()), caller
	if p.Logger.IsDebug() {
		if table := placement.RankCSV(decision); table != "" {
			p.Logger.Debug("ranks", "decision", decision.ID, "vm", search.vm.Name, "table", "\n"+table)
		}
	}
	return decision
}

// usable refuses disks that something else is done to. What an image is, is looked at when its copies are made.
func usable(facts estate.Facts, vm model.VM) error {
	for _, id := range vm.Disks {
		disk, _ := facts.Resource(id)
		switch {
		case disk.Volume == nil:
		case disk.Volume.Doomed:
			return &lead.Error{
				Code: lead.Conflict, Subject: "vm/" + vm.Name, Message: fmt.Sprintf("disk %q of VM %q is being removed", disk.Name, vm.Name),
				NextStep: fmt.Sprintf("finish that with 'berth vm delete %s', or take the disk from the VM", vm.Name),
			}
		case estate.SizeWanted(&disk) > disk.Volume.Capacity:
			return &lead.Error{
				Code: lead.Busy, Subject: "disk/" + disk.Name, Message: fmt.Sprintf("disk %q is being made larger", disk.Name),
				NextStep: fmt.Sprintf("wait for it, or finish it with 'berth disk grow %s %d'", disk.Name, estate.SizeWanted(&disk)),
			}
		}
	}
	return nil
}

// withRoot is a snapshot together with a disk that is made at once with its VM.
type withRoot struct {
	*state.Snapshot
	root model.Resource
}

// factsOf are a snapshot with the disk that is made with the VM, if one is.
func factsOf(snapshot *state.Snapshot, root *model.Resource) estate.Facts {
	if root == nil {
		return snapshot
	}
	return withRoot{snapshot, *root}
}

func (w withRoot) Resource(id string) (model.Resource, bool) {
	if id == w.root.ID {
		return w.root, true
	}
	return w.Snapshot.Resource(id)
}

func (w withRoot) ResourceByName(kind model.Kind, name string) (model.Resource, bool) {
	if kind == w.root.Kind && name == w.root.Name {
		return w.root, true
	}
	return w.Snapshot.ResourceByName(kind, name)
}

func (w withRoot) Resources(kind model.Kind) []model.Resource {
	found := w.Snapshot.Resources(kind)
	if kind != w.root.Kind {
		return found
	}
	found = append(found, w.root)
	slices.SortFunc(found, func(a, b model.Resource) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

// rootOf completes the disk that a new VM is made with.
func (p *Placer) rootOf(request *StartVM) *model.Resource {
	if request.Root == nil {
		return nil
	}
	root := *request.Root
	root.ID, root.CreatedAt = p.NewID(), p.Now()
	return &root
}
