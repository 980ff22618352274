package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/estate"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement/key"
	"berth/coordinator/schema"
	"berth/coordinator/state"
	"berth/shared/domxml"
	"berth/shared/units"
)

// AdoptVMs asks for domains that run and are not Berth's to be taken under management. No guest is touched: a mark is written
// into the domain's metadata, and a record is made of what it is.
type AdoptVMs struct {
	Domains   []string // names or UUIDs
	All       bool     // every domain that is not Berth's, instead
	Node      string   // ID of the only node; empty: all
	VDC       string   // ID of what the VMs link to; empty: none
	DryRun    bool
	RequestID string
	Caller    string
}

// AdoptedVM is what became of one domain.
type AdoptedVM struct {
	Name, ID  string
	Node      string              // name
	Operation operation.Operation // ID is empty on a dry run and if there is a problem
	Note      string              // what its owner should know
	Problem   string              // why it was not taken
	NextStep  string
}

// describeAtOnce is how many nodes are asked for XML at once.
const describeAtOnce = 8

// AdoptVMs takes domains under management, each by an operation of its own: one that cannot be taken does not hold up the
// others. They come back by node and name. A VM that is Berth's and has lost its mark, or runs where Berth has not started it,
// is taken over under its record.
func (c *Control) AdoptVMs(ctx context.Context, request AdoptVMs) ([]AdoptedVM, error) {
	if !c.Leading() {
		return nil, lead.ErrNotLeading
	}
	snapshot := c.Store.Snapshot()
	if err := lead.Quarantined(snapshot); err != nil {
		return nil, err
	}
	shown, unheard := c.Moment(snapshot).Shown()
	found, rows := choose(snapshot, request, shown, unheard)
	results := make([]AdoptedVM, len(found))
	var group errgroup.Group
	group.SetLimit(describeAtOnce)
	for i := range found {
		group.Go(func() error {
			results[i] = c.adoptOne(ctx, request, found[i], shown)
			return nil
		})
	}
	_ = group.Wait() // nobody returns an error
	rows = append(rows, results...)
	slices.SortStableFunc(rows, func(a, b AdoptedVM) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return rows, ctx.Err()
}

// choose finds the domains that a request means, and gives a row for each word that means none.
func choose(
	snapshot *state.Snapshot, request AdoptVMs, shown map[string][]evidence.Copy, unheard []string,
) (found []evidence.Copy, rows []AdoptedVM) {
	var all []evidence.Copy
	for _, copies := range shown {
		for _, one := range copies {
			if request.Node == "" || one.Node == request.Node {
				all = append(all, one)
			}
		}
	}
	slices.SortFunc(all, func(a, b evidence.Copy) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Domain.Name, b.Domain.Name), cmp.Compare(a.Domain.UUID, b.Domain.UUID))
	})
	if request.All {
		return slices.DeleteFunc(all, func(one evidence.Copy) bool {
			_, ours := snapshot.VM(one.Domain.UUID)
			return ours || one.Domain.State == model.DomainShutoff
		}), nil
	}
	for _, word := range request.Domains {
		vm, ours := snapshot.VMByName(word)
		var meant []evidence.Copy
		for _, one := range all {
			if one.Domain.Name == word || strings.EqualFold(one.Domain.UUID, word) || ours && one.Domain.UUID == vm.ID {
				meant = append(meant, one)
			}
		}
		// A definition beside a copy that runs is not what is meant.
		meant = slices.DeleteFunc(meant, func(one evidence.Copy) bool {
			return one.Domain.State == model.DomainShutoff && slices.ContainsFunc(meant, func(other evidence.Copy) bool {
				return other.Domain.UUID == one.Domain.UUID && other.Domain.State.Holds()
			})
		})
		found = append(found, meant...)
		if len(meant) == 0 {
			row := AdoptedVM{
				Name: word, Problem: "no node shows a domain of this name or UUID", NextStep: "see 'berth node show NODE' for what runs there",
			}
			if len(unheard) > 0 {
				row.Problem += "; not asked could be " + strings.Join(unheard, ", ")
			}
			rows = append(rows, row)
		}
	}
	return found, rows
}

// problem is why a domain cannot be adopted.
type problem struct{ what, next string }

func (p *problem) Error() string { return p.what }

func problemf(next, format string, args ...any) *problem {
	return &problem{what: fmt.Sprintf(format, args...), next: next}
}

// adoptOne adopts one domain, and says what became of it.
func (c *Control) adoptOne(ctx context.Context, request AdoptVMs, one evidence.Copy, shown map[string][]evidence.Copy) AdoptedVM {
	row := AdoptedVM{Name: one.Domain.Name, ID: one.Domain.UUID, Node: one.Name}
	op, note, err := c.tryAdopt(ctx, request, one, shown)
	if err == nil && one.Domain.Autostart {
		note = strings.TrimPrefix(note+"; its autostart is switched off: a host that boots would start it, wherever it runs by then", "; ")
	}
	row.Operation, row.Note = op, note
	var known *problem
	var refused *lead.Error
	switch {
	case err == nil:
	case errors.As(err, &known):
		row.Problem, row.NextStep = known.what, known.next
	case errors.As(err, &refused):
		row.Problem, row.NextStep = refused.Message, refused.NextStep
	default:
		row.Problem, row.NextStep = err.Error(), "try again"
	}
	return row
}

func (c *Control) tryAdopt(
	ctx context.Context, request AdoptVMs, one evidence.Copy, shown map[string][]evidence.Copy,
) (op operation.Operation, note string, err error) {
	uuid := one.Domain.UUID
	key := ""
	if request.RequestID != "" {
		key = request.RequestID + "/" + uuid
		if op, repeated := lifecycle.OperationOf(c.Store.Snapshot(), key); repeated {
			return op, "", nil
		}
	}
	wanted := adoption{node: one.Node, caller: request.Caller, request: key}
	if vm, ours := c.Store.Snapshot().VM(uuid); ours {
		if err := c.retakable(ctx, vm, one, shown[uuid]); err != nil || request.DryRun {
			return operation.Operation{}, "", err
		}
		op, err = c.adopt(ctx, func(snapshot *state.Snapshot) (adoption, error) {
			now, known := snapshot.VM(uuid)
			if !known || now.Revision != vm.Revision {
				return adoption{}, &lead.Error{
					Code: lead.Busy, Subject: "vm/" + vm.Name, Message: fmt.Sprintf(
						"VM %q has changed meanwhile", vm.Name,
					), NextStep: "look again, and adopt it again",
				}
			}
			wanted.vm = now
			wanted.vm.LastEpoch = max(now.LastEpoch, one.Domain.Epoch) // somebody may have written a higher one
			return wanted, nil
		})
		return op, "", err
	}
	if err := adoptable(one, shown, request.Domains); err != nil {
		return operation.Operation{}, "", err
	}
	vm, note, err := c.described(ctx, request, one)
	if err != nil {
		return operation.Operation{}, "", err
	}
	prepare := func(snapshot *state.Snapshot) (adoption, error) {
		wanted.vm, wanted.created = vm, true
		return wanted, c.inherited(snapshot, &wanted.vm, one)
	}
	if request.DryRun {
		_, err := prepare(c.Store.Snapshot())
		return operation.Operation{}, note, err
	}
	op, err = c.adopt(ctx, prepare)
	return op, note, err
}

// adoptable refuses what cannot become a VM, by what the nodes show.
func adoptable(one evidence.Copy, shown map[string][]evidence.Copy, words []string) error {
	domain := &one.Domain
	switch domain.State {
	case model.DomainRunning:
	case model.DomainShutoff:
		return problemf(
			fmt.Sprintf("start it with 'virsh start %s' on %s, or make a VM of its XML with 'berth vm add --xml FILE'", domain.Name, one.Name),
			"it is off",
		)
	case model.DomainPausedMigration:
		return problemf("wait until the migration has ended", "it is being migrated")
	default:
		return problemf(
			fmt.Sprintf("let it run with 'virsh resume %s' on %s", domain.Name, one.Name), "it is %s (%s)", domain.State, domain.Reason,
		)
	}
	if err := endless(&one); err != nil {
		return err
	}
	for _, other := range shown[domain.UUID] {
		switch {
		case other.Node == one.Node:
		case other.Domain.State.Holds():
			return problemf(
				"find out which is the right one, and end the other with 'virsh destroy'", "its UUID is on %s too, %s there", other.Name,
				other.Domain.State,
			)
		default:
			return problemf(fmt.Sprintf(
				"remove it with 'virsh undefine %s' on %s: somebody could start it a second time", other.Domain.Name, other.Name,
			),
				"a definition with its UUID is on %s too", other.Name)
		}
	}
	if slices.ContainsFunc(words, func(word string) bool { return strings.EqualFold(word, domain.UUID) }) {
		return nil // this one is meant, whatever it is called elsewhere
	}
	for _, copies := range shown {
		for _, other := range copies {
			if other.Domain.Name == domain.Name && other.Domain.UUID != domain.UUID {
				return problemf("rename one, or adopt one of them by its UUID",
					"another domain is called %s, on %s: names of VMs are unique", domain.Name, other.Name)
			}
		}
	}
	return nil
}

// epochLimit is above what any VM will ever be given: each start and each move takes one.
const epochLimit = 1 << 62

// endless refuses a domain whose mark leaves no room for a higher epoch.
func endless(c *evidence.Copy) error {
	if c.Domain.Epoch < epochLimit {
		return nil
	}
	return problemf(fmt.Sprintf("take its mark out with 'virsh metadata %s --uri %s --remove' on %s", c.Domain.Name, domxml.Namespace, c.Name),
		"its mark has epoch %d, which Berth has never written", c.Domain.Epoch)
}

// retakable refuses to write a new mark for a VM that is as recorded, or of which more than one copy is there. A holder that
// does not have it refuses it for good first.
func (c *Control) retakable(ctx context.Context, vm model.VM, one evidence.Copy, copies []evidence.Copy) error {
	alive := evidence.Living(copies)
	switch {
	case vm.Operation != "":
		return lead.VMBusy(c.Store.Snapshot(), vm)
	case vm.Holder == one.Node && one.Is(&vm):
		return problemf(fmt.Sprintf("see 'berth vm show %s'", vm.Name), "it is VM %s already", vm.Name)
	case one.Domain.State == model.DomainShutoff:
		return problemf(fmt.Sprintf("start it with 'berth vm start %s'", vm.Name), "it is off")
	case one.Domain.Name != vm.Name:
		return problemf(fmt.Sprintf("shut it down, and name it back with 'virsh domrename %s %s' on %s", one.Domain.Name, vm.Name, one.Name),
			"it is VM %s under another name", vm.Name)
	case one.Domain.State != model.DomainRunning:
		return problemf(
			fmt.Sprintf("let it run with 'virsh resume %s' on %s", vm.Name, one.Name), "it is %s (%s)", one.Domain.State, one.Domain.Reason,
		)
	case endless(&one) != nil:
		return endless(&one)
	case len(alive) > 1:
		return problemf("end the other with 'virsh destroy', see 'berth vm show "+vm.Name+"'", "it is %s", evidence.Places(alive))
	case vm.Holder == "" || vm.Holder == one.Node:
		return nil
	case !c.Moment(c.Store.Snapshot()).Lacks(vm) || !c.refused(ctx, vm):
		return problemf("wait until that node answers, or prove that it is off with 'berth node fence'",
			"%s holds it, and has not shown that it does not run it any more", lead.NodeName(c.Store.Snapshot(), vm.Holder))
	}
	return nil
}

// described is the record of a domain, as its node describes it, with what its owner should know.
func (c *Control) described(ctx context.Context, request AdoptVMs, one evidence.Copy) (vm model.VM, note string, err error) {
	limited, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	done, err := c.Agents.Perform(limited, one.Node, lead.Task{Describe: one.Domain.UUID})
	if err != nil {
		return vm, "", problemf(fmt.Sprintf("see 'virsh dumpxml %s' on %s", one.Domain.Name, one.Name), "%v", err)
	}
	text, err := domxml.WithoutMark(done.DomainXML)
	if err != nil {
		return vm, "", problemf("this is a defect of berth: please report it with the domain's XML", "%v", err)
	}
	info, err := domxml.Parse(text)
	if err != nil {
		return vm, "", problemf(fmt.Sprintf("see 'virsh dumpxml %s' on %s", one.Domain.Name, one.Name), "%v", err)
	}
	vm = model.VM{
		ID: one.Domain.UUID, Name: one.Domain.Name, Desired: model.Running, CreatedAt: c.Now(), StartedAt: one.Domain.Since,
		Spec: model.VMSpec{Memory: units.Bytes(info.MemoryBytes), VCPUs: info.VCPUs, XML: text},
		VDC:  request.VDC, Adopted: true, Persistent: one.Domain.Persistent,
	}
	if info.Passthrough {
		vm.CPU, vm.PassedCPU = model.CPUHostPassthrough, c.Inventory.Facts(one.Node, c.Now()).HostCPU
	}
	if err := model.ValidateName("VM", vm.Name); err != nil {
		return vm, "", problemf("shut it down, rename it with 'virsh domrename', and start it", "%v", err)
	}
	if err := model.ValidateSpec(vm.Spec); err != nil {
		return vm, "", problemf(fmt.Sprintf("see 'virsh dumpxml %s' on %s", one.Domain.Name, one.Name), "%v", err)
	}
	local, err := c.localDisk(one.Node, text)
	if err != nil {
		return vm, "", problemf(fmt.Sprintf("see 'virsh dumpxml %s' on %s", one.Domain.Name, one.Name), "%v", err)
	}
	if local != "" {
		vm.Migration = model.MigrateNever
		note = fmt.Sprintf("it stays on its node: disk %s is in no storage pool that Berth knows as shared; 'berth vm set %s --migration "+
			"automatic' if all nodes see it",
			local, vm.Name)
	}
	return vm, note, nil
}

// localDisk is a disk that other nodes may not see, as its document names it; empty: there is none. What is in the folder of
// a shared pool, and what comes over a network, is seen by all.
func (c *Control) localDisk(node, text string) (string, error) {
	disks, err := domxml.Disks(text)
	if err != nil {
		return "", err
	}
	snapshot := c.Store.Snapshot()
	record, _ := snapshot.Node(node)
	shared := map[string]bool{} // by libvirt's name
	for _, pool := range snapshot.Resources(model.KindPool) {
		settings := model.PoolSettingsOf(&pool)
		inside, _ := snapshot.Resource(pool.Links[schema.LinkCluster])
		if settings.Scope == model.PoolShared && cmp.Or(inside.Name, model.DefaultCluster) == record.ClusterName() {
			shared[settings.Source] = true
		}
	}
	facts := c.Inventory.Facts(node, c.Now())
	for _, disk := range disks {
		if disk.ReadOnly || disk.Path == "" && (disk.Volume == "" || shared[disk.Pool]) {
			continue
		}
		seen := slices.ContainsFunc(facts.Pools, func(p model.PoolFacts) bool {
			return shared[p.Name] && p.Path != "" && strings.HasPrefix(path.Clean(disk.Path), strings.TrimSuffix(p.Path, "/")+"/")
		})
		if !seen {
			return cmp.Or(disk.Path, disk.Pool+"/"+disk.Volume), nil
		}
	}
	return "", nil
}

// inherited completes the record of a domain that becomes a VM with what it inherits where it runs.
func (c *Control) inherited(snapshot *state.Snapshot, vm *model.VM, one evidence.Copy) error {
	if other, taken := snapshot.VMByName(vm.Name); taken {
		return problemf("rename one of them", "another VM is called %s (ID %s)", vm.Name, other.ID)
	}
	node, known := snapshot.Node(one.Node)
	if !known {
		return problemf("enrol the node again", "node %s was removed", one.Name)
	}
	if inside, declared := snapshot.ResourceByName(
		model.KindCluster, node.ClusterName(),
	); vm.VDC == "" && declared && inside.Name != model.DefaultCluster {
		vm.Within = inside.ID
	}
	there := *vm
	there.Holder = node.ID
	resolved, err := estate.Resolve(snapshot, there)
	if err != nil {
		return lifecycle.Unlinked(*vm, err)
	}
	if resolved.Cluster != node.ClusterName() {
		return problemf("name another VDC, or none", "its VDC is in cluster %s, and %s is in %s", resolved.Cluster, node.Name, node.ClusterName())
	}
	vm.Owner, vm.Resident = resolved.Owner, key.ResidentsOf(key.WeightedOf(resolved.Customer))
	if model.SettingsOf(&resolved.Record).Storage == model.LocalStorage {
		vm.Home = node.ID
	}
	// A VM of this UUID may have been here before, and its mark may be left: agents remember its epochs.
	vm.Epoch = max(snapshot.LastEpoch(vm.ID), one.Domain.Epoch)
	vm.LastEpoch = vm.Epoch
	return nil
}

// adoption is what is to be marked: a VM whose record exists, or is made with it.
type adoption struct {
	vm      model.VM
	node    string // ID
	created bool
	caller  string
	request string
}

// adopt commits an adoption: the record and the operation as one. Prepare is asked again when the state moved on.
func (c *Control) adopt(ctx context.Context, prepare func(*state.Snapshot) (adoption, error)) (op operation.Operation, err error) {
	err = c.InTurn(ctx, "vm", func() (lead.Retry, error) {
		if !c.Leading() {
			return lead.Decided, lead.ErrNotLeading
		}
		snapshot, at := c.Store.Snapshot(), c.Now()
		wanted, err := prepare(snapshot)
		if err != nil {
			return lead.Decided, err
		}
		vm, expected := wanted.vm, wanted.vm.Revision
		vm.LastEpoch = vm.EpochsGiven() + 1
		op = operation.Operation{
			ID: c.NewID(), Kind: operation.Adopt, Caller: wanted.caller, Request: wanted.request, VM: vm.ID, VMName: vm.Name,
			Target: wanted.node, TargetName: lead.NodeName(snapshot, wanted.node), Epoch: vm.LastEpoch, Created: wanted.created,
			Phase: operation.Dispatched, Step: 1, Attempt: 1, CreatedAt: at, UpdatedAt: at,
		}
		if vm.Holder != "" && vm.Holder != wanted.node {
			op.Source, op.SourceName = vm.Holder, lead.NodeName(snapshot, vm.Holder)
		}
		vm.Operation, vm.Desired = op.ID, model.Running
		first := lifecycle.First{
			Next: operation.Next{Operation: op, VM: vm}, Revision: expected, Read: []state.Expectation{lifecycle.NodeUnmoved(snapshot, wanted.node)},
		}
		if vdc, linked := snapshot.Resource(vm.VDC); linked && wanted.created {
			first.Read = append(first.Read, state.Expectation{Table: state.Resources, ID: vdc.ID, Revision: vdc.Revision})
		}
		started, again, err := c.BeginOperation(ctx, first)
		op = started.Operation
		return again, err
	})
	return op, err
}
