package inventory

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/coordinator/unanswered"
	"berth/coordinator/view"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// site is a small site to which anything happens.
type site struct {
	*testing.T
	random  *rand.Rand
	records *state.Store
	soft    *Store
	agents  map[string]*agent
	count   int // for names that nobody has

	stored, refused int
}

// eventsOf is how many times something happens; each time, it is one to three things. EVENTS=100000 is the long form.
func eventsOf(t *testing.T) int {
	text := os.Getenv("EVENTS")
	if text == "" {
		return 6000
	}
	events, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("EVENTS=%s is no number", text)
	}
	return events
}

// A view that is made of an earlier one is the view that would be made anew, whatever has happened in between: in all that anybody
// reads of it.
func TestALaterViewIsTheOneMadeAnew(t *testing.T) {
	events := eventsOf(t)
	synctest.Test(t, func(t *testing.T) {
		seed := uint64(rand.Int64())
		t.Logf("seed %d", seed)
		s := &site{
			T: t, random: rand.New(rand.NewPCG(seed, 0)), records: state.NewStore(), soft: newStore(), agents: map[string]*agent{},
		}
		for range 6 {
			s.node()
		}
		later, kinds := 0, map[string]int{}
		happenings := []func(){
			s.vm, s.vm, s.vm, s.vm, s.operation, s.operation, s.operation, s.resource, s.hear, s.hear, s.hear, s.hear, s.hear, s.time,
			s.time, s.nodeRecord, s.node,
		}
		for n := range events {
			for range 1 + s.random.IntN(3) {
				happenings[s.random.IntN(len(happenings))]()
			}
			if s.random.IntN(400) == 0 {
				s.soft.SetApart(model.PoolsApart{})
			}
			if s.random.IntN(1000) == 0 {
				s.soft.Reset()
				clear(s.agents)
			}
			snapshot, now := s.records.Snapshot(), time.Now()
			base, changed := s.soft.views.base(snapshot, now)
			if base != nil && s.soft.views.later(base, changed, snapshot, now) != nil {
				later++
			}
			got, want := s.soft.View(snapshot, now), s.soft.views.anew(snapshot, now).view
			if got.At != want.At { // one that lasts still: its words may be a quarter of a second old
				time.Sleep(viewLasts)
				now = time.Now()
				got, want = s.soft.View(snapshot, now), s.soft.views.anew(snapshot, now).view
			}
			for _, one := range s.present(want) {
				kinds[one]++
			}
			if what := cmp.Or(s.difference(got, want), s.showingDiffers(), s.settledDiffers(snapshot, now), s.factsDiffer(now)); what != "" {
				t.Fatalf("after %d: %s", n, what)
			}
		}
		if s.stored < 2*s.refused {
			t.Errorf("the state has refused %d of %d changes: few things happen", s.refused, s.stored+s.refused)
		}
		for _, kind := range []string{
			"in flight", "leaving", "foreign", "young", "HA", "resident", "disks", "members of group a", "members of group b", "baseline Nehalem",
			"baseline Westmere",
			string(model.Up), string(model.Suspect), string(model.Unreachable), string(model.Degraded),
		} {
			if kinds[kind] < 100 {
				t.Errorf("of %q there were %d: the test says little of it", kind, kinds[kind])
			}
		}
		if later < events/2 {
			t.Errorf("only %d of %d views were made of an earlier one", later, events)
		}
	})
}

// present are the things in a view that a test without them would say nothing of.
func (s *site) present(v *view.View) []string {
	var present []string
	for _, node := range v.Nodes.All() {
		for _, one := range node.Allocations {
			for kind, is := range map[string]bool{
				"in flight": one.InFlight, "leaving": one.Leaving, "foreign": one.Foreign, "young": one.Young, "HA": one.HA,
				"resident": len(one.Resident) > 0,
			} {
				if is {
					present = append(present, kind)
				}
			}
		}
		present = append(present, string(node.Facts.Liveness))
	}
	for _, pool := range v.Pools() {
		for _, share := range pool.Shares {
			if share.Disks > 0 {
				present = append(present, "disks")
			}
		}
	}
	present = append(present, "baseline "+v.CPUBaseline(model.DefaultCluster))
	for _, group := range v.Groups(model.DefaultCluster) {
		if len(group.VMs) > 0 {
			present = append(present, "members of group "+group.Name)
		}
	}
	return present
}

// difference tells what differs between two views.
func (s *site) difference(got, want *view.View) string {
	if got.Nodes.Len() != want.Nodes.Len() {
		return fmt.Sprintf("%d nodes, not %d", got.Nodes.Len(), want.Nodes.Len())
	}
	for i, node := range want.Nodes.All() {
		if !reflect.DeepEqual(got.Nodes.At(i), node) {
			return fmt.Sprintf("node %d:\n%+v\n%+v", i, *got.Nodes.At(i), *node)
		}
	}
	for _, one := range []struct {
		what      string
		got, want any
	}{
		{"pools", got.Pools(), want.Pools()},
		{"customer's VMs", got.AccountVMs("acme"), want.AccountVMs("acme")},
		{"customer's kept VMs", got.KeptVMs("acme"), want.KeptVMs("acme")},
	} {
		if !reflect.DeepEqual(one.got, one.want) {
			return fmt.Sprintf("%s:\n%+v\n%+v", one.what, one.got, one.want)
		}
	}
	for v := range vmsAtMost {
		if id := fmt.Sprint("v", v); got.Anchored(id) != want.Anchored(id) {
			return id + " is anchored in one"
		}
	}
	for _, cluster := range []string{model.DefaultCluster, "east"} {
		if s.random.IntN(3) == 0 {
			continue // nobody asks for the columns of each view
		}
		mine, theirs := got.Columns(cluster), want.Columns(cluster)
		needs := view.Needs{Customer: "acme", Pools: true}
		if s.some() {
			needs.Networks, needs.CPU, needs.HostCPU = []string{"lan", view.BridgePrefix + "br0"}, s.one("Nehalem", "Westmere"), true
		}
		for _, one := range []struct {
			what      string
			got, want any
		}{
			{"groups", got.Groups(cluster), want.Groups(cluster)},
			{"CPU model", got.CPUBaseline(cluster), want.CPUBaseline(cluster)},
			{"figures", mine.Figures, theirs.Figures},
			{"room", mine.Room, theirs.Room},
			{"RAM", mine.RAM, theirs.RAM},
			{"CPU", mine.CPU, theirs.CPU},
			{"busy", mine.Busy, theirs.Busy},
			{"at work", mine.AtWork, theirs.AtWork},
			{"spans", mine.Spans, theirs.Spans},
			{"unmeasured", mine.Unmeasured, theirs.Unmeasured},
			{"lots", mine.Lots, theirs.Lots},
			{"accounts", mine.Accounts.VMs("acme"), theirs.Accounts.VMs("acme")},
			{"needs", mine.Around(needs).Figures, theirs.Around(needs).Figures},
		} {
			if !equal(one.got, one.want) {
				return fmt.Sprintf("%s, %s:\n%+v\n%+v", cluster, one.what, one.got, one.want)
			}
		}
		for g := range want.Groups(cluster) {
			if a, b := mine.Presences(g, nil), theirs.Presences(g, nil); !reflect.DeepEqual(a, b) {
				return fmt.Sprintf("%s, presences:\n%+v\n%+v", cluster, a, b)
			}
		}
		for _, customer := range []string{"", "acme", "umbrella"} {
			for _, scope := range []model.KeyScope{model.ScopeCustomer, model.ScopeCluster} {
				if a, b := shownTo(mine, scope, customer), shownTo(theirs, scope, customer); !reflect.DeepEqual(a, b) {
					return fmt.Sprintf("%s, keys shown to %s:\n%+v\n%+v", cluster, customer, a, b)
				}
			}
		}
		if (mine.Headroom == nil) != (theirs.Headroom == nil) {
			return cluster + ": one has headroom"
		}
		for node := range mine.IDs {
			if mine.Headroom != nil && !equal(mine.Headroom.On(node), theirs.Headroom.On(node)) {
				return cluster + ": headroom"
			}
		}
	}
	return ""
}

// shownTo are the postings of the key that VMs of the site show.
func shownTo(c *view.Columns, scope model.KeyScope, customer string) (met []view.Posting) {
	c.Residents.Match(scope, model.CustomerKey, model.Owner{Customer: customer}, "Group", 1, func(p view.Posting) { met = append(met, p) })
	return met
}

// equal is DeepEqual that takes an empty list for none.
func equal(a, b any) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	return x.Kind() == reflect.Slice && x.Len()+y.Len() == 0 || reflect.DeepEqual(a, b)
}

const vmsAtMost = 12

func (s *site) one(of ...string) string { return of[s.random.IntN(len(of))] }

func (s *site) some() bool { return s.random.IntN(2) == 0 }

func (s *site) nodeID() string {
	nodes := s.records.Snapshot().Nodes()
	if len(nodes) == 0 || s.random.IntN(30) == 0 {
		return "gone"
	}
	return nodes[s.random.IntN(len(nodes))].ID
}

// store stores records; what the state refuses did not happen.
func (s *site) store(command state.Command) {
	s.count++
	command.Key, command.Kind, command.At = fmt.Sprint("key", s.count), "event", time.Now()
	data, err := command.Encode()
	if err != nil {
		s.Fatal(err)
	}
	if refusal := put(s.records, data); refusal != nil {
		s.refused++
	} else {
		s.stored++
	}
}

// node enrols a node, and seldom takes one away.
func (s *site) node() {
	x := s.records.Snapshot()
	if len(x.Nodes()) >= 6 {
		if s.random.IntN(20) > 0 {
			return
		}
		if node, is := x.Node(s.nodeID()); is && len(x.VMsOn(node.ID)) == 0 {
			s.store(state.Command{
				Expect: []state.Expectation{{Table: state.Nodes, ID: node.ID, Revision: node.Revision}},
				Delete: []state.Record{{Table: state.Nodes, ID: node.ID}},
			})
		}
		return
	}
	s.count++
	id := fmt.Sprint("n", s.count)
	s.store(state.Command{
		Expect: []state.Expectation{{Table: state.Nodes, ID: id}},
		Nodes: []model.Node{{
			ID: id, Name: "node-" + id, Cluster: s.one(model.DefaultCluster, model.DefaultCluster, "east"), EnrolledAt: time.Now(),
		}},
	})
}

// nodeRecord changes something of a node.
func (s *site) nodeRecord() {
	node, is := s.records.Snapshot().Node(s.nodeID())
	if !is {
		return
	}
	switch s.random.IntN(6) {
	case 5:
		node.Unanswered = unanswered.Mark{}
		if s.some() {
			node.Unanswered = unanswered.Mark{Operation: "o1", Since: time.Now()}
		}
	case 0:
		node.Maintenance, node.MaintenanceReason = s.some(), "work"
	case 1:
		node.Keys = map[string]float64{"RACK": float64(s.random.IntN(3))}
	case 2:
		node.Labels = [][]string{nil, {"ssd"}}[s.random.IntN(2)]
	case 3:
		ratio := 1 + s.random.Float64()
		node.Settings.RAMRatio = &ratio
	default:
		if s.random.IntN(10) == 0 && len(s.records.Snapshot().VMsOn(node.ID)) == 0 {
			node.Cluster = s.one(model.DefaultCluster, "east")
		}
	}
	s.store(state.Command{Expect: []state.Expectation{{Table: state.Nodes, ID: node.ID, Revision: node.Revision}}, Nodes: []model.Node{node}})
}

// vm makes, changes or deletes a VM.
func (s *site) vm() {
	id := fmt.Sprint("v", s.random.IntN(vmsAtMost))
	vm, is := s.records.Snapshot().VM(id)
	expect := []state.Expectation{{Table: state.VMs, ID: id, Revision: vm.Revision}}
	if is && s.random.IntN(8) == 0 {
		s.store(state.Command{Expect: expect, Delete: []state.Record{{Table: state.VMs, ID: id}}})
		return
	}
	if !is {
		vm = model.VM{ID: id, Name: "vm-" + id, Desired: model.Running, CreatedAt: time.Now()}
		vm.Spec = model.VMSpec{Memory: units.GiB, VCPUs: 1}
		vm.LastEpoch = s.records.Snapshot().LastEpoch(id)
	}
	switch s.random.IntN(8) {
	case 0, 1, 2:
		vm.Holder, vm.StartedAt = s.nodeID(), time.Now()
		vm.LastEpoch++
		vm.Epoch = vm.LastEpoch
		if s.random.IntN(3) == 0 || vm.Holder == "gone" {
			vm.Holder = ""
		}
		vm.LastNode = cmp.Or(vm.Holder, vm.LastNode)
	case 3:
		vm.Labels = [][]string{nil, {"web"}, {"db", "web"}}[s.random.IntN(3)]
	case 4:
		vm.HA = s.some()
	case 5:
		vm.Owner.Customer = s.one("", "acme", "umbrella")
		vm.Resident = [][]model.ResidentKey{nil, {{Class: model.CustomerKey, Name: "Group", Value: 1}}}[s.random.IntN(2)]
	case 6:
		vm.Disks = [][]string{nil, {"disk-a"}, {"disk-a", "disk-b"}}[s.random.IntN(3)]
	default:
		vm.Spec.Memory = units.Bytes(1+s.random.IntN(4)) * units.GiB
		vm.Migration = model.Migration(s.one("", string(model.MigrateNever)))
	}
	s.store(state.Command{Expect: expect, VMs: []model.VM{vm}})
}

// operation begins or ends one.
func (s *site) operation() {
	live := s.records.Snapshot().LiveOperations()
	if len(live) > 0 && s.some() {
		op := live[s.random.IntN(len(live))]
		op.Phase, op.Result, op.EndedAt, op.UpdatedAt = operation.Ended, operation.Done, time.Now(), time.Now()
		s.store(state.Command{
			Expect: []state.Expectation{{Table: state.Operations, ID: op.ID, Revision: op.Revision}}, Operations: []operation.Operation{op},
		})
		return
	}
	vms := s.records.Snapshot().VMs()
	if len(vms) == 0 {
		return
	}
	s.count++
	vm := vms[s.random.IntN(len(vms))]
	op := operation.Operation{
		ID: fmt.Sprint("op", s.count), Kind: operation.Start, VM: vm.ID, VMName: vm.Name, Target: s.nodeID(), Epoch: 1,
		Phase: operation.Dispatched, Memory: units.GiB, VCPUs: 2, CreatedAt: time.Now(), UpdatedAt: time.Now(),
	}
	if vm.Holder != "" {
		op.Kind, op.Source, op.Phase = operation.Migrate, vm.Holder, operation.Copying
	}
	if s.random.IntN(4) == 0 {
		op.Volumes = []model.VolumeOrder{{Disk: "disk-a", Pool: "pool-a", Name: "a", Format: "qcow2", Capacity: units.GiB}}
	}
	s.store(state.Command{Expect: []state.Expectation{{Table: state.Operations, ID: op.ID}}, Operations: []operation.Operation{op}})
}

// resource declares something, or takes it away.
func (s *site) resource() {
	volume := func(name string, size units.Bytes) *model.Volume {
		return &model.Volume{Pool: "pool-a", Name: name, Format: "qcow2", Capacity: size}
	}
	all := []model.Resource{
		{ID: "group-a", Kind: model.KindGroup, Name: "a", Members: map[string][]string{model.MembersVMs: {"v1", "v2"}}},
		{ID: "group-b", Kind: model.KindGroup, Name: "b", Lists: map[string][]string{model.ListVMLabels: {"web"}, model.ListNodeLabels: {"ssd"}}},
		{ID: "pool-a", Kind: model.KindPool, Name: "a", Settings: map[string]string{"source": "default"}},
		{ID: "disk-a", Kind: model.KindDisk, Name: "a", Volume: volume("a", units.GiB)},
		{ID: "disk-b", Kind: model.KindDisk, Name: "b", Volume: volume("b", 2*units.GiB)},
		{ID: "east-id", Kind: model.KindCluster, Name: "east", NodeKeys: []model.NodeKey{{Name: "RACK", Sticky: true, Weight: 3}}},
	}
	one := all[s.random.IntN(len(all))]
	if one.Kind == model.KindCluster && s.random.IntN(10) > 0 {
		return
	}
	if one.Volume != nil && s.some() {
		one.Volume.Nodes = []string{s.nodeID()}
	}
	if one.Kind == model.KindCluster && s.some() {
		one.Settings = map[string]string{model.SettingSpareNodes: "1"}
	}
	was, is := s.records.Snapshot().Resource(one.ID)
	command := state.Command{Expect: []state.Expectation{{Table: state.Resources, ID: one.ID, Revision: was.Revision}}}
	if is && s.random.IntN(4) == 0 {
		command.Delete = []state.Record{{Table: state.Resources, ID: one.ID}}
	} else {
		one.CreatedAt = time.Now()
		command.Resources = []model.Resource{one}
	}
	s.store(command)
}

// hear has an agent say something.
func (s *site) hear() {
	id := s.nodeID()
	a := s.agents[id]
	if a == nil {
		a = connect(s.T, s.soft, id)
		s.agents[id] = a
	}
	domain := func() *berthv1.Domain {
		states := []berthv1.DomainState{
			berthv1.DomainState_DOMAIN_STATE_RUNNING, berthv1.DomainState_DOMAIN_STATE_RUNNING, berthv1.DomainState_DOMAIN_STATE_PAUSED,
			berthv1.DomainState_DOMAIN_STATE_PAUSED_MIGRATION, berthv1.DomainState_DOMAIN_STATE_SHUTOFF, berthv1.DomainState_DOMAIN_STATE_ABSENT,
		}
		one := inState(fmt.Sprint("v", s.random.IntN(vmsAtMost+3)), states[s.random.IntN(len(states))])
		for range s.random.IntN(3) {
			name := s.one("a.qcow2", "b.qcow2", "c.qcow2", "d.qcow2")
			one.Sources = append(one.Sources, []*berthv1.DiskSource{{Path: "/srv/" + name}, {Pool: "vms", Volume: name}}[s.random.IntN(2)])
		}
		return one
	}
	switch s.random.IntN(9) {
	case 0, 1:
		seen := map[string]*berthv1.Domain{}
		for range s.random.IntN(6) {
			one := domain()
			seen[one.GetUuid()] = one
		}
		var listed []*berthv1.Domain
		for v := range vmsAtMost + 3 {
			if one := seen[fmt.Sprint("v", v)]; one != nil {
				listed = append(listed, one)
			}
		}
		a.inventoryOf(s.surrounded(id), listed...)
	case 2, 3:
		available, load := int64(s.random.IntN(64))<<30, s.random.Float64()*20
		rss := int64(1 << 29)
		a.telemetry(&berthv1.NodeTelemetry{
			MemoryAvailableBytes: &available, Load1: &load,
			Domains: []*berthv1.DomainTelemetry{{Uuid: fmt.Sprint("v", s.random.IntN(vmsAtMost)), RssBytes: &rss}},
		})
	case 4, 5:
		a.change("event", domain())
	case 6:
		a.libvirt(s.some(), "gone")
	case 7:
		if s.some() {
			a.session.Keep(model.Pace{Sample: time.Duration(1+s.random.IntN(9)) * time.Second})
		} else {
			a.session.CalledFrom(fmt.Sprint("192.0.2.", s.random.IntN(9)))
		}
	default:
		if s.some() {
			a.session.Close("over")
		}
		a.reconnect()
		if s.random.IntN(3) == 0 {
			a.session.Close("over")
			delete(s.agents, id)
			s.agents[id] = &agent{t: s.T, store: s.soft, node: id, boot: a.boot, sequence: a.sequence, session: a.session}
		}
	}
}

// surrounded is a host whose networks and CPU models are any.
func (s *site) surrounded(id string) *berthv1.NodeInventory {
	host := hostOf(id)
	for _, name := range []string{"lan", "wan"} {
		if s.some() {
			host.Networks = append(host.Networks, &berthv1.Network{Name: name, Active: s.random.IntN(3) > 0})
		}
	}
	if s.some() {
		host.Bridges = []string{"br0"}
	}
	host.HostCpu = s.one("", "old", "new")
	host.CpuModels = [][]string{nil, {"Nehalem"}, {"Nehalem", "Westmere"}, {"Nehalem", "Westmere"}}[s.random.IntN(4)]
	if s.random.IntN(5) == 0 {
		host.Errors = []*berthv1.ReadingError{{Reading: readNetworks}}
	}
	return host
}

// time passes.
func (s *site) time() {
	spans := []time.Duration{time.Millisecond, 300 * time.Millisecond, time.Second, 7 * time.Second, time.Minute}
	time.Sleep(spans[min(s.random.IntN(5), s.random.IntN(5))])
}
