package control

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/state"
	"berth/shared/units"
)

// put stores resources, whatever was there before.
func (w *world) put(resources ...model.Resource) {
	w.Helper()
	var expect []state.Expectation
	for _, r := range resources {
		before, _ := w.Store.Snapshot().Resource(r.ID)
		expect = append(expect, state.Expectation{Table: state.Resources, ID: r.ID, Revision: before.Revision})
	}
	w.store(state.Command{Resources: resources}, expect...)
}

// record changes a VM's record.
func (w *world) record(id string, change func(*model.VM)) {
	w.Helper()
	vm, _ := w.Store.Snapshot().VM(id)
	vm.ID = id
	change(&vm)
	w.store(state.Command{VMs: []model.VM{vm}}, state.Expectation{Table: state.VMs, ID: id, Revision: vm.Revision})
}

// keyed gives a node a value of a declared key.
func (w *world) keyed(id, key string, value float64) {
	w.Helper()
	w.node(id, func(node *model.Node) { node.Keys = map[string]float64{key: value} })
}

// node changes a node's record.
func (w *world) node(id string, change func(*model.Node)) {
	w.Helper()
	node, _ := w.Store.Snapshot().Node(id)
	change(&node)
	w.store(state.Command{Nodes: []model.Node{node}}, state.Expectation{Table: state.Nodes, ID: id, Revision: node.Revision})
}

// defaultCluster is the record of the cluster that the world's nodes are in.
func defaultCluster(settings map[string]string, keys ...model.NodeKey) model.Resource {
	record := model.DefaultClusterRecord()
	record.Settings, record.NodeKeys = settings, keys
	return record
}

// customer is one with a VDC in the default cluster; the VDC's ID is "vdc-" and the name.
func customer(name string) []model.Resource {
	return []model.Resource{
		{ID: "c-" + name, Kind: model.KindCustomer, Name: name},
		{ID: "vdc-" + name, Kind: model.KindVDC, Name: name, Links: map[string]string{"customer": "c-" + name}},
	}
}

// guest asks for a VM of a customer with a key Group of value 1 and this weight.
func guest(name, of string, weight float64) lifecycle.StartVM {
	return lifecycle.StartVM{
		Name: name, RequestID: "start " + name,
		VM: &model.VM{
			Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1, Kernel: "/vmlinuz"}, VDC: "vdc-" + of, Keys: []model.Key{
				{Class: model.CustomerKey, Name: "Group", Value: 1, Weight: weight},
			},
		},
	}
}

func (w *world) must(request lifecycle.StartVM) lifecycle.Started {
	w.Helper()
	started, err := w.StartVM(w.Context(), request)
	if err != nil {
		w.Fatal(err)
	}
	return started
}

// winners are the nodes that dry runs of a start come to, each with a seed of its own.
func (w *world) winners(request lifecycle.StartVM) []string {
	w.Helper()
	request.DryRun, request.RequestID = true, ""
	found := map[string]bool{}
	for range 30 {
		found[w.must(request).Decision.Winner] = true
	}
	var nodes []string
	for node := range found {
		nodes = append(nodes, node)
	}
	slices.Sort(nodes)
	return nodes
}

func (w *world) vm(name string) model.VM {
	vm, _ := w.Store.Snapshot().VMByName(name)
	return vm
}

// Nobody answers a start here: what a VM shows counts from its reservation on.
func TestVMsThatRepelEachOtherPartAlsoWhenTheyStartAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(operation.Order) *operation.Answer { return nil })
		defer w.lose()
		for _, owner := range []string{"acme", "bolt", "cork"} {
			w.put(customer(owner)...)
			targets := map[string]bool{}
			for _, name := range []string{"1", "2", "3"} {
				started := w.must(guest(owner+name, owner, -100))
				targets[started.Operation.Target] = true
				if want := (model.Owner{Customer: "c-" + owner}); started.VM.Owner != want || len(started.VM.Resident) != 1 {
					t.Errorf("%s%s shows %+v of %+v", owner, name, started.VM.Resident, started.VM.Owner)
				}
			}
			if len(targets) != 3 {
				t.Errorf("three VMs of %s that repel each other start on %v", owner, targets)
			}
		}
	})
}

func TestStrangersNeitherMeetNorRepel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.put(customer("acme")...)
		w.put(customer("bolt")...)
		there := w.must(guest("web1", "acme", -100)).Operation.Target
		synctest.Wait()
		if nodes := w.winners(guest("web2", "acme", -100)); len(nodes) != 2 || slices.Contains(nodes, there) {
			t.Errorf("the customer's own VM on %s repels to %v", there, nodes)
		}
		if nodes := w.winners(guest("db1", "bolt", -100)); len(nodes) != 3 {
			t.Errorf("a stranger's VM on %s leaves %v", there, nodes)
		}
		w.put(defaultCluster(map[string]string{model.SettingKeyScope: string(model.ScopeCluster)}))
		if nodes := w.winners(guest("db1", "bolt", -100)); len(nodes) != 2 || slices.Contains(nodes, there) {
			t.Errorf("in one name space the VM on %s leaves %v", there, nodes)
		}
	})
}

func TestResidentsAreThoseOfTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.put(customer("acme")...)
		first := w.must(guest("web1", "acme", 10)).Operation.Target
		synctest.Wait()
		w.record(w.vm("web1").ID, func(vm *model.VM) { vm.Keys = nil })
		if nodes := w.winners(guest("web2", "acme", 10)); !slices.Equal(nodes, []string{first}) {
			t.Errorf("web1 runs on %s and attracted when it started; web2 goes to %v", first, nodes)
		}
		w.show(w.vm("web1"))
		moved, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: w.vm("web1").ID, Node: other(first)})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.facts.change(first, func(f *model.NodeFacts) { f.Domains = nil })
		if nodes := w.winners(guest("web2", "acme", 10)); !slices.Equal(nodes, []string{moved.Operation.Target}) {
			t.Errorf("web1 went on to %s; web2 goes to %v", moved.Operation.Target, nodes)
		}
		if _, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Stop, VM: w.vm("web1").ID}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if nodes := w.winners(guest("web2", "acme", 10)); len(nodes) != 3 {
			t.Errorf("web1 is stopped; web2 goes to %v", nodes)
		}
		w.must(lifecycle.StartVM{Name: "web1"})
		synctest.Wait()
		if vm := w.vm("web1"); vm.Resident != nil || vm.Holder == "" {
			t.Errorf("started again without keys, web1 shows %+v", vm.Resident)
		}
	})
}

// A sticky key separates nodes only if the first threshold is above the score of the others.
func TestAStickyKeyBringsAVMBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := false
		w := newWorld(t, func(order operation.Order) *operation.Answer {
			if fail && order.Action == operation.ActStart {
				return &operation.Answer{
					Outcome: operation.OutcomeFailed, Code: "invalid_xml", Error: "no such disk",
					Seen: operation.Observation{State: model.DomainAbsent},
				}
			}
			return obedient(order)
		})
		defer w.lose()
		w.put(defaultCluster(map[string]string{model.SettingInitialMSAV: "120"}, model.NodeKey{Name: "DS", Sticky: true, Weight: 30}))
		values := map[string]float64{"n1": 1, "n2": 2, "n3": 3}
		for node, value := range values {
			w.keyed(node, "DS", value)
		}
		stop := func() {
			t.Helper()
			if _, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Stop, VM: w.vm("web1").ID}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		w.running("web1")
		for _, node := range []string{"n2", "n3", "n1"} {
			stop()
			w.must(lifecycle.StartVM{Name: "web1", Node: node})
			synctest.Wait()
			want := []model.Key{{Class: model.SystemKey, Name: "DS", Value: values[node], Weight: 30}}
			if diff := cmp.Diff(want, w.vm("web1").Sticky); diff != "" {
				t.Fatalf("started on %s (-want +got):\n%s", node, diff)
			}
			stop()
			if nodes := w.winners(lifecycle.StartVM{Name: "web1"}); !slices.Equal(nodes, []string{node}) {
				t.Errorf("from %s it goes to %v", node, nodes)
			}
			w.must(lifecycle.StartVM{Name: "web1"})
			synctest.Wait()
		}
		stop()
		fail = true
		w.must(lifecycle.StartVM{Name: "web1", Node: "n2"})
		synctest.Wait()
		if vm := w.vm("web1"); vm.Holder != "" || vm.Sticky[0].Value != values["n1"] {
			t.Errorf("after a start that failed on n2: %+v", vm)
		}
		fail = false
		w.put(defaultCluster(nil))
		w.must(lifecycle.StartVM{Name: "web1"})
		synctest.Wait()
		if sticky := w.vm("web1").Sticky; len(sticky) != 0 {
			t.Errorf("no key is sticky any more, and the VM keeps %+v", sticky)
		}
	})
}

// What is kept of a decision is enough to make it again, keys and settings included.
func TestKeptDecisionsReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.put(defaultCluster(map[string]string{model.SettingInitialMSAV: "110"}, model.NodeKey{Name: "DS", Sticky: true, Weight: 30}))
		w.put(customer("acme")...)
		for _, name := range []string{"web1", "web2"} {
			w.must(guest(name, "acme", -100))
			synctest.Wait()
			w.show(w.vm(name))
			time.Sleep(time.Second)
		}
		if _, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: w.vm("web2").ID, IfBetter: 500}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.StartVM(
			t.Context(), lifecycle.StartVM{Name: "huge", VM: &model.VM{Spec: model.VMSpec{Memory: 64 * units.GiB, VCPUs: 1}}},
		); !isCode(err, lead.NoNodeFits) {
			t.Fatal(err)
		}
		kept := w.Store.Snapshot().Decisions(0)
		if len(kept) != 4 {
			t.Fatalf("%d decisions are kept, want those of two starts, a stay and a refusal", len(kept))
		}
		for _, decision := range kept {
			if _, err := placement.Replay(decision); err != nil {
				t.Errorf("%s (%s): %v", decision.Request.VMName, decision.Outcome, err)
			}
		}
	})
}

// What a decision has read and what changes before its commit makes it decide again.
func TestAChangeUnderADecisionMakesItDecideAgain(t *testing.T) {
	var declared []model.NodeKey
	changed := func(name string, change func(w *world)) lifecycle.Started {
		var started lifecycle.Started
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, obedient)
				defer w.lose()
				w.put(defaultCluster(nil, declared...))
				w.put(customer("acme")...)
				w.log.before = func(command state.Command) {
					if command.Kind == "start vm" {
						w.log.before = nil
						change(w)
					}
				}
				started = w.must(guest("web1", "acme", 10))
				synctest.Wait()
				if decisions := len(w.Store.Snapshot().Decisions(0)); decisions != 1 || w.vm("web1").Holder == "" {
					t.Errorf("%d decisions are kept", decisions)
				}
			})
		})
		return started
	}
	byVDC := changed("the VDC", func(w *world) {
		vdc := customer("acme")[1]
		vdc.Keys = []model.Key{{Class: model.BillingEntityKey, Name: "Tier", Value: 2, Weight: 5}}
		w.put(vdc)
	})
	if keys := byVDC.Decision.Request.CustomerKeys; len(keys) != 2 || keys[1].Name != "Tier" {
		t.Errorf("the VDC got a key, and the decision was made with %+v", keys)
	}
	byCluster := changed("the cluster", func(w *world) {
		w.put(defaultCluster(nil, model.NodeKey{Name: "DS", Sticky: true, Weight: 30}))
	})
	if keys := byCluster.Operation.Sticky; len(keys) != 1 {
		t.Errorf("the cluster declared a sticky key, and the start copies %+v", keys)
	}
	declared = append(declared, model.NodeKey{Name: "DS", Sticky: true, Weight: 30})
	byNode := changed("the nodes", func(w *world) {
		for _, id := range []string{"n1", "n2", "n3"} {
			w.keyed(id, "DS", 4)
		}
	})
	if keys := byNode.Operation.Sticky; len(keys) != 1 || keys[0].Value != 4 {
		t.Errorf("the nodes got another value, and the start copies %+v", keys)
	}
}

func TestTheDefaultClusterMayBeDeclaredUnderADecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.log.before = func(command state.Command) {
			if command.Kind == "start vm" {
				w.log.before = nil
				w.put(defaultCluster(map[string]string{model.SettingRAMRatio: "0.1"}))
			}
		}
		if _, err := w.start("web1"); !isCode(err, lead.NoNodeFits) {
			t.Errorf("the ratio went down to a tenth, and the start came out as %v", err)
		}
	})
}

func TestANodeThatFailsIsReplacedWithTheSameKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := ""
		w := newWorld(t, func(order operation.Order) *operation.Answer {
			if failed == "" || failed == order.Node {
				failed = order.Node
				return &operation.Answer{
					Outcome: operation.OutcomeFailed, Code: "no_memory", Error: "cannot allocate",
					Seen: operation.Observation{State: model.DomainAbsent},
				}
			}
			return obedient(order)
		})
		defer w.lose()
		w.put(defaultCluster(nil, model.NodeKey{Name: "DS", Sticky: true, Weight: 30}))
		for node, value := range map[string]float64{"n1": 1, "n2": 2, "n3": 3} {
			w.keyed(node, "DS", value)
		}
		w.put(customer("acme")...)
		w.log.before = func(command state.Command) {
			if command.Kind == "start vm: dispatched" { // the second node was decided for
				w.log.before = nil
				w.put(defaultCluster(nil, model.NodeKey{Name: "DS", Sticky: true, Weight: 40}))
			}
		}
		first := w.must(guest("web1", "acme", 10))
		synctest.Wait()
		vm := w.vm("web1")
		again, _ := w.Store.Snapshot().Decision(vm.Decision)
		if again.ID == first.Decision.ID || vm.Holder == failed {
			t.Fatalf("holder %s, decision %s", vm.Holder, again.ID)
		}
		want := first.Decision.Request
		want.Excluded = []string{failed}
		if diff := cmp.Diff(want, again.Request); diff != "" {
			t.Errorf("asked for again (-first +again):\n%s", diff)
		}
		node, _ := w.Store.Snapshot().Node(vm.Holder)
		if len(vm.Sticky) != 1 || vm.Sticky[0].Value != node.Keys["DS"] || vm.Sticky[0].Weight != 40 {
			t.Errorf("on %s with %v the copies are %+v", vm.Holder, node.Keys, vm.Sticky)
		}
	})
}

// A start whose node failed may be placed again by a new leader that has heard of no node yet.
func TestANodeIsNotReplacedBeforeTheOthersHaveReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		failed := false
		w = newWorld(t, func(order operation.Order) *operation.Answer {
			if failed {
				return obedient(order)
			}
			failed = true
			w.facts.mu.Lock()
			defer w.facts.mu.Unlock()
			known := w.facts.nodes
			w.facts.nodes, w.facts.waiting = map[string]model.NodeFacts{}, true
			time.AfterFunc(time.Second, func() {
				w.facts.mu.Lock()
				defer w.facts.mu.Unlock()
				w.facts.nodes, w.facts.waiting = known, false
			})
			return &operation.Answer{Outcome: operation.OutcomeFailed, Error: "no", Seen: operation.Observation{State: model.DomainAbsent}}
		})
		defer w.lose()
		started, err := w.start("web1")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if op := w.operation(started.Operation.ID); op.Result != operation.Done || op.Attempt != 2 {
			t.Errorf("operation %+v", op)
		}
	})
}

func TestIfBetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.put(customer("acme")...)
		first := w.must(guest("web1", "acme", 10)).Operation.Target
		there := guest("web2", "acme", 10)
		there.Node = other(first)
		w.must(there)
		synctest.Wait()
		for _, name := range []string{"web1", "web2"} {
			w.show(w.vm(name))
		}
		move := func(gain float64, node string) (lifecycle.Migration, error) {
			return w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: w.vm("web2").ID, IfBetter: gain, Node: node})
		}
		for _, bad := range []float64{-1, nan()} {
			if _, err := move(bad, ""); !isCode(err, lead.Invalid) {
				t.Errorf("a least gain of %v: %v", bad, err)
			}
		}
		if _, err := move(1, first); !isCode(err, lead.Invalid) {
			t.Errorf("a least gain with a named node: %v", err)
		}
		// Going to web1 gains the weight of the key: 10.
		stays, err := move(10.5, "")
		if err != nil || stays.Decision.Outcome != placement.Stay || stays.Operation.ID != "" {
			t.Errorf("for 10.5: %s, %v", stays.Decision.Outcome, err)
		}
		moves, err := move(10, "")
		if err != nil || moves.Decision.Winner != first {
			t.Errorf("for 10: %s to %s, %v", moves.Decision.Outcome, moves.Decision.Winner, err)
		}
	})
}

// A VM moves with the size that it runs with. What its record was given since counts from its next start on.
func TestAVMMovesAsLargeAsItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		vm := w.running("web1")
		w.facts.change(vm.Holder, func(f *model.NodeFacts) { f.Domains[0].Memory, f.Domains[0].VCPUs = 6*units.GiB, 4 })
		target := other(vm.Holder)
		tight := 4 * units.GiB
		w.facts.change(target, func(f *model.NodeFacts) { f.Available = &tight })
		moved, err := w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: target})
		if !isCode(err, lead.NoNodeFits) || moved.Decision.Request.Memory != 6*units.GiB || moved.Decision.Request.VCPUs != 4 {
			t.Errorf("asked for %v and %d vCPUs: %v", moved.Decision.Request.Memory, moved.Decision.Request.VCPUs, err)
		}
		roomy := 8 * units.GiB
		w.facts.change(target, func(f *model.NodeFacts) { f.Available = &roomy })
		moved, err = w.MigrateVM(t.Context(), lifecycle.MigrateVM{VM: vm.ID, Node: target})
		if err != nil || moved.Operation.Memory != 6*units.GiB || moved.Operation.VCPUs != 4 {
			t.Errorf("reserved %v and %d vCPUs: %v", moved.Operation.Memory, moved.Operation.VCPUs, err)
		}
	})
}

func nan() float64 {
	zero := 0.0
	return zero / zero
}

func TestAStartGivesItsNodeWhatTheVMLinksTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(operation.Order) *operation.Answer { return nil })
		defer w.lose()
		w.put(customer("acme")...)
		disk := model.Resource{
			ID: "d1", Kind: model.KindDisk, Name: "root", Settings: map[string]string{"path": "/srv/root.qcow2", "format": "qcow2"},
		}
		w.put(
			disk,
			model.Resource{ID: "net", Kind: model.KindNetwork, Name: "lan", Settings: map[string]string{"source": "bridge:br0"}},
			model.Resource{ID: "e1", Kind: model.KindNIC, Name: "eth", Links: map[string]string{"network": "net"}},
		)
		request := guest("web1", "acme", 10)
		request.VM.Disks, request.VM.NICs = []string{"d1"}, []string{"e1"}
		started := w.must(request)
		synctest.Wait()
		disk.Settings["path"] = "/srv/other.qcow2"
		w.put(disk)
		w.AgentConnected(started.Operation.Target)
		synctest.Wait()
		orders := w.agents.ordered(operation.ActStart)
		if len(orders) != 2 {
			t.Fatalf("%d orders", len(orders))
		}
		for _, order := range orders { // both tell what was decided, so that it is one order
			if len(order.Spec.Disks) != 1 || order.Spec.Disks[0].Path != "/srv/root.qcow2" || !slices.Equal(
				order.Spec.Networks, []string{"bridge:br0"},
			) {
				t.Errorf("ordered %+v", order.Spec)
			}
		}
		second := guest("web2", "acme", 10)
		second.VM.Disks = []string{"d1"}
		if _, err := w.StartVM(t.Context(), second); !isCode(err, lead.Conflict) {
			t.Errorf("a second VM with the disk: %v", err)
		}
		second.VM.Disks = []string{"net"}
		if _, err := w.StartVM(t.Context(), second); !isCode(err, lead.Invalid) {
			t.Errorf("a network for a disk: %v", err)
		}
		again := guest("web1", "acme", 10)
		again.RequestID = "other"
		w.record(started.VM.ID, func(vm *model.VM) { vm.Operation = "" })
		if _, err := w.StartVM(t.Context(), again); !isCode(err, lead.Exists) {
			t.Errorf("a VM that is there described anew: %v", err)
		}
	})
}

// A guest that switched itself off is still in the figures of the node that its record names. Its own memory does not keep
// it from starting there again, nor does its own key.
func TestAVMThatIsGoneIsNotInItsOwnWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer w.lose()
		w.put(defaultCluster(nil))
		w.put(customer("acme")...)
		request := guest("web1", "acme", -100)
		request.VM.Spec.Memory = 5 * units.GiB
		w.must(request)
		synctest.Wait()
		vm := w.vm("web1")
		if vm.Holder == "" || len(vm.Resident) != 1 {
			t.Fatalf("vm %+v", vm)
		}
		time.Sleep(time.Second)
		w.facts.change(vm.Holder, ended(vm.ID))
		time.Sleep(time.Second)
		again := lifecycle.StartVM{Name: "web1"}
		if nodes := w.winners(again); len(nodes) != 3 {
			t.Errorf("it may start on %v, and was alone on %s", nodes, vm.Holder)
		}
		again.Node = vm.Holder
		started := w.must(again)
		synctest.Wait()
		if after := w.vm("web1"); after.Holder != vm.Holder || after.Epoch <= vm.Epoch {
			t.Errorf("vm %+v", after)
		}
		kept, _ := w.Store.Snapshot().Decision(started.Decision.ID)
		if _, err := placement.Replay(kept); err != nil {
			t.Error(err)
		}
	})
}
