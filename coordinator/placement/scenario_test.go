package placement

import (
	"bufio"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/placement/key"
	"berth/shared/units"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func ptr[T any](value T) *T { return &value }

// scenario is a cluster and what is asked of it, as the golden files describe it: one thing a line, a word, a name, and
// then key=value pairs or flags.
//
//	node NAME memory=SIZE cpus=N available=SIZE load=F [busy=F] [ram_ratio=F] [cpu_ratio=F] [overhead=SIZE]
//	     [maintenance=REASON] [liveness=WORD] [telemetry=AGE] [no-inventory] [no-domains] [no-telemetry]
//	vm NAME on=NODE memory=SIZE vcpus=N [resident=SIZE] [cpu=F] [foreign] [young] [arriving]
//	policy [bands] [initial=F final=F steps=N] [key=NAME:VALUE:WEIGHT]...
//	start NAME memory=SIZE vcpus=N [pin=NODE] [exclude=NODE] [seed=N]
//	migrate NAME [pin=NODE] [seed=N]
type scenario struct {
	nodes        []cluster.Node
	vms          []cluster.VM
	reservations []cluster.Reservation
	facts        map[string]cluster.NodeFacts
	policy       Policy
	asked        []asked
}

type asked struct {
	request Request
	seed    uint64
}

func (s *scenario) view() *cluster.View {
	return cluster.NewView(noon, 1, cluster.Records{Nodes: s.nodes, VMs: s.vms, Reservations: s.reservations}, s.facts)
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
	s := &scenario{facts: make(map[string]cluster.NodeFacts), policy: Affinity()}
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		what, name, rest := fields[0], "", fields[1:]
		if what != "policy" {
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
		case "policy":
			s.setPolicy(w)
		case "start", "migrate":
			s.ask(Purpose(what), name, w)
		default:
			t.Fatalf("%s: unknown word %q", line, what)
		}
	}
	for id, facts := range s.facts {
		slices.SortFunc(facts.Domains, func(a, b cluster.Domain) int { return strings.Compare(a.UUID, b.UUID) })
		s.facts[id] = facts
	}
	return s
}

func (s *scenario) addNode(name string, w words) {
	node := cluster.Node{ID: name, Name: name, Cluster: cluster.DefaultCluster}
	node.Settings = cluster.NodeSettings{
		RAMRatio: w.optional("ram_ratio"), CPURatio: w.optional("cpu_ratio"), Overhead: w.optionalSize("overhead"),
	}
	if w.has("maintenance") {
		node.Maintenance, node.MaintenanceReason = true, w.text("maintenance")
	}
	s.nodes = append(s.nodes, node)
	facts := cluster.NodeFacts{Liveness: cluster.Up}
	if w.has("liveness") {
		facts.Liveness = cluster.Liveness(w.text("liveness"))
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
	}
	s.facts[name] = facts
}

func (s *scenario) addVM(name string, w words) {
	on := w.text("on")
	spec := cluster.VMSpec{Memory: w.size("memory"), VCPUs: int(w.float("vcpus"))}
	if w.has("arriving") {
		s.reservations = append(s.reservations, cluster.Reservation{
			Node: on, VM: name, Name: name, Memory: spec.Memory, VCPUs: spec.VCPUs, Operation: "op-" + name,
		})
		return
	}
	started := noon.Add(-time.Hour)
	if w.has("young") {
		started = noon
	}
	if !w.has("foreign") {
		s.vms = append(s.vms, cluster.VM{
			ID: name, Name: name, Spec: spec, Desired: cluster.Running, Holder: on, Epoch: 1, StartedAt: started,
		})
	}
	facts := s.facts[on]
	facts.Domains = append(facts.Domains, cluster.Domain{
		UUID: name, Name: name, State: cluster.DomainRunning, Memory: spec.Memory, VCPUs: spec.VCPUs, Since: started,
		Resident: w.optionalSize("resident"), CPU: w.optional("cpu"),
	})
	s.facts[on] = facts
}

func (s *scenario) setPolicy(w words) {
	if w.has("bands") {
		s.policy.Gate = Bands()
	}
	if w.has("steps") {
		s.policy.Gate.Initial, s.policy.Gate.Final = w.float("initial"), w.float("final")
		s.policy.Gate.Steps = int(w.float("steps"))
	}
	if w.has("key") {
		s.policy.SystemKeys = nil
	}
	for _, text := range w.named["key"] {
		var k key.Weighted
		parts := strings.Split(text, ":")
		k.Name = parts[0]
		if _, err := fmt.Sscan(parts[1]+" "+parts[2], &k.Value, &k.Weight); err != nil {
			w.t.Fatalf("%s: %v", w.line, err)
		}
		s.policy.SystemKeys = append(s.policy.SystemKeys, k)
	}
}

func (s *scenario) ask(purpose Purpose, name string, w words) {
	request := Request{Purpose: purpose, VM: name, VMName: name, Pinned: w.text("pin"), Excluded: w.named["exclude"]}
	if purpose == ForMigrate {
		at := slices.IndexFunc(s.vms, func(vm cluster.VM) bool { return vm.ID == name })
		request.Memory, request.VCPUs, request.Current = s.vms[at].Spec.Memory, s.vms[at].Spec.VCPUs, s.vms[at].Holder
	} else {
		request.Memory, request.VCPUs = w.size("memory"), int(w.float("vcpus"))
	}
	one := asked{request: request, seed: 1}
	if w.has("seed") {
		one.seed = uint64(w.float("seed"))
	}
	s.asked = append(s.asked, one)
}
