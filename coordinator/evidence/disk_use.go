package evidence

import (
	"cmp"
	"fmt"
	"slices"

	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// DiskUse is a domain that writes to a disk of a VM, and is not the VM. Two that write to one disk destroy what is on it.
type DiskUse struct {
	Node   string // name of the node that shows it
	Domain model.Domain
	Disk   model.DiskSource // as the domain names it
	Last   bool             // the node does not tell what it runs now, and has shown that last
	Begins bool             // the domain is a VM that starts there, or has been started, and that the node does not show yet

	// Failed is the start that has left the domain; nil: it is none of such a start.
	Failed *FailedStart
}

// Text says what is in the way of the VM, and Next what ends that.
func (u *DiskUse) Text(vm string) string {
	text := fmt.Sprintf("domain %q on %s writes to disk %s of VM %q", u.Domain.Name, u.Node, u.Disk.Text(), vm)
	switch {
	case u.Begins:
		text = fmt.Sprintf("VM %q, which starts on %s, writes to disk %s of VM %q", u.Domain.Name, u.Node, u.Disk.Text(), vm)
	case u.Last:
		text += ", as that node has shown last: it does not tell now what it runs"
	case u.Failed != nil:
		text += ", as that node has shown last: " + u.Failed.Text()
	}
	return text
}

// Next says what ends it.
func (u *DiskUse) Next() string {
	if u.Begins {
		return fmt.Sprintf("stop that one ('berth vm stop %s'), or take the disk from one of the two ('berth vm detach disk')", u.Domain.Name)
	}
	if u.Last {
		return fmt.Sprintf("wait until %s tells what it runs, or prove that it is off with 'berth node fence %s' (--confirmed-off if you have "+
			"seen it)", u.Node, u.Node)
	}
	if u.Failed != nil {
		return "try again in some seconds"
	}
	return fmt.Sprintf("end that domain ('virsh shutdown %s' on %s), or take the disk from it ('virsh detach-disk') or from the VM",
		model.Argument(u.Domain.Name), u.Node)
}

// WhoHolds says who has the disk of the VM of an operation, which its node could not start because another QEMU has it open. The node knows
// its own processes alone; said is what it knows.
func (s *Survey) WhoHolds(operation, node, said string) string {
	for _, op := range s.LiveOperations() {
		vm, known := s.VM(op.VM)
		if op.ID != operation || !known {
			continue
		}
		if use, used := s.UsedDisk(&vm, node); used {
			return fmt.Sprintf("its disk %s is held by %s, where domain %q has it: %s", use.Disk.Text(), use.Node, use.Domain.Name, use.Next())
		}
	}
	return s.NodeName(node) + ": " + said
}

// disk is one that a VM is started with, and the nodes on which its name means that disk.
type disk struct {
	source model.DiskSource
	on     func(node *model.Node) bool
	only   []string // IDs of those nodes, where they are few; nil: those of a cluster
}

// UsedDisk is a domain that writes to a disk of a VM which is to start on a node; empty: where it was last. Of a node that does not tell
// what it runs, what it has shown last counts until it is proven to be off: its guests run on while its libvirt hangs or nobody hears it.
// What such a node has begun since is not known, nor what it showed to an earlier leader.
func (s *Survey) UsedDisk(vm *model.VM, target string) (DiskUse, bool) {
	disks := s.disksOf(vm, target)
	if len(disks) == 0 {
		return DiskUse{}, false
	}
	var going DiskUse // one that stays says more
	for _, one := range s.withDisks(disks) {
		if one.worth == off {
			continue
		}
		for _, domain := range one.facts.Domains {
			if domain.UUID == vm.ID || !domain.State.Holds() {
				continue
			}
			for _, source := range domain.Sources {
				same := func(d disk) bool {
					return d.source.FileName() == source.FileName() && d.on(&one.node) && maySame(d.source, source, &one.facts)
				}
				if !slices.ContainsFunc(disks, same) || one.worth != heard && s.runsNowhere(domain.UUID) {
					continue
				}
				use := DiskUse{Node: one.node.Name, Domain: domain, Disk: source, Last: one.worth != heard}
				if !use.Last {
					use.Failed = s.FailedStart(&domain)
				}
				if use.Failed == nil {
					return use, true
				}
				going = use
			}
		}
	}
	if use, used := begins(s, vm, target, disks); used {
		return use, true
	}
	return going, going.Failed != nil
}

// begins is another VM whose record names one of some disks, and that starts now, or has started and is not shown yet. Of two that are
// started at once no node shows anything.
func begins(s *Survey, vm *model.VM, target string, disks []disk) (DiskUse, bool) {
	facts := s.Facts(cmp.Or(target, vm.LastNode))
	for _, one := range disks {
		for _, name := range namesOf(one.source, &facts) {
			for other := range s.SharedVMsWithDisk(name) {
				node := unshown(s, other)
				place, known := s.Node(node)
				if other.ID == vm.ID || !known || !one.on(&place) || detached(other, one.source) {
					continue
				}
				return DiskUse{
					Node: place.Name, Domain: model.Domain{UUID: other.ID, Name: other.Name}, Disk: one.source, Begins: true,
				}, true
			}
		}
	}
	return DiskUse{}, false
}

// unshown is the node on which a VM starts, or where it was started and is not shown yet; empty: neither.
func unshown(s *Survey, vm *model.VM) string {
	if op, live := s.LiveOperationOf(vm.ID); live && op.Kind == operation.Start {
		return op.Target
	}
	facts := s.Facts(vm.Holder)
	if shown := facts.Domain(vm.ID); shown != nil && shown.State.Holds() || s.Lacks(*vm) || s.runsNowhere(vm.ID) {
		return ""
	}
	return vm.Holder
}

// withDisks are the nodes that may show one of some disks, by name: all, if nobody can say which ones do.
func (s *Survey) withDisks(disks []disk) []*hearing {
	if s.WithDisk == nil {
		return s.everyone()
	}
	var ids []string
	for i := range disks {
		if disks[i].only != nil {
			ids = append(ids, disks[i].only...)
		} else {
			ids = append(ids, s.WithDisk(disks[i].source.FileName())...)
		}
	}
	return s.those(ids)
}

// runsNowhere tells whether a domain is a VM of which it is proven that it runs nowhere, whatever a node has shown last.
func (s *Survey) runsNowhere(uuid string) bool {
	vm, known := s.VM(uuid)
	if !known || vm.Operation != "" {
		return false
	}
	answer := s.Verdict(&vm, "")
	return answer.May
}

// disksOf are those that a VM writes to when it is started on a node.
func (s *Survey) disksOf(vm *model.VM, target string) []disk {
	if target == "" {
		target = vm.LastNode
	}
	place, _ := s.Node(target)
	there := func(node *model.Node) bool { return node.ID == target }
	among := func(node *model.Node) bool { return node.ClusterName() == place.ClusterName() }
	files, few := among, []string(nil) // as a cluster is that nobody has declared
	for _, cluster := range s.Clusters() {
		if cluster.Name == place.ClusterName() && model.SettingsOf(&cluster).Storage == model.LocalStorage {
			files, few = there, []string{target}
		}
	}
	var all []disk
	named := func(source model.DiskSource) {
		one := disk{source, files, few}
		if source.Pool != "" {
			one.on, one.only = there, []string{target}
			if pool, shared := s.poolNamed(source.Pool, place.ClusterName()); shared {
				one.on, one.only = s.nodesOf(&pool), nil
			}
		}
		all = append(all, one)
	}
	for _, source := range operation.RecordedDisks(vm) {
		if !detached(vm, source) {
			named(source)
		}
	}
	for _, edit := range vm.Drifted() {
		if edit.Source != (model.DiskSource{}) && !edit.Media {
			named(edit.Source)
		}
	}
	for _, id := range vm.Disks {
		record, _ := s.Resource(id)
		if record.Volume == nil {
			continue
		}
		pool, _ := s.Resource(record.Volume.Pool)
		one := disk{model.DiskSource{Pool: model.PoolSettingsOf(&pool).Source, Volume: record.Volume.Name}, s.nodesOf(&pool), nil}
		if detached(vm, one.source) {
			continue
		}
		if len(record.Volume.Nodes) > 0 {
			one.on = func(node *model.Node) bool { return slices.Contains(record.Volume.Nodes, node.ID) }
			one.only = record.Volume.Nodes
		}
		all = append(all, one)
	}
	return all
}

// poolNamed is the shared pool of a cluster that has this name on its nodes.
func (s *Survey) poolNamed(source, cluster string) (model.Resource, bool) {
	for _, pool := range s.Resources(model.KindPool) {
		settings := model.PoolSettingsOf(&pool)
		if settings.Source == source && settings.Scope == model.PoolShared && s.clusterOf(&pool) == cluster {
			return pool, true
		}
	}
	return model.Resource{}, false
}

// nodesOf are the nodes that see a shared pool: those of its cluster.
func (s *Survey) nodesOf(pool *model.Resource) func(*model.Node) bool {
	cluster := s.clusterOf(pool)
	return func(node *model.Node) bool { return node.ClusterName() == cluster }
}

// clusterOf is the name of the cluster that a record belongs to.
func (m Moment) clusterOf(record *model.Resource) string {
	if cluster, known := m.Resource(record.Links[model.LinkCluster]); known {
		return cluster.Name
	}
	return model.DefaultCluster
}

// detached tells whether a VM is started without a disk that its record names. What was replaced by an overlay is still read.
func detached(vm *model.VM, source model.DiskSource) bool {
	for _, ran := range vm.Ran {
		taken := func(e model.DeviceEdit) bool { return e.Is == "" && e.Names(ran.Kind, ran.Key) }
		if ran.Source == source && slices.ContainsFunc(vm.Edits(), taken) {
			return true
		}
	}
	return false
}
