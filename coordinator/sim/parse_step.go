package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"berth/coordinator/cluster"
	"berth/coordinator/estate"
	"berth/shared/units"
)

// verbs are what a step can be, each with what reads it.
var verbs = []struct {
	name    string
	read    func(m *mapping, verb string) (act action, words string)
	expects expects
}{
	{"start", readStart, expectsPlacement},
	{"stop", readStop, expectsNothing},
	{"migrate", readMigrate, expectsPlacement},
	{"drain", readDrain, expectsDrain},
	{"undrain", readUndrain, expectsDrain},
	{"run", readRun, expectsRun},
	{"moved_by_hand", readByHand, expectsNothing},
	{"new_leader", readNewLeader, expectsNothing},
	{"apply", readApply, expectsNothing},
	{"node_down", readNodeDown, expectsNothing},
	{"node_up", readNodeUp, expectsNothing},
	{"maintenance", readMaintenance, expectsNothing},
	{"set", readSet, expectsNothing},
	{"key", readKey, expectsNothing},
	{"unset_key", readUnsetKey, expectsNothing},
	{"capacity", readCapacity, expectsCapacity},
}

func verbNames() string {
	names := make([]string, 0, len(verbs))
	for _, verb := range verbs {
		names = append(names, verb.name)
	}
	return strings.Join(names, ", ")
}

// step reads one step; false if it has no verb. Passed is how much time has passed before it, and then after it.
func (r *reader) step(node *yaml.Node, passed *time.Duration) (step Step, ok bool) {
	m := r.mapping(node, "a step")
	step.Line = node.Line
	if value := m.take("at"); value != nil {
		if step.at = m.lastingOf(value, "at", 0); step.at != nil && *step.at < *passed {
			r.refuse(value, "put the steps in the order of their times", "at is %v, and %v have passed before it", *step.at, *passed)
		} else if step.at != nil {
			*passed = *step.at
		}
	}
	for _, verb := range verbs {
		if !m.has(verb.name) {
			continue
		}
		if ok {
			r.refuse(m.node.Content[m.at(verb.name)], "make it two steps", "a step is %s and also %s", step.Words, verb.name)
			m.take(verb.name)
			continue
		}
		m.what = verb.name
		step.action, step.Words = verb.read(m, verb.name)
		step.of, ok = verb.expects, true
	}
	if !ok {
		if node.Kind == yaml.MappingNode {
			r.refuse(node, "use one of "+verbNames(), "a step says nothing that can be done")
		}
		return step, false
	}
	if run, is := step.action.(*pass); is {
		*passed += run.last
	}
	if value := m.take("expect"); value != nil {
		step.Expect = r.expectation(value, step.of, step.Words)
	}
	m.close()
	return step, true
}

// inner reads the value of a verb that is either one name or a mapping with more. The name is then in field.
func (m *mapping) inner(verb, field, next string) (*mapping, string) {
	value := m.take(verb)
	if value == nil {
		return m.mapping(&yaml.Node{Kind: yaml.MappingNode, Line: m.node.Line}, verb), ""
	}
	if text, is := scalar(value); is {
		return m.mapping(&yaml.Node{Kind: yaml.MappingNode, Line: value.Line}, verb), text
	}
	inner := m.mapping(value, verb)
	return inner, inner.name(field, next)
}

func readStart(m *mapping, verb string) (act action, words string) {
	inner, name := m.inner(verb, "vm", "give the name of the VM to start")
	start := &start{vm: name, on: inner.text("on"), seed: inner.seed("seed")}
	start.described = described(inner, name)
	words = "start " + name
	if start.on != "" {
		words += " on " + start.on
	}
	return start, words
}

// described reads the fields of a VM that the estate need not have: they are those of a VM in an estate. It is nil when
// there are none.
func described(inner *mapping, name string) *estate.Document {
	entry := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: inner.node.Line}
	word := func(text string) *yaml.Node {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Line: inner.node.Line}
	}
	entry.Content = []*yaml.Node{word("name"), word(name)}
	for i := 0; i+1 < len(inner.node.Content); i += 2 {
		if key := inner.node.Content[i]; !slices.Contains([]string{"vm", "on", "seed"}, key.Value) {
			entry.Content = append(entry.Content, key, inner.node.Content[i+1])
		}
	}
	if len(entry.Content) == 2 || name == "" {
		return nil
	}
	vms := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: inner.node.Line, Content: []*yaml.Node{entry}}
	document, problems := estate.ParseNode(inner.file, &yaml.Node{
		Kind: yaml.MappingNode, Tag: "!!map", Line: inner.node.Line, Content: []*yaml.Node{word("vms"), vms},
	})
	inner.problems = append(inner.problems, problems...)
	return document
}

func readStop(m *mapping, verb string) (act action, words string) {
	name := m.name(verb, "give the name of the VM to stop")
	return &stop{vm: name}, "stop " + name
}

func readMigrate(m *mapping, verb string) (act action, words string) {
	inner, name := m.inner(verb, "vm", "give the name of the VM to migrate")
	migrate := &migrate{vm: name, to: inner.text("to"), seed: inner.seed("seed")}
	best, _ := inner.flag("best")
	if gain := inner.number("if_better", 0); gain != nil {
		migrate.ifBetter = *gain
	}
	inner.close()
	if migrate.to != "" && (best || migrate.ifBetter > 0) {
		inner.refuse(inner.node, "leave out to, or best and if_better", "migrate %s names a node and asks for the best one", name)
	}
	words = "migrate " + name + " to " + migrate.to
	if migrate.to == "" {
		words = "migrate " + name + " to the best node"
	}
	if migrate.ifBetter > 0 {
		words += " if better by " + figure(migrate.ifBetter)
	}
	return migrate, words
}

func readDrain(m *mapping, verb string) (act action, words string) {
	inner, name := m.inner(verb, "node", "give the name of the node to drain")
	drain := &drain{node: name}
	if parallel := inner.whole("parallel", 1, cluster.MaxParallelMoves); parallel != nil {
		drain.parallel = *parallel
	}
	if bandwidth := inner.size("bandwidth"); bandwidth != nil {
		if drain.bandwidth = *bandwidth; drain.bandwidth < units.MiB {
			inner.refuse(inner.value("bandwidth"), "give what one migration copies in a second, for instance 128M", "bandwidth of drain is %v", *bandwidth)
		}
	}
	inner.close()
	return drain, "drain " + name
}

func readUndrain(m *mapping, verb string) (act action, words string) {
	inner, name := m.inner(verb, "node", "give the name of the node that was drained")
	back, _ := inner.flag("return")
	inner.close()
	words = "end of the drain of " + name
	if back {
		words += ", its VMs come back"
	}
	return &undrain{node: name, back: back}, words
}

func readRun(m *mapping, verb string) (act action, words string) {
	last := m.lasting(verb)
	if last == nil {
		return &pass{}, verb
	}
	return &pass{last: *last}, "time passes: " + clock(*last)
}

func readByHand(m *mapping, verb string) (act action, words string) {
	value := m.take(verb)
	if value == nil {
		return &byHand{}, verb
	}
	inner := m.mapping(value, verb)
	moved := &byHand{vm: inner.name("vm", "give the name of the VM"), to: inner.name("to", "give the name of the node that it was moved to")}
	inner.close()
	return moved, fmt.Sprintf("%s is moved to %s by hand", moved.vm, moved.to)
}

func readNewLeader(m *mapping, verb string) (act action, words string) {
	name := m.name(verb, "give the name of the coordinator that leads from now on")
	return &newLeader{}, name + " becomes the leader"
}

func readApply(m *mapping, verb string) (act action, words string) {
	value := m.take(verb)
	if value == nil {
		return &apply{}, verb
	}
	document, problems := estate.ParseNode(m.file, value)
	m.problems = append(m.problems, problems...)
	return &apply{document: document}, "a part of the estate is declared anew"
}

func readNodeDown(m *mapping, verb string) (act action, words string) {
	name := m.name(verb, "give the name of the node")
	return &liveness{node: name, down: true}, name + " goes down"
}

func readNodeUp(m *mapping, verb string) (act action, words string) {
	name := m.name(verb, "give the name of the node")
	return &liveness{node: name}, name + " comes up"
}

func readMaintenance(m *mapping, verb string) (act action, words string) {
	inner, name := m.inner(verb, "node", "give the name of the node")
	on, given := inner.flag("on")
	maintenance := &maintenance{node: name, on: on || !given, reason: inner.text("reason")}
	inner.close()
	if maintenance.on {
		return maintenance, "maintenance of " + name + " begins"
	}
	return maintenance, "maintenance of " + name + " ends"
}

func readSet(m *mapping, verb string) (act action, words string) {
	const next = "write the fields of a node under nodes, or vm with resident, cpu or ballooned"
	value := m.take(verb)
	if value == nil {
		return &setNode{}, verb
	}
	inner := m.mapping(value, verb)
	if inner.has("vm") {
		set := &setGuest{vm: inner.name("vm", next), resident: inner.size("resident"), ballooned: inner.size("ballooned"), cpu: inner.number("cpu", 0)}
		inner.close()
		return set, "new figures of VM " + set.vm
	}
	set := &setNode{node: inner.name("node", next)}
	set.figures = inner.figures()
	inner.close()
	return set, "new figures of " + set.node
}

func readKey(m *mapping, verb string) (act action, words string) {
	inner, on := m.keyed(verb)
	set := &setKey{on: on, key: inner.key(cluster.SystemKey, cluster.SystemKey, cluster.BillingEntityKey, cluster.CustomerKey)}
	if weight := inner.number("weight", -maxFigure); weight != nil {
		set.key.Weight, set.weighed = *weight, true
	}
	set.classed = inner.has("class")
	inner.close()
	words = "key " + set.key.Name + " = " + figure(set.key.Value)
	if set.weighed {
		words += " with weight " + figure(set.key.Weight)
	}
	return set, words + " on " + string(on.kind) + "/" + on.name
}

func readUnsetKey(m *mapping, verb string) (act action, words string) {
	inner, on := m.keyed(verb)
	unset := &unsetKey{on: on, name: inner.name("name", "give the key's name"), class: cluster.SystemKey}
	if class := inner.word("class", string(cluster.SystemKey), string(cluster.BillingEntityKey), string(cluster.CustomerKey)); class != "" {
		unset.class = cluster.KeyClass(class)
	}
	inner.close()
	return unset, "no key " + unset.name + " on " + string(on.kind) + "/" + on.name
}

// reference is kind/name.
type reference struct {
	kind cluster.Kind
	name string
}

func (m *mapping) keyed(verb string) (*mapping, reference) {
	const next = "write on: KIND/NAME, for instance on: customer/acme"
	value := m.take(verb)
	if value == nil {
		return m.mapping(&yaml.Node{Kind: yaml.MappingNode, Line: m.node.Line}, verb), reference{}
	}
	inner := m.mapping(value, verb)
	text := inner.name("on", next)
	kind, name, ok := strings.Cut(text, "/")
	if text != "" && (!ok || kind == "" || name == "") {
		inner.refuse(inner.value("on"), next, "on of %s is %q", verb, text)
	}
	return inner, reference{kind: cluster.Kind(kind), name: name}
}

func readCapacity(m *mapping, verb string) (act action, words string) {
	value := m.take(verb)
	if value == nil {
		return &capacity{}, verb
	}
	inner := m.mapping(value, verb)
	if inner.need("memory", "give the size of one VM, for instance memory: 4G") == nil {
		return &capacity{}, verb
	}
	asked := &capacity{vcpus: 1, most: maxCapacity}
	if memory := inner.size("memory"); memory != nil {
		if *memory < cluster.MinVMMemory || *memory > cluster.MaxVMMemory {
			inner.refuse(inner.value("memory"), fmt.Sprintf("give %v to %v", cluster.MinVMMemory, cluster.MaxVMMemory), "memory of capacity is %v", *memory)
		}
		asked.memory = *memory
	}
	if vcpus := inner.whole("vcpus", 1, cluster.MaxVCPUs); vcpus != nil {
		asked.vcpus = *vcpus
	}
	if most := inner.whole("most", 1, maxCapacity); most != nil {
		asked.most = *most
	}
	asked.vdc, asked.cluster = inner.text("vdc"), inner.text("cluster")
	if asked.vdc != "" && asked.cluster != "" {
		inner.refuse(inner.node, "leave out cluster: a VDC is in one", "capacity names a VDC and a cluster")
	}
	inner.close()
	return asked, "how many more VMs of " + asked.memory.String() + " and " + count(asked.vcpus, "vCPU") + " fit"
}
