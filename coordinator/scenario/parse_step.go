package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"berth/coordinator/document"
	"berth/coordinator/model"
	"berth/coordinator/strictyaml"
	"berth/shared/units"
)

// verbs are what a step can be, each with what reads it.
var verbs = []struct {
	name    string
	read    func(m *strictyaml.Mapping, verb string) (act action, words string)
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
	m := r.Mapping(node, "a step")
	step.Line = node.Line
	if value := m.Take("at"); value != nil {
		if step.at = m.LastingOf(value, "at", 0); step.at != nil && *step.at < *passed {
			r.Refuse(value, "put the steps in the order of their times", "at is %v, and %v have passed before it", *step.at, *passed)
		} else if step.at != nil {
			*passed = *step.at
		}
	}
	for _, verb := range verbs {
		if !m.Has(verb.name) {
			continue
		}
		if ok {
			r.Refuse(m.Node.Content[m.At(verb.name)], "make it two steps", "a step is %s and also %s", step.Words, verb.name)
			m.Take(verb.name)
			continue
		}
		m.What = verb.name
		step.action, step.Words = verb.read(m, verb.name)
		step.of, ok = verb.expects, true
	}
	if !ok {
		if node.Kind == yaml.MappingNode {
			r.Refuse(node, "use one of "+verbNames(), "a step says nothing that can be done")
		}
		return step, false
	}
	if run, is := step.action.(*pass); is {
		*passed += run.last
	}
	if value := m.Take("expect"); value != nil {
		step.Expect = r.expectation(value, step.of, step.Words)
	}
	m.Close()
	return step, true
}

// inner reads the value of a verb that is either one name or a mapping with more. The name is then in field.
func innerOf(m *strictyaml.Mapping, verb, field, next string) (*strictyaml.Mapping, string) {
	value := m.Take(verb)
	if value == nil {
		return m.Mapping(&yaml.Node{Kind: yaml.MappingNode, Line: m.Node.Line}, verb), ""
	}
	if text, is := strictyaml.Scalar(value); is {
		return m.Mapping(&yaml.Node{Kind: yaml.MappingNode, Line: value.Line}, verb), text
	}
	inner := m.Mapping(value, verb)
	return inner, inner.Name(field, next)
}

func readStart(m *strictyaml.Mapping, verb string) (act action, words string) {
	inner, name := innerOf(m, verb, "vm", "give the name of the VM to start")
	start := &start{vm: name, on: inner.Text("on"), seed: inner.Seed("seed")}
	start.described = described(inner, name)
	words = "start " + name
	if start.on != "" {
		words += " on " + start.on
	}
	return start, words
}

// described reads the fields of a VM that the estate need not have: they are those of a VM in an estate. It is nil when
// there are none.
func described(inner *strictyaml.Mapping, name string) *document.Document {
	entry := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: inner.Node.Line}
	word := func(text string) *yaml.Node {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Line: inner.Node.Line}
	}
	entry.Content = []*yaml.Node{word("name"), word(name)}
	for i := 0; i+1 < len(inner.Node.Content); i += 2 {
		if key := inner.Node.Content[i]; !slices.Contains([]string{"vm", "on", "seed"}, key.Value) {
			entry.Content = append(entry.Content, key, inner.Node.Content[i+1])
		}
	}
	if len(entry.Content) == 2 || name == "" {
		return nil
	}
	vms := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: inner.Node.Line, Content: []*yaml.Node{entry}}
	declared, problems := document.ParseNode(inner.File, &yaml.Node{
		Kind: yaml.MappingNode, Tag: "!!map", Line: inner.Node.Line, Content: []*yaml.Node{word("vms"), vms},
	})
	inner.Problems = append(inner.Problems, problems...)
	return declared
}

func readStop(m *strictyaml.Mapping, verb string) (act action, words string) {
	name := m.Name(verb, "give the name of the VM to stop")
	return &stop{vm: name}, "stop " + name
}

func readMigrate(m *strictyaml.Mapping, verb string) (act action, words string) {
	inner, name := innerOf(m, verb, "vm", "give the name of the VM to migrate")
	migrate := &migrate{vm: name, to: inner.Text("to"), seed: inner.Seed("seed")}
	best, _ := inner.Flag("best")
	if gain := inner.Number("if_better", 0); gain != nil {
		migrate.ifBetter = *gain
	}
	inner.Close()
	if migrate.to != "" && (best || migrate.ifBetter > 0) {
		inner.Refuse(inner.Node, "leave out to, or best and if_better", "migrate %s names a node and asks for the best one", name)
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

func readDrain(m *strictyaml.Mapping, verb string) (act action, words string) {
	inner, name := innerOf(m, verb, "node", "give the name of the node to drain")
	drain := &drain{node: name}
	if parallel := inner.Whole("parallel", 1, model.MaxParallelMoves); parallel != nil {
		drain.parallel = *parallel
	}
	if bandwidth := inner.Size("bandwidth"); bandwidth != nil {
		if drain.bandwidth = *bandwidth; drain.bandwidth < units.MiB {
			inner.Refuse(
				inner.Value("bandwidth"), "give what one migration copies in a second, for instance 128M", "bandwidth of drain is %v",
				*bandwidth,
			)
		}
	}
	inner.Close()
	return drain, "drain " + name
}

func readUndrain(m *strictyaml.Mapping, verb string) (act action, words string) {
	inner, name := innerOf(m, verb, "node", "give the name of the node that was drained")
	back, _ := inner.Flag("return")
	inner.Close()
	words = "end of the drain of " + name
	if back {
		words += ", its VMs come back"
	}
	return &undrain{node: name, back: back}, words
}

func readRun(m *strictyaml.Mapping, verb string) (act action, words string) {
	last := m.Lasting(verb)
	if last == nil {
		return &pass{}, verb
	}
	return &pass{last: *last}, "time passes: " + clock(*last)
}

func readByHand(m *strictyaml.Mapping, verb string) (act action, words string) {
	value := m.Take(verb)
	if value == nil {
		return &byHand{}, verb
	}
	inner := m.Mapping(value, verb)
	moved := &byHand{vm: inner.Name("vm", "give the name of the VM"), to: inner.Name("to", "give the name of the node that it was moved to")}
	inner.Close()
	return moved, fmt.Sprintf("%s is moved to %s by hand", moved.vm, moved.to)
}

func readNewLeader(m *strictyaml.Mapping, verb string) (act action, words string) {
	name := m.Name(verb, "give the name of the coordinator that leads from now on")
	return &newLeader{}, name + " becomes the leader"
}

func readApply(m *strictyaml.Mapping, verb string) (act action, words string) {
	value := m.Take(verb)
	if value == nil {
		return &apply{}, verb
	}
	declared, problems := document.ParseNode(m.File, value)
	m.Problems = append(m.Problems, problems...)
	return &apply{document: declared}, "a part of the estate is declared anew"
}

func readNodeDown(m *strictyaml.Mapping, verb string) (act action, words string) {
	name := m.Name(verb, "give the name of the node")
	return &liveness{node: name, down: true}, name + " goes down"
}

func readNodeUp(m *strictyaml.Mapping, verb string) (act action, words string) {
	name := m.Name(verb, "give the name of the node")
	return &liveness{node: name}, name + " comes up"
}

func readMaintenance(m *strictyaml.Mapping, verb string) (act action, words string) {
	inner, name := innerOf(m, verb, "node", "give the name of the node")
	on, given := inner.Flag("on")
	maintenance := &maintenance{node: name, on: on || !given, reason: inner.Text("reason")}
	inner.Close()
	if maintenance.on {
		return maintenance, "maintenance of " + name + " begins"
	}
	return maintenance, "maintenance of " + name + " ends"
}

func readSet(m *strictyaml.Mapping, verb string) (act action, words string) {
	const next = "write the fields of a node under nodes, or vm with resident, cpu or ballooned"
	value := m.Take(verb)
	if value == nil {
		return &setNode{}, verb
	}
	inner := m.Mapping(value, verb)
	if inner.Has("vm") {
		set := &setGuest{
			vm: inner.Name("vm", next), resident: inner.Size("resident"), ballooned: inner.Size("ballooned"), cpu: inner.Number("cpu", 0),
		}
		inner.Close()
		return set, "new figures of VM " + set.vm
	}
	set := &setNode{node: inner.Name("node", next)}
	set.figures = figuresOf(inner)
	inner.Close()
	return set, "new figures of " + set.node
}

func readKey(m *strictyaml.Mapping, verb string) (act action, words string) {
	inner, on := keyedOf(m, verb)
	set := &setKey{on: on, key: keyOf(inner, model.SystemKey, model.SystemKey, model.BillingEntityKey, model.CustomerKey)}
	if weight := inner.Number("weight", -strictyaml.MaxFigure); weight != nil {
		set.key.Weight, set.weighed = *weight, true
	}
	set.classed = inner.Has("class")
	inner.Close()
	words = "key " + set.key.Name + " = " + figure(set.key.Value)
	if set.weighed {
		words += " with weight " + figure(set.key.Weight)
	}
	return set, words + " on " + string(on.kind) + "/" + on.name
}

func readUnsetKey(m *strictyaml.Mapping, verb string) (act action, words string) {
	inner, on := keyedOf(m, verb)
	unset := &unsetKey{on: on, name: inner.Name("name", "give the key's name"), class: model.SystemKey}
	if class := inner.Word("class", string(model.SystemKey), string(model.BillingEntityKey), string(model.CustomerKey)); class != "" {
		unset.class = model.KeyClass(class)
	}
	inner.Close()
	return unset, "no key " + unset.name + " on " + string(on.kind) + "/" + on.name
}

// reference is kind/name.
type reference struct {
	kind model.Kind
	name string
}

func keyedOf(m *strictyaml.Mapping, verb string) (*strictyaml.Mapping, reference) {
	const next = "write on: KIND/NAME, for instance on: customer/acme"
	value := m.Take(verb)
	if value == nil {
		return m.Mapping(&yaml.Node{Kind: yaml.MappingNode, Line: m.Node.Line}, verb), reference{}
	}
	inner := m.Mapping(value, verb)
	text := inner.Name("on", next)
	kind, name, ok := strings.Cut(text, "/")
	if text != "" && (!ok || kind == "" || name == "") {
		inner.Refuse(inner.Value("on"), next, "on of %s is %q", verb, text)
	}
	return inner, reference{kind: model.Kind(kind), name: name}
}

func readCapacity(m *strictyaml.Mapping, verb string) (act action, words string) {
	value := m.Take(verb)
	if value == nil {
		return &capacity{}, verb
	}
	inner := m.Mapping(value, verb)
	if inner.Need("memory", "give the size of one VM, for instance memory: 4G") == nil {
		return &capacity{}, verb
	}
	asked := &capacity{vcpus: 1, most: maxCapacity}
	if memory := inner.Size("memory"); memory != nil {
		if *memory < model.MinVMMemory || *memory > model.MaxVMMemory {
			inner.Refuse(
				inner.Value("memory"), fmt.Sprintf("give %v to %v", model.MinVMMemory, model.MaxVMMemory), "memory of capacity is %v", *memory,
			)
		}
		asked.memory = *memory
	}
	if vcpus := inner.Whole("vcpus", 1, model.MaxVCPUs); vcpus != nil {
		asked.vcpus = *vcpus
	}
	if most := inner.Whole("most", 1, maxCapacity); most != nil {
		asked.most = *most
	}
	asked.vdc, asked.cluster = inner.Text("vdc"), inner.Text("cluster")
	if asked.vdc != "" && asked.cluster != "" {
		inner.Refuse(inner.Node, "leave out cluster: a VDC is in one", "capacity names a VDC and a cluster")
	}
	inner.Close()
	return asked, "how many more VMs of " + asked.memory.String() + " and " + count(asked.vcpus, "vCPU") + " fit"
}
