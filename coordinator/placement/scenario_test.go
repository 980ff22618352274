package placement

import (
	"bufio"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/placement/key"
	"berth/coordinator/placement/policies"
	"berth/coordinator/unanswered"
	"berth/coordinator/view"
	"berth/shared/units"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func ptr[T any](value T) *T { return &value }

// scenario is a cluster and what is asked of it, as the golden files describe it: one thing a line, a word, for most of
// them a name, and then key=value pairs or flags.
//
//	cluster [storage=local] [initial_msav=F] [final_msav=F] [msav_steps=N] [customer_key_scope=cluster] [no-specials]
//	        [spare_nodes=N] [key=NAME:VALUE:WEIGHT]... [node_key=NAME:DEFAULT]... [sticky=NAME:DEFAULT:WEIGHT]...
//	node NAME memory=SIZE cpus=N available=SIZE load=F [busy=F] [pressure=F] [memory_pressure=F] [vcpu_delay=F]
//	     [ram_ratio=F] [cpu_ratio=F] [overhead=SIZE]
//	     [maintenance=REASON] [liveness=WORD] [telemetry=AGE] [no-inventory] [no-domains] [no-telemetry] [key=NAME:VALUE]...
//	     [label=WORD]... [management]
//	vm NAME on=NODE memory=SIZE vcpus=N [resident=SIZE] [cpu=F] [foreign] [young] [arriving] [customer=ID] [billing=ID]
//	     [shows=NAME:VALUE]... [shows_billing=NAME:VALUE]... [label=WORD]... [immovable] [ha] [moving_to=NODE]
//	group NAME [vm=NAME]... [node=NAME]... [vm_label=WORD]... [node_label=WORD]... [vms=positive|negative] [nodes=positive|negative]
//	      [hard_vms] [hard_nodes] [priority=F]
//	policy [builtin=NAME] [gate=off] [weigher=NAME:FACTOR]... [without=CONSTRAINT]... [selector=NAME]
//	start NAME memory=SIZE vcpus=N [pin=NODE] [exclude=NODE] [home=NODE] [customer=ID] [billing=ID] [seed=N] [full]
//	     [key=NAME:VALUE:WEIGHT]... [wants=NAME:VALUE:WEIGHT]... [wants_billing=NAME:VALUE:WEIGHT]...
//	     [label=WORD]... [prefer=NODE]... [among=NODE]... [along=VM]... [along_memory=SIZE]
//	create NAME as start
//	migrate NAME [pin=NODE] [if_better=F] [leave] [seed=N] [full] and keys and what follows as start; repair, balance, drain likewise
//	pool NAME scope=shared|local [over=F] [node=NODE:CAPACITY:AVAILABLE]... [inactive=likewise]...
//	volume NAME pool=NAME size=SIZE [node=NODE] [of=VM]
//	node, beside: [network=NAME]... [bridge=NAME]... [cpu_model=NAME]... [host_cpu=WORD] [no-pools] [no-networks]
//	start, migrate and others, beside: [planner=NAME] [disk=NAME:SIZE[:POOL]]... [made=NAME:SIZE:POOL[:NODE]]... [image=POOL[:NODE]]
//	     [copy] [network=NAME]... [cpu=NAME] [passed_cpu=WORD] [last=NODE] [ha] [restart] [binding=WORDS]...
//	     [apart=NODE:WORDS]...
//	why-not NODE        of the decision before
//	ranks               likewise, as CSV
//	capacity NAME as start, [most=N]
type scenario struct {
	cluster      model.Resource
	nodes        []model.Node
	vms          []model.VM
	reservations []model.Reservation
	groups       []model.Resource
	pools, disks []model.Resource
	facts        map[string]model.NodeFacts
	change       func(*policies.Policy)
	asked        []asked
}

type asked struct {
	request  Request
	seed     uint64
	full     bool
	whyNot   string
	ranks    bool
	capacity int
}

func newScenario() *scenario {
	return &scenario{
		cluster: model.DefaultClusterRecord(), facts: make(map[string]model.NodeFacts), change: func(*policies.Policy) {},
	}
}

func (s *scenario) view() *view.View {
	vms := slices.Clone(s.vms)
	for i := range s.groups { // what is listed and runs nowhere is stopped
		for _, id := range s.groups[i].Members[model.MembersVMs] {
			if !slices.ContainsFunc(vms, func(vm model.VM) bool { return vm.ID == id }) {
				vms = append(vms, model.VM{ID: id, Name: id, Desired: model.Stopped})
			}
		}
	}
	return view.New(noon, 1, view.Records{
		Clusters: []model.Resource{s.cluster}, Nodes: s.nodes, VMs: vms, Reservations: s.reservations, Groups: s.groups,
		Pools: s.pools, Disks: s.disks,
	}, s.facts)
}

func (s *scenario) policy() policies.Policy {
	policy, _ := policies.Builtin(policies.Affinity, model.SettingsOf(&s.cluster))
	s.change(&policy)
	return policy
}

// answer is what the engine says to one thing that is asked.
func (s *scenario) answer(t *testing.T, one asked, before *Decision) string {
	t.Helper()
	if one.ranks {
		return RankCSV(*before)
	}
	if one.whyNot != "" {
		answer, err := WhyNot(*before, one.whyNot)
		if err != nil {
			return fmt.Sprintf("why not %s: %v\n", one.whyNot, err)
		}
		return fmt.Sprintf("why not %s: %s\n  changes: %s\n",
			one.whyNot, strings.Join(answer.Why, "; "), strings.Join(answer.Changes, "; "))
	}
	if one.capacity > 0 {
		engine, err := NewEngine(s.policy())
		if err != nil {
			t.Fatal(err)
		}
		capacity := engine.Capacity(s.view().Columns(model.DefaultCluster), noon, one.request, one.capacity)
		text := fmt.Sprintf("%s fit", count(capacity.Count, "VM"))
		if capacity.RunsOut != "" {
			text += fmt.Sprintf("; %s runs out first: %s", capacity.RunsOut, capacity.Reason)
		}
		for _, warning := range capacity.Warnings {
			text += "\n  warning: " + warning
		}
		for _, node := range capacity.Nodes {
			text += fmt.Sprintf("\n  %d on %s, then %s: %s", node.Count, node.Name, node.RunsOut.Constraint, node.RunsOut.Message)
		}
		return text + "\n"
	}
	*before = Place(s.view(), one.request, s.policy(), one.seed)
	if one.full {
		return FullText(*before) + poolsText(before)
	}
	return Text(*before) + poolsText(before)
}

// words are the rest of a line.
type words struct {
	t     *testing.T
	line  string
	named map[string][]string
}

func (w words) has(name string) bool { return len(w.named[name]) > 0 }

func (w words) text(name string) string {
	if !w.has(name) {
		return ""
	}
	return w.named[name][0]
}

func (w words) size(name string) units.Bytes {
	size, err := units.ParseBytes(w.text(name))
	if err != nil {
		w.t.Fatalf("%s: %s: %v", w.line, name, err)
	}
	return size
}

func (w words) float(name string) float64 {
	value, err := strconv.ParseFloat(w.text(name), 64)
	if err != nil {
		w.t.Fatalf("%s: %s: %v", w.line, name, err)
	}
	return value
}

func (w words) optional(name string) *float64 {
	if !w.has(name) {
		return nil
	}
	return ptr(w.float(name))
}

func (w words) optionalSize(name string) *units.Bytes {
	if !w.has(name) {
		return nil
	}
	return ptr(w.size(name))
}

func parseScenario(t *testing.T, text string) *scenario {
	t.Helper()
	s := newScenario()
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		what, name, rest := fields[0], "", fields[1:]
		if what != "policy" && what != "cluster" && what != "ranks" {
			name, rest = fields[1], fields[2:]
		}
		w := words{t: t, line: line, named: make(map[string][]string)}
		for _, field := range rest {
			key, value, _ := strings.Cut(field, "=")
			w.named[key] = append(w.named[key], value)
		}
		switch what {
		case "node":
			s.addNode(name, w)
		case "vm":
			s.addVM(name, w)
		case "cluster":
			s.setCluster(w)
		case "policy":
			s.setPolicy(w)
		case "pool":
			s.addPool(name, w)
		case "volume":
			s.addVolume(name, w)
		case "group":
			s.addGroup(name, w)
		case "ranks":
			s.asked = append(s.asked, asked{ranks: true})
		case "start", "migrate", "create", "drain", "repair", "balance":
			s.ask(Purpose(what), name, w)
		case "why-not":
			s.asked = append(s.asked, asked{whyNot: name})
		case "capacity":
			s.ask(ForStart, name, w)
			s.asked[len(s.asked)-1].capacity = 1000
			if w.has("most") {
				s.asked[len(s.asked)-1].capacity = int(w.float("most"))
			}
		default:
			t.Fatalf("%s: unknown word %q", line, what)
		}
	}
	for id, facts := range s.facts {
		slices.SortFunc(facts.Domains, func(a, b model.Domain) int { return strings.Compare(a.UUID, b.UUID) })
		s.facts[id] = facts
	}
	return s
}

func (s *scenario) addNode(name string, w words) {
	node := model.Node{ID: name, Name: name, Cluster: model.DefaultCluster, Labels: w.named["label"], Management: w.has("management")}
	node.Settings = model.NodeSettings{
		RAMRatio: w.optional("ram_ratio"), CPURatio: w.optional("cpu_ratio"), Overhead: w.optionalSize("overhead"),
	}
	for _, text := range w.named["unanswered"] {
		since, err := time.Parse(time.RFC3339, text)
		if err != nil {
			w.t.Fatal(err)
		}
		node.Unanswered = unanswered.Mark{Operation: "o1", Since: since}
	}
	for _, text := range w.named["key"] {
		name, figures := w.key(text, 1)
		if node.Keys == nil {
			node.Keys = make(map[string]float64)
		}
		node.Keys[name] = figures[0]
	}
	if w.has("maintenance") {
		node.Maintenance, node.MaintenanceReason = true, w.text("maintenance")
	}
	s.nodes = append(s.nodes, node)
	facts := model.NodeFacts{Liveness: model.Up}
	if w.has("liveness") {
		facts.Liveness = model.Liveness(w.text("liveness"))
		facts.LivenessReason = "as the scenario says"
	}
	if !w.has("no-inventory") {
		facts.Inventory, facts.InventoryAt = true, noon.Add(-20*time.Second)
		facts.Memory, facts.CPUs = w.size("memory"), int(w.float("cpus"))
		facts.DomainsKnown = !w.has("no-domains")
	}
	if !w.has("no-telemetry") {
		age := time.Second
		if w.has("telemetry") {
			var err error
			if age, err = time.ParseDuration(w.text("telemetry")); err != nil {
				w.t.Fatalf("%s: %v", w.line, err)
			}
		}
		facts.Telemetry, facts.TelemetryAt = true, noon.Add(-age)
		facts.Available, facts.Load1, facts.CPUBusy = w.optionalSize("available"), w.optional("load"), w.optional("busy")
		facts.CPUPressure = w.optional("pressure")
		facts.MemoryPressure, facts.VCPUDelay = w.optional("memory_pressure"), w.optional("vcpu_delay")
	}
	knowAround(&facts, w)
	s.facts[name] = facts
}

func (s *scenario) addVM(name string, w words) {
	on := w.text("on")
	spec := model.VMSpec{Memory: w.size("memory"), VCPUs: int(w.float("vcpus"))}
	if w.has("arriving") {
		s.reservations = append(s.reservations, model.Reservation{
			Node: on, VM: name, Name: name, Memory: spec.Memory, VCPUs: spec.VCPUs, Operation: "op-" + name,
		})
		return
	}
	var resident []model.ResidentKey
	for word, class := range classes("shows") {
		for _, text := range w.named[word] {
			name, figures := w.key(text, 1)
			resident = append(resident, model.ResidentKey{Class: class, Name: name, Value: figures[0]})
		}
	}
	started := noon.Add(-time.Hour)
	if w.has("young") {
		started = noon
	}
	if !w.has("foreign") {
		vm := model.VM{
			ID: name, Name: name, Spec: spec, Desired: model.Running, Holder: on, Epoch: 1, StartedAt: started,
			Resident: resident, Owner: w.owner(), Labels: w.named["label"],
		}
		if w.has("immovable") {
			vm.Migration = model.MigrateNever
		}
		vm.HA = w.has("ha")
		s.vms = append(s.vms, vm)
	}
	if w.has("moving_to") {
		s.reservations = append(s.reservations, model.Reservation{
			Node: w.text("moving_to"), VM: name, Name: name, Memory: spec.Memory, VCPUs: spec.VCPUs, Operation: "op-" + name,
		})
	}
	facts := s.facts[on]
	facts.Domains = append(facts.Domains, model.Domain{
		UUID: name, Name: name, State: model.DomainRunning, Memory: spec.Memory, VCPUs: spec.VCPUs, Since: started,
		Resident: w.optionalSize("resident"), CPU: w.optional("cpu"),
	})
	s.facts[on] = facts
}

func (s *scenario) addGroup(name string, w words) {
	record := model.Resource{
		Kind: model.KindGroup, ID: "group-" + name, Name: name,
		Settings: map[string]string{
			model.SettingVMsRule: w.text("vms"), model.SettingNodesRule: w.text("nodes"), model.SettingPriority: w.text("priority"),
			model.SettingVMsEnforcing: strconv.FormatBool(w.has("hard_vms")), model.SettingNodesEnforcing: strconv.FormatBool(w.has("hard_nodes")),
		},
		Members: map[string][]string{model.MembersVMs: w.named["vm"], model.MembersNodes: w.named["node"]},
		Lists:   map[string][]string{model.ListVMLabels: w.named["vm_label"], model.ListNodeLabels: w.named["node_label"]},
	}
	slices.Sort(record.Members[model.MembersVMs])
	slices.Sort(record.Members[model.MembersNodes])
	s.groups = append(s.groups, record)
}

// key reads NAME:FIGURE with as many figures as are asked for.
func (w words) key(text string, figures int) (string, []float64) {
	parts := strings.Split(text, ":")
	if len(parts) != figures+1 {
		w.t.Fatalf("%s: %s: want a name and %d figures", w.line, text, figures)
	}
	var read []float64
	for _, part := range parts[1:] {
		figure, err := strconv.ParseFloat(part, 64)
		if err != nil {
			w.t.Fatalf("%s: %v", w.line, err)
		}
		read = append(read, figure)
	}
	return parts[0], read
}

func (w words) owner() model.Owner {
	return model.Owner{Customer: w.text("customer"), BillingEntity: w.text("billing")}
}

// classes are the classes of customer keys by the words for them.
func classes(word string) map[string]model.KeyClass {
	return map[string]model.KeyClass{word: model.CustomerKey, word + "_billing": model.BillingEntityKey}
}

func (s *scenario) setCluster(w words) {
	for _, name := range []string{
		model.SettingStorage, model.SettingInitialMSAV, model.SettingFinalMSAV, model.SettingMSAVSteps, model.SettingKeyScope,
		model.SettingSpareNodes,
	} {
		if w.has(name) {
			if s.cluster.Settings == nil {
				s.cluster.Settings = make(map[string]string)
			}
			s.cluster.Settings[name] = w.text(name)
		}
	}
	if w.has("no-specials") {
		s.cluster.Keys = nil
	}
	for _, text := range w.named["key"] {
		name, figures := w.key(text, 2)
		s.cluster.Keys = append(s.cluster.Keys, model.Key{Class: model.SystemKey, Name: name, Value: figures[0], Weight: figures[1]})
	}
	for _, text := range w.named["node_key"] {
		name, figures := w.key(text, 1)
		s.cluster.NodeKeys = append(s.cluster.NodeKeys, model.NodeKey{Name: name, Default: figures[0]})
	}
	for _, text := range w.named["sticky"] {
		name, figures := w.key(text, 2)
		s.cluster.NodeKeys = append(s.cluster.NodeKeys, model.NodeKey{Name: name, Default: figures[0], Sticky: true, Weight: figures[1]})
	}
}

func (s *scenario) setPolicy(w words) {
	s.change = func(p *policies.Policy) {
		if w.has("builtin") {
			*p, _ = policies.Builtin(w.text("builtin"), model.SettingsOf(&s.cluster))
		}
		if w.has("selector") {
			p.Selector = w.text("selector")
		}
		if w.text("gate") == string(policies.GateOff) {
			p.Gate = policies.Gate{Kind: policies.GateOff}
		}
		if w.has("weigher") {
			p.Weighers = nil
		}
		for _, text := range w.named["weigher"] {
			name, figures := w.key(text, 1)
			p.Weighers = append(p.Weighers, policies.Factor{Weigher: name, Factor: figures[0]})
		}
		p.Constraints = slices.DeleteFunc(p.Constraints, func(c string) bool { return slices.Contains(w.named["without"], c) })
	}
}

// compiled are the system keys of the cluster and these at the level of the VM.
func (s *scenario) compiled(keys []model.Key) []key.Weighted {
	system, _ := key.Compile([]key.Layer{
		{Level: key.LevelCluster, Resource: "cluster/default", Keys: s.cluster.Keys},
		{Level: key.LevelServer, Resource: "vm/new", Keys: keys},
	})
	return key.WeightedOf(system)
}

func (s *scenario) ask(purpose Purpose, name string, w words) {
	request := Request{
		Purpose: purpose, VM: name, VMName: name, Pinned: w.text("pin"), Excluded: w.named["exclude"], Home: w.text("home"),
		Owner: w.owner(), Labels: w.named["label"], Leave: w.has("leave"), Among: w.named["among"], Preferred: w.named["prefer"],
	}
	request.askAround(w)
	if w.has("along") {
		request.Unit = &Unit{VMs: w.named["along"], Memory: w.size("along_memory"), VCPUs: len(w.named["along"])}
	}
	if w.has("if_better") {
		request.IfBetter = w.float("if_better")
	}
	if purpose.Moves() {
		at := slices.IndexFunc(s.vms, func(vm model.VM) bool { return vm.ID == name })
		request.Memory, request.VCPUs, request.Current = s.vms[at].Spec.Memory, s.vms[at].Spec.VCPUs, s.vms[at].Holder
		request.Owner, request.Labels, request.HA = s.vms[at].Owner, s.vms[at].Labels, s.vms[at].HA
	} else {
		request.Memory, request.VCPUs = w.size("memory"), int(w.float("vcpus"))
	}
	var own []model.Key
	for _, text := range w.named["key"] {
		name, figures := w.key(text, 2)
		own = append(own, model.Key{Class: model.SystemKey, Name: name, Value: figures[0], Weight: figures[1]})
	}
	request.SystemKeys = s.compiled(own)
	for word, class := range classes("wants") {
		for _, text := range w.named[word] {
			name, figures := w.key(text, 2)
			request.CustomerKeys = append(request.CustomerKeys, key.Weighted{
				Name: name, Value: figures[0], Weight: figures[1], Class: class, Level: key.LevelServer.String(),
			})
		}
	}
	slices.SortFunc(request.CustomerKeys, func(a, b key.Weighted) int { return strings.Compare(a.Name, b.Name) })
	one := asked{request: request, seed: 1, full: w.has("full")}
	if w.has("seed") {
		one.seed = uint64(w.float("seed"))
	}
	s.asked = append(s.asked, one)
}
