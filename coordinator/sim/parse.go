package sim

import (
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"berth/coordinator/balance"
	"berth/coordinator/cluster"
	"berth/coordinator/estate"
	"berth/shared/units"
)

// Parse reads a scenario and puts its world together once, so that what it returns can be run. It is strict: it returns
// every problem that it finds, with its line, and no scenario if there is any.
func Parse(name string, data []byte) (*Scenario, []estate.Problem) {
	r := &reader{file: name}
	if len(data) > MaxScenario {
		r.refuseLine(0, "cut it down", "it has %d bytes or more, at most %d are read", len(data), MaxScenario)
		return nil, r.problems
	}
	root := r.document(data)
	if root == nil {
		return nil, r.problems
	}
	s := r.scenario(name, root)
	if len(r.problems) == 0 {
		s.checked, r.problems = s.world()
	}
	if len(r.problems) > 0 {
		slices.SortStableFunc(r.problems, func(a, b estate.Problem) int { return a.Line - b.Line })
		return nil, r.problems
	}
	return s, nil
}

func (r *reader) scenario(name string, root *yaml.Node) *Scenario {
	s := &Scenario{Name: name, At: beginning, Interval: balance.Interval, Bandwidth: DefaultBandwidth}
	m := r.mapping(root, "the scenario")
	if format := m.need("format", "begin with format: "+Format); format != nil && format.Value != Format {
		next := "write format: " + Format
		if format.Value == estate.Format {
			next = "that is an estate, which 'berth apply' reads; 'berth export --scenario' writes a scenario"
		}
		r.refuse(format, next, "format is %s, which is not known here", kindOf(format))
		return s // the rest would only be found wrong line by line
	}
	if seed := m.seed("seed"); seed != nil {
		s.Seed = *seed
	}
	if at := m.moment("at"); !at.IsZero() {
		s.At = at
	}
	if interval := m.lasting("interval"); interval != nil {
		s.Interval = *interval
	}
	if bandwidth := m.size("bandwidth"); bandwidth != nil {
		if s.Bandwidth = *bandwidth; s.Bandwidth < units.MiB {
			r.refuse(m.value("bandwidth"), "give what a migration copies in a second, for instance 128M", "bandwidth is %v", s.Bandwidth)
		}
	}
	if section := m.take("estate"); section != nil {
		var problems []estate.Problem
		s.document, problems = estate.ParseNode(name, section)
		r.problems = append(r.problems, problems...)
	}
	for _, one := range m.pairs("ids") {
		if id, is := scalar(one.value); is {
			s.ids = append(s.ids, identity{line: one.value.Line, subject: one.name, id: id})
		} else {
			r.refuse(one.value, "write KIND/NAME: ID", "the ID of %s is %s, want a text", one.name, kindOf(one.value))
		}
	}
	for _, node := range m.list("nodes") {
		s.nodes = append(s.nodes, r.nodeEntry(node))
	}
	running := m.list("running")
	s.running = make([]guestEntry, 0, len(running))
	for _, node := range running {
		s.running = append(s.running, r.guestEntry(node))
	}
	for _, node := range m.list("stopped") {
		s.stopped = append(s.stopped, r.stoppedEntry(node))
	}
	for _, node := range m.list("volumes") {
		s.volumes = append(s.volumes, r.volumeEntry(node))
	}
	for _, one := range m.pairs("broken") {
		if ago := m.ageOf(one.value, one.name); ago != nil {
			s.broken = append(s.broken, brokenEntry{line: one.value.Line, group: one.name, ago: *ago})
		}
	}
	for _, node := range m.list("plans") {
		s.plans = append(s.plans, r.planEntry(node))
	}
	var passed time.Duration
	for _, node := range m.list("steps") {
		if step, ok := r.step(node, &passed); ok {
			s.Steps = append(s.Steps, step)
		}
	}
	if passes := passed / s.Interval; passes > maxPasses {
		r.refuse(root, "let less time pass, or give a longer interval", "%v in steps of %v are %d passes, at most %d are made", passed, s.Interval, passes, maxPasses)
	}
	if !s.still() {
		r.refuseEarly(s.Steps)
	}
	m.close()
	return s
}

// refuseEarly refuses to expect of a drain what comes of it only when time has passed.
func (r *reader) refuseEarly(steps []Step) {
	for i := range steps {
		if step := &steps[i]; step.Expect != nil && step.of == expectsDrain {
			r.refuseLine(step.Expect.Line, "expect it of a run after it, with where", "%s takes time here: nothing has moved when it begins", step.Words)
		}
	}
}

func (r *reader) nodeEntry(node *yaml.Node) nodeEntry {
	m := r.mapping(node, "a node")
	entry := nodeEntry{line: node.Line, name: m.name("name", "give the node's name")}
	if entry.name != "" {
		m.what = "node " + entry.name
	}
	entry.figures = m.figures()
	m.close()
	unknown := func(what string) bool { return slices.Contains(entry.unknown, what) }
	if node.Kind == yaml.MappingNode && !unknown("inventory") && entry.state != stateUnheard {
		if entry.memory == nil && !m.has("memory") {
			r.refuse(node, "give its physical memory, for instance memory: 64G", "%s has no memory", m.what)
		}
		if entry.cpus == nil && !m.has("cpus") {
			r.refuse(node, "give the number of its CPUs", "%s has no cpus", m.what)
		}
	}
	return entry
}

// Words of a scenario.
const (
	stateUnheard = "unheard"
	stateDown    = string(cluster.Unreachable)
)

var (
	nodeStates  = []string{string(cluster.Up), string(cluster.Suspect), stateDown, string(cluster.Degraded), stateUnheard}
	unknowables = []string{"inventory", "domains", "telemetry", "available", "load", "pools", "networks"}
	guestStates = []string{
		string(cluster.DomainRunning), string(cluster.DomainPaused), string(cluster.DomainPausedMigration),
		string(cluster.DomainCrashed), string(cluster.DomainShutoff), string(cluster.DomainUnknown), string(cluster.DomainAbsent),
	}
)

func (m *mapping) figures() figures {
	f := figures{
		memory: m.size("memory"), available: m.size("available"), ksmSaved: m.size("ksm_saved"), cpus: m.whole("cpus", 0, maxCPUs),
		load: m.number("load", 0), busy: m.number("busy", 0),
		maintenanceReason: m.text("maintenance_reason"), state: m.word("state", nodeStates...), stateReason: m.text("state_reason"),
		inventoryAge: m.age("inventory_age"), telemetryAge: m.age("telemetry_age"), unknown: m.texts("unknown"), around: m.around(),
	}
	if on, given := m.flag("maintenance"); given {
		f.maintenance = &on
	}
	if f.maintenanceReason != "" && (f.maintenance == nil || !*f.maintenance) {
		m.refuse(m.value("maintenance_reason"), "say maintenance: true beside it", "%s has a maintenance_reason without maintenance", m.what)
	}
	if f.stateReason != "" && (f.state == "" || f.state == string(cluster.Up)) {
		m.refuse(m.value("state_reason"), "say state beside it, one other than up", "%s has a state_reason without a state", m.what)
	}
	for _, what := range f.unknown {
		if !slices.Contains(unknowables, what) {
			m.refuse(m.value("unknown"), "use "+strings.Join(unknowables, ", "), "unknown of %s has %q", m.what, what)
		}
	}
	return f
}

func (r *reader) guestEntry(node *yaml.Node) guestEntry {
	m := r.mapping(node, "an entry of running")
	entry := guestEntry{line: node.Line, vm: m.text("vm"), foreign: m.text("foreign")}
	switch {
	case entry.vm != "":
		m.what = "VM " + entry.vm
	case entry.foreign != "":
		m.what = "domain " + entry.foreign
	}
	switch {
	case m.has("vm") && m.has("foreign"):
		r.refuse(node, "use foreign for a domain that is not Berth's", "%s is both vm and foreign", m.what)
	case !m.has("vm") && !m.has("foreign") && node.Kind == yaml.MappingNode:
		r.refuse(node, "give vm, a VM of the estate, or foreign, a domain that is not Berth's", "%s has neither vm nor foreign", m.what)
	}
	entry.node = m.name("node", "give the name of the node that it runs on")
	entry.memory, entry.vcpus = m.size("memory"), m.whole("vcpus", 0, maxVCPUs)
	entry.resident, entry.ballooned = m.size("resident"), m.size("ballooned")
	entry.cpu = m.number("cpu", 0)
	entry.young, _ = m.flag("young")
	entry.inFlight, _ = m.flag("in_flight")
	entry.state = m.word("state", guestStates...)
	if m.has("foreign") {
		entry.id = m.text("id")
		if entry.memory == nil && !m.has("memory") {
			r.refuse(node, "give its memory, for instance memory: 8G", "%s has no memory", m.what)
		}
		m.close()
		return entry
	}
	entry.stray, _ = m.flag("stray")
	entry.keys, entry.keysGiven = m.residents("customer_keys")
	if m.has("owner") {
		if value := m.take("owner"); value != nil {
			owner := r.mapping(value, "owner of "+m.what)
			entry.customer, entry.billing, entry.ownerGiven = owner.text("customer"), owner.text("billing_entity"), true
			owner.close()
		}
	}
	entry.past = m.past()
	m.close()
	return entry
}

func (r *reader) stoppedEntry(node *yaml.Node) stoppedEntry {
	m := r.mapping(node, "an entry of stopped")
	entry := stoppedEntry{line: node.Line, vm: m.name("vm", "give the name of a VM of the estate")}
	if entry.vm != "" {
		m.what = "VM " + entry.vm
	}
	entry.past = m.past()
	m.close()
	return entry
}

func (m *mapping) past() past {
	p := past{
		home: m.text("home"), last: m.text("last"), model: m.text("cpu_model"), hostCPU: m.text("host_cpu"), movedAgo: m.age("moved_ago"),
	}
	p.sticky, p.stickyGiven = m.stickyKeys("sticky")
	return p
}

// residents are customer keys as a VM shows them to others: without weights.
func (m *mapping) residents(name string) (keys []cluster.ResidentKey, given bool) {
	for _, node := range m.list(name) {
		one := m.mapping(node, name+" of "+m.what)
		key := one.key(cluster.CustomerKey, cluster.CustomerKey, cluster.BillingEntityKey)
		one.close()
		keys = append(keys, cluster.ResidentKey{Class: key.Class, Name: key.Name, Value: key.Value})
	}
	return keys, m.has(name)
}

// stickyKeys are the copies of sticky node keys that a VM took along.
func (m *mapping) stickyKeys(name string) (keys []cluster.Key, given bool) {
	for _, node := range m.list(name) {
		one := m.mapping(node, name+" of "+m.what)
		key := one.key("", cluster.SystemKey, cluster.CustomerKey)
		if weight := one.number("weight", -maxFigure); weight != nil {
			key.Weight = *weight
		} else if !one.has("weight") {
			m.refuse(node, "give the weight that the cluster declares for it", "sticky key %s of %s has no weight", key.Name, m.what)
		}
		if key.Class == "" {
			key.Class = cluster.StickyClass(key.Name)
		}
		one.close()
		keys = append(keys, key)
	}
	return keys, m.has(name)
}

// key reads name, value and class.
func (m *mapping) key(otherwise cluster.KeyClass, classes ...cluster.KeyClass) cluster.Key {
	key := cluster.Key{Class: otherwise, Name: m.name("name", "give the key's name")}
	if value := m.number("value", -maxFigure); value != nil {
		key.Value = *value
	} else if !m.has("value") && m.node.Kind == yaml.MappingNode {
		m.refuse(m.node, "give the key's value, a number", "%s: key %s has no value", m.what, key.Name)
	}
	words := make([]string, 0, len(classes))
	for _, class := range classes {
		words = append(words, string(class))
	}
	if class := m.word("class", words...); class != "" {
		key.Class = cluster.KeyClass(class)
	}
	return key
}
