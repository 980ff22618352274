package scenario

import (
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"berth/coordinator/balance"
	"berth/coordinator/document"
	"berth/coordinator/model"
	"berth/coordinator/scenario/format"
	"berth/coordinator/schema"
	"berth/coordinator/strictyaml"
	"berth/shared/units"
)

// Parse reads a scenario and puts its world together once, so that what it returns can be run. It is strict: it returns
// every problem that it finds, with its line, and no scenario if there is any.
func Parse(name string, data []byte) (*Scenario, []schema.Problem) {
	r := &reader{strictyaml.Reader{File: name}}
	if len(data) > MaxScenario {
		r.RefuseLine(0, "cut it down", "it has %d bytes or more, at most %d are read", len(data), MaxScenario)
		return nil, r.Problems
	}
	root := r.Document(data, "write one YAML mapping; 'berth simulate --help' shows an example")
	if root == nil {
		return nil, r.Problems
	}
	s := r.scenario(name, root)
	if len(r.Problems) == 0 {
		s.checked, r.Problems = s.world()
	}
	if len(r.Problems) > 0 {
		slices.SortStableFunc(r.Problems, func(a, b schema.Problem) int { return a.Line - b.Line })
		return nil, r.Problems
	}
	return s, nil
}

func (r *reader) scenario(name string, root *yaml.Node) *Scenario {
	s := &Scenario{Name: name, At: beginning, Interval: balance.Interval, Bandwidth: DefaultBandwidth}
	m := r.Mapping(root, "the scenario")
	if said := m.Need("format", "begin with format: "+format.Version); said != nil && said.Value != format.Version {
		next := "write format: " + format.Version
		if said.Value == document.Format {
			next = "that is an estate, which 'berth apply' reads; 'berth export --scenario' writes a scenario"
		}
		r.Refuse(said, next, "format is %s, which is not known here", strictyaml.KindOf(said))
		return s // the rest would only be found wrong line by line
	}
	if seed := m.Seed("seed"); seed != nil {
		s.Seed = *seed
	}
	if at := m.Moment("at"); !at.IsZero() {
		s.At = at
	}
	if interval := m.Lasting("interval"); interval != nil {
		s.Interval = *interval
	}
	if bandwidth := m.Size("bandwidth"); bandwidth != nil {
		if s.Bandwidth = *bandwidth; s.Bandwidth < units.MiB {
			r.Refuse(m.Value("bandwidth"), "give what a migration copies in a second, for instance 128M", "bandwidth is %v", s.Bandwidth)
		}
	}
	if section := m.Take("estate"); section != nil {
		var problems []schema.Problem
		s.document, problems = document.ParseNode(name, section)
		r.Problems = append(r.Problems, problems...)
	}
	for _, one := range m.Pairs("ids") {
		if id, is := strictyaml.Scalar(one.Value); is {
			s.ids = append(s.ids, identity{line: one.Value.Line, subject: one.Name, id: id})
		} else {
			r.Refuse(one.Value, "write KIND/NAME: ID", "the ID of %s is %s, want a text", one.Name, strictyaml.KindOf(one.Value))
		}
	}
	for _, node := range m.List("nodes") {
		s.nodes = append(s.nodes, r.nodeEntry(node))
	}
	running := m.List("running")
	s.running = make([]guestEntry, 0, len(running))
	for _, node := range running {
		s.running = append(s.running, r.guestEntry(node))
	}
	for _, node := range m.List("stopped") {
		s.stopped = append(s.stopped, r.stoppedEntry(node))
	}
	for _, node := range m.List("volumes") {
		s.volumes = append(s.volumes, r.volumeEntry(node))
	}
	for _, one := range m.Pairs("broken") {
		if ago := m.AgeOf(one.Value, one.Name); ago != nil {
			s.broken = append(s.broken, brokenEntry{line: one.Value.Line, group: one.Name, ago: *ago})
		}
	}
	for _, node := range m.List("plans") {
		s.plans = append(s.plans, r.planEntry(node))
	}
	var passed time.Duration
	for _, node := range m.List("steps") {
		if step, ok := r.step(node, &passed); ok {
			s.Steps = append(s.Steps, step)
		}
	}
	if passes := passed / s.Interval; passes > maxPasses {
		r.Refuse(
			root, "let less time pass, or give a longer interval", "%v in steps of %v are %d passes, at most %d are made", passed,
			s.Interval, passes, maxPasses,
		)
	}
	if !s.still() {
		r.refuseEarly(s.Steps)
	}
	m.Close()
	return s
}

// refuseEarly refuses to expect of a drain what comes of it only when time has passed.
func (r *reader) refuseEarly(steps []Step) {
	for i := range steps {
		if step := &steps[i]; step.Expect != nil && step.of == expectsDrain {
			r.RefuseLine(
				step.Expect.Line, "expect it of a run after it, with where", "%s takes time here: nothing has moved when it begins", step.Words,
			)
		}
	}
}

func (r *reader) nodeEntry(node *yaml.Node) nodeEntry {
	m := r.Mapping(node, "a node")
	entry := nodeEntry{line: node.Line, name: m.Name("name", "give the node's name")}
	if entry.name != "" {
		m.What = "node " + entry.name
	}
	entry.figures = figuresOf(m)
	m.Close()
	unknown := func(what string) bool { return slices.Contains(entry.unknown, what) }
	if node.Kind == yaml.MappingNode && !unknown("inventory") && entry.state != format.Unheard {
		if entry.memory == nil && !m.Has("memory") {
			r.Refuse(node, "give its physical memory, for instance memory: 64G", "%s has no memory", m.What)
		}
		if entry.cpus == nil && !m.Has("cpus") {
			r.Refuse(node, "give the number of its CPUs", "%s has no cpus", m.What)
		}
	}
	return entry
}

// stateDown is the state of a node that a step has taken down.
const stateDown = string(model.Unreachable)

var (
	nodeStates  = []string{string(model.Up), string(model.Suspect), stateDown, string(model.Degraded), format.Unheard}
	unknowables = []string{"inventory", "domains", "telemetry", "available", "load", "pools", "networks"}
	guestStates = []string{
		string(model.DomainRunning), string(model.DomainPaused), string(model.DomainPausedMigration),
		string(model.DomainCrashed), string(model.DomainShutoff), string(model.DomainUnknown), string(model.DomainAbsent),
	}
)

func figuresOf(m *strictyaml.Mapping) figures {
	f := figures{
		memory: m.Size("memory"), available: m.Size("available"), ksmSaved: m.Size("ksm_saved"), cpus: m.Whole("cpus", 0, maxCPUs),
		measured:          measuredOf(m),
		maintenanceReason: m.Text("maintenance_reason"), state: m.Word("state", nodeStates...), stateReason: m.Text("state_reason"),
		inventoryAge: m.Age("inventory_age"), telemetryAge: m.Age("telemetry_age"), unknown: m.Texts("unknown"), around: aroundOf(m),
	}
	if on, given := m.Flag("maintenance"); given {
		f.maintenance = &on
	}
	if f.maintenanceReason != "" && (f.maintenance == nil || !*f.maintenance) {
		m.Refuse(m.Value("maintenance_reason"), "say maintenance: true as well", "%s has a maintenance_reason without maintenance", m.What)
	}
	if f.stateReason != "" && (f.state == "" || f.state == string(model.Up)) {
		m.Refuse(m.Value("state_reason"), "say state as well, one other than up", "%s has a state_reason without a state", m.What)
	}
	for _, what := range f.unknown {
		if !slices.Contains(unknowables, what) {
			m.Refuse(m.Value("unknown"), "use "+strings.Join(unknowables, ", "), "unknown of %s has %q", m.What, what)
		}
	}
	return f
}

// measuredOf reads the measurements, in their order. An element is nil if that one is not given, the whole if none is.
func measuredOf(m *strictyaml.Mapping) []*float64 {
	var read []*float64
	for i, one := range format.Measurements {
		figure := m.Number(one.Name, 0)
		if figure == nil {
			continue
		}
		if read == nil {
			read = make([]*float64, len(format.Measurements))
		}
		read[i] = figure
	}
	return read
}

func (r *reader) guestEntry(node *yaml.Node) guestEntry {
	m := r.Mapping(node, "an entry of running")
	entry := guestEntry{line: node.Line, vm: m.Text("vm"), foreign: m.Text("foreign")}
	switch {
	case entry.vm != "":
		m.What = "VM " + entry.vm
	case entry.foreign != "":
		m.What = "domain " + entry.foreign
	}
	switch {
	case m.Has("vm") && m.Has("foreign"):
		r.Refuse(node, "use foreign for a domain that is not Berth's", "%s is both vm and foreign", m.What)
	case !m.Has("vm") && !m.Has("foreign") && node.Kind == yaml.MappingNode:
		r.Refuse(node, "give vm, a VM of the estate, or foreign, a domain that is not Berth's", "%s has neither vm nor foreign", m.What)
	}
	entry.node = m.Name("node", "give the name of the node that it runs on")
	entry.memory, entry.vcpus = m.Size("memory"), m.Whole("vcpus", 0, maxVCPUs)
	entry.resident, entry.ballooned, entry.most = m.Size("resident"), m.Size("ballooned"), m.Size("most")
	entry.cpu = m.Number("cpu", 0)
	entry.young, _ = m.Flag("young")
	entry.inFlight, _ = m.Flag("in_flight")
	entry.state = m.Word("state", guestStates...)
	if m.Has("foreign") {
		entry.id = m.Text("id")
		if entry.memory == nil && !m.Has("memory") {
			r.Refuse(node, "give its memory, for instance memory: 8G", "%s has no memory", m.What)
		}
		m.Close()
		return entry
	}
	entry.stray, _ = m.Flag("stray")
	entry.keys, entry.keysGiven = residentKeysOf(m, "customer_keys")
	if m.Has("owner") {
		if value := m.Take("owner"); value != nil {
			owner := r.Mapping(value, "owner of "+m.What)
			entry.customer, entry.billing, entry.ownerGiven = owner.Text("customer"), owner.Text("billing_entity"), true
			owner.Close()
		}
	}
	entry.past = pastOf(m)
	m.Close()
	return entry
}

func (r *reader) stoppedEntry(node *yaml.Node) stoppedEntry {
	m := r.Mapping(node, "an entry of stopped")
	entry := stoppedEntry{line: node.Line, vm: m.Name("vm", "give the name of a VM of the estate")}
	if entry.vm != "" {
		m.What = "VM " + entry.vm
	}
	entry.past = pastOf(m)
	m.Close()
	return entry
}

func pastOf(m *strictyaml.Mapping) past {
	p := past{
		home: m.Text("home"), last: m.Text("last"), model: m.Text("cpu_model"), hostCPU: m.Text("host_cpu"), movedAgo: m.Age("moved_ago"),
	}
	p.sticky, p.stickyGiven = stickyKeysOf(m, "sticky")
	return p
}

// residents are customer keys as a VM shows them to others: without weights.
func residentKeysOf(m *strictyaml.Mapping, name string) (keys []model.ResidentKey, given bool) {
	for _, node := range m.List(name) {
		one := m.Mapping(node, name+" of "+m.What)
		key := keyOf(one, model.CustomerKey, model.CustomerKey, model.BillingEntityKey)
		one.Close()
		keys = append(keys, model.ResidentKey{Class: key.Class, Name: key.Name, Value: key.Value})
	}
	return keys, m.Has(name)
}

// stickyKeys are the copies of sticky node keys that a VM took along.
func stickyKeysOf(m *strictyaml.Mapping, name string) (keys []model.Key, given bool) {
	for _, node := range m.List(name) {
		one := m.Mapping(node, name+" of "+m.What)
		key := keyOf(one, "", model.SystemKey, model.CustomerKey)
		if weight := one.Number("weight", -strictyaml.MaxFigure); weight != nil {
			key.Weight = *weight
		} else if !one.Has("weight") {
			m.Refuse(node, "give the weight that the cluster declares for it", "sticky key %s of %s has no weight", key.Name, m.What)
		}
		if key.Class == "" {
			key.Class = model.StickyClass(key.Name)
		}
		one.Close()
		keys = append(keys, key)
	}
	return keys, m.Has(name)
}

// key reads name, value and class.
func keyOf(m *strictyaml.Mapping, otherwise model.KeyClass, classes ...model.KeyClass) model.Key {
	key := model.Key{Class: otherwise, Name: m.Name("name", "give the key's name")}
	if value := m.Number("value", -strictyaml.MaxFigure); value != nil {
		key.Value = *value
	} else if !m.Has("value") && m.Node.Kind == yaml.MappingNode {
		m.Refuse(m.Node, "give the key's value, a number", "%s: key %s has no value", m.What, key.Name)
	}
	words := make([]string, 0, len(classes))
	for _, class := range classes {
		words = append(words, string(class))
	}
	if class := m.Word("class", words...); class != "" {
		key.Class = model.KeyClass(class)
	}
	return key
}
