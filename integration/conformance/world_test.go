package conformance

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/policies"
	"berth/coordinator/view"
	"berth/shared/units"
)

var noon = time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)

// whole is the memory in bytes, the promise and the number of CPUs of a node whose contention a case gives ready: a power
// of two, so that the fraction used of it is exactly the figure of the case.
const whole = 1 << 60

// world is a cluster in the records that the product keeps, and one VM that links to something at each of the sixteen
// levels. The records have the names of the levels as their IDs.
type world struct {
	*checker
	estate.State
	vm     model.VM
	facts  map[string]model.NodeFacts
	policy func(*policies.Policy) // what the case has differently, apart from the settings
}

func newWorld(c *checker) *world {
	w := &world{checker: c, facts: map[string]model.NodeFacts{}, policy: func(*policies.Policy) {}}
	offer := func(of string) model.Resource {
		return model.Resource{ID: of + "_product_offer", Kind: model.KindOffer, Name: of}
	}
	linked := func(to ...string) map[string]string {
		links := map[string]string{}
		for i := 0; i < len(to); i += 2 {
			links[to[i]] = to[i+1]
		}
		return links
	}
	w.Resources = []model.Resource{
		{ID: "cluster", Kind: model.KindCluster, Name: model.DefaultCluster, Settings: map[string]string{}},
		{ID: "billing_entity", Kind: model.KindBillingEntity, Name: "reseller"},
		offer("customer"), offer("image"), offer("vdc"), offer("server"), offer("first_disk"), offer("first_nic_network"), offer("first_nic"),
		{
			ID: "customer", Kind: model.KindCustomer, Name: "own",
			Links: linked("billing_entity", "billing_entity", "offer", "customer_product_offer"),
		},
		{ID: "vdc", Kind: model.KindVDC, Name: "vdc", Links: linked("customer", "customer", "cluster", "cluster", "offer", "vdc_product_offer")},
		{ID: "image", Kind: model.KindImage, Name: "image", Links: linked("offer", "image_product_offer")},
		{
			ID: "first_nic_network", Kind: model.KindNetwork, Name: "network", Links: linked("offer", "first_nic_network_product_offer"),
			Settings: map[string]string{"source": "default"},
		},
		{
			ID: "first_disk", Kind: model.KindDisk, Name: "disk", Links: linked("offer", "first_disk_product_offer"),
			Settings: map[string]string{"path": "/disk", "format": "raw"},
		},
		{ID: "first_nic", Kind: model.KindNIC, Name: "nic", Links: linked("network", "first_nic_network", "offer", "first_nic_product_offer")},
	}
	w.vm = model.VM{
		ID: "vm", Name: "vm", Spec: model.VMSpec{Memory: units.MiB, VCPUs: 1}, Desired: model.Stopped,
		VDC: "vdc", Offer: "server_product_offer", Image: "image", Disks: []string{"first_disk"}, NICs: []string{"first_nic"},
	}
	return w
}

// resource is the record of a level other than the VM's own.
func (w *world) resource(id string) *model.Resource {
	w.Helper()
	at := slices.IndexFunc(w.Resources, func(r model.Resource) bool { return r.ID == id })
	if at < 0 {
		w.Fatalf("there is no level %q", id)
	}
	return &w.Resources[at]
}

// set sets keys at a level.
func (w *world) set(level string, class model.KeyClass, keys ...entry) {
	w.Helper()
	for _, one := range keys {
		if level == "server" {
			w.vm.Keys = append(w.vm.Keys, one.key(class))
			continue
		}
		r := w.resource(level)
		r.Keys = append(r.Keys, one.key(class))
	}
}

// setting sets the cluster's.
func (w *world) setting(name, value string) { w.resource("cluster").Settings[name] = value }

func (w *world) settings() model.Settings { return model.SettingsOf(w.resource("cluster")) }

// affinity is the policy of a cluster that links to none.
func (w *world) affinity() policies.Policy {
	policy, _ := policies.Builtin(policies.Affinity, w.settings())
	return policy
}

// rounds sets those of the rounds that a case gives.
func (w *world) rounds(initial, final optional[float64], steps optional[count]) {
	if initial.given {
		w.setting(model.SettingInitialMSAV, strconv.FormatFloat(initial.value, 'g', -1, 64))
	}
	if final.given {
		w.setting(model.SettingFinalMSAV, strconv.FormatFloat(final.value, 'g', -1, 64))
	}
	if steps.given {
		w.setting(model.SettingMSAVSteps, strconv.Itoa(int(steps.value)))
	}
}

// node adds a node that is up, idle and whole. Names are IDs. A node that is there already is given back.
func (w *world) node(name string) *model.Node {
	at := slices.IndexFunc(w.Nodes, func(n model.Node) bool { return n.ID == name })
	if at < 0 {
		one, none := 1.0, units.Bytes(0)
		at = len(w.Nodes)
		w.Nodes = append(w.Nodes, model.Node{
			ID: name, Name: name, Cluster: model.DefaultCluster, Keys: map[string]float64{},
			Settings: model.NodeSettings{RAMRatio: &one, CPURatio: &one, Overhead: &none},
		})
		w.facts[name] = idle(whole, whole)
	}
	return &w.Nodes[at]
}

// idle are the facts of a node that is up and has nothing to do.
func idle(memory units.Bytes, cpus int) model.NodeFacts {
	load := 0.0
	return model.NodeFacts{
		Liveness: model.Up, Inventory: true, InventoryAt: noon, DomainsKnown: true, Memory: memory, CPUs: cpus,
		Telemetry: true, TelemetryAt: noon, Available: &memory, Load1: &load, Networks: []string{"default"}, NetworksKnown: true,
	}
}

// change changes what is known of a node.
func (w *world) change(node string, change func(*model.NodeFacts)) {
	facts := w.facts[node]
	change(&facts)
	w.facts[node] = facts
}

// holds puts a VM on a node. It has been running for long, so that its memory is in the telemetry.
func (w *world) holds(node string, vm model.VM) {
	vm.Holder, vm.StartedAt, vm.Desired = node, noon.Add(-time.Hour), model.Running
	if vm.ID == "" {
		vm.ID = node + "-" + strconv.Itoa(len(w.VMs))
	}
	vm.Name = vm.ID
	w.VMs = append(w.VMs, vm)
}

// give gives a node its keys, the special ones by making the node as full and as busy as they say.
func (w *world) give(node string, keys ...entry) {
	w.Helper()
	record := w.node(node)
	filling := model.VM{}
	for _, one := range keys {
		switch one.Name {
		case model.SpecialRAM:
			filling.Spec.Memory = units.Bytes(one.Value * whole)
			if one.Value >= 1 { // the case speaks of scores: what a full node has no room for is not its matter
				w.policy = withoutMemory
			}
		case model.SpecialCPU:
			filling.Spec.VCPUs = int(one.Value * whole)
		case model.SpecialLoad:
			load := one.Value * whole
			w.change(node, func(f *model.NodeFacts) { f.Load1 = &load })
		default:
			if _, twice := record.Keys[one.Name]; twice {
				w.Fatalf("node %s has key %s twice", node, one.Name)
			}
			w.declare(one.Name)
			record.Keys[one.Name] = one.Value
		}
	}
	if filling.Spec.Memory != 0 || filling.Spec.VCPUs != 0 {
		w.holds(node, filling)
	}
}

// group adds an affinity group. Its name is its ID.
func (w *world) group(record model.Resource) {
	record.ID, record.Kind, record.Links = record.Name, model.KindGroup, map[string]string{model.LinkCluster: "cluster"}
	w.Resources = append(w.Resources, record)
}

// declare declares a node key. A node that a case does not give it has a value that nothing is near to.
func (w *world) declare(name string) {
	record := w.resource("cluster")
	if _, declared := record.NodeKey(name); !declared {
		record.NodeKeys = append(record.NodeKeys, model.NodeKey{Name: name, Default: view.Unknown})
	}
}

func withoutMemory(policy *policies.Policy) {
	policy.Constraints = slices.DeleteFunc(policy.Constraints, func(name string) bool {
		return name == "memory-promised" || name == "memory-physical"
	})
}

// score makes the engine find exactly these scores: each node alone has a key of its own that the VM weighs with the
// score. A prefix of "_" makes it the customer score.
func (w *world) score(class model.KeyClass, prefix string, scores map[string]float64) {
	for _, node := range slices.Sorted(maps.Keys(scores)) {
		name := prefix + "score-of-" + node
		w.declare(name)
		w.node(node).Keys[name] = 1
		w.vm.Keys = append(w.vm.Keys, model.Key{Class: class, Name: name, Value: 1, Weight: scores[node]})
	}
}

func (w *world) systemScores(scores map[string]float64) { w.score(model.SystemKey, "", scores) }

func (w *world) customerScores(scores map[string]float64) { w.score(model.CustomerKey, "_", scores) }

// owner is whose a VM is: a case that names nobody speaks of the customer of the VM to be placed.
func (w *world) owner(name string) model.Owner {
	if name == "" || name == w.resource("customer").Name {
		return model.Owner{Customer: "customer", BillingEntity: "billing_entity"}
	}
	return model.Owner{Customer: name, BillingEntity: "billing_entity"}
}

// view is what a decision is made on.
func (w *world) view() *view.View {
	records := view.Records{
		Clusters: []model.Resource{*w.resource("cluster")}, Nodes: w.Nodes, VMs: append(slices.Clone(w.VMs), w.vm),
	}
	for _, resource := range w.Resources {
		if resource.Kind == model.KindGroup {
			records.Groups = append(records.Groups, resource)
		}
	}
	return view.New(noon, 1, records, w.facts)
}

// resolve walks the VM's hierarchy.
func (w *world) resolve() estate.Resolved {
	w.Helper()
	resolved, err := estate.Resolve(&w.State, w.vm)
	w.must(err)
	return resolved
}

func (w *world) request(purpose placement.Purpose) placement.Request {
	w.Helper()
	return estate.Request(w.resolve(), w.vm, purpose)
}

// decide places the VM.
func (w *world) decide(purpose placement.Purpose) decided {
	w.Helper()
	return w.decideOn(w.view(), w.request(purpose))
}

func (w *world) decideOn(view *view.View, request placement.Request) decided {
	w.Helper()
	policy := w.affinity()
	w.policy(&policy)
	return decideAll(w.checker, view, request, policy)
}
