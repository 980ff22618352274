package scenario

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"berth/coordinator/scenario/format"
)

// randomSite writes a scenario of a random cluster: nodes, VMs of customers and of nobody, where they may break rules, groups of
// all kinds, a policy and settings. The same seed gives the same file.
type randomSite struct {
	*rand.Rand
	nodes, vms []string
	memory     map[string]int // of VMs, GiB
	text       strings.Builder
}

// siteOf writes the scenario of a seed, with so many of the groups that it would have: those that contradict each other may
// not be declared.
func siteOf(seed uint64, groups int) (text string, wanted int) {
	s := &randomSite{Rand: rand.New(rand.NewPCG(seed, 0)), memory: make(map[string]int)}
	for i := range 2 + s.IntN(11) {
		s.nodes = append(s.nodes, fmt.Sprintf("hv%d", i+1))
	}
	for i := range s.IntN(6*len(s.nodes)) + 1 {
		name := fmt.Sprintf("vm-%d", i+1)
		s.vms, s.memory[name] = append(s.vms, name), 1+s.IntN(6)
	}
	wanted = s.IntN(7)
	s.line("format: %s", format.Version)
	s.line("seed: %d", seed)
	s.line("interval: %s", s.one("2m", "10m", "10m", "10m", "15m", "15m", "15m", "15m"))
	s.line("estate:")
	s.policy()
	declared := make([]string, 0, wanted)
	for i := range wanted {
		declared = append(declared, s.group(i))
	}
	s.line("  groups: [%s]", strings.Join(declared[:min(groups, wanted)], ",\n    "))
	s.members()
	s.figures()
	s.line("steps:")
	s.line("  - run: 1s")
	return s.text.String(), wanted
}

func (s *randomSite) line(format string, a ...any) { fmt.Fprintf(&s.text, format+"\n", a...) }

func (s *randomSite) one(words ...string) string { return words[s.IntN(len(words))] }

func (s *randomSite) policy() {
	policy := s.one("affinity", "evenly-distributed", "vm-evenly-distributed", "none", "own", "own", "own")
	if policy == "own" {
		s.line("  policies:")
		weighers := s.one(
			"vm-count: 2, vm-affinity: 1, node-affinity: 20", "cpu-load: 2, memory-free: 1, vm-affinity: 5, node-affinity: 1",
			"vm-affinity: 1", "vm-count: 1", "memory-free: 1, vm-count: 1", "node-affinity: 3, vm-affinity: 3",
		)
		balancer := fmt.Sprintf("even-vm-count, parameters: {HighVMCount: %d, MigrationThreshold: %d, SPMVMCountGrace: %d}",
			s.IntN(6), 2+s.IntN(3), s.IntN(4))
		if s.IntN(2) == 0 {
			balancer = fmt.Sprintf(
				"even-load, parameters: {HighCPU: %d, HighMemory: %d, DurationMinutes: %d}", 20+s.IntN(70), 30+s.IntN(60), s.IntN(6),
			)
		}
		if s.IntN(3) == 0 {
			balancer = s.one("none", fmt.Sprintf("%s, parameters: {Metric: %d, Imbalance: %.2f, Free: %d, Absolute: %d}",
				s.one("imbalance", "condense"), 1+s.IntN(3), s.Float64(), s.IntN(2), s.IntN(2)))
		}
		s.line("    - {name: own, gate: \"%s\", selector: %s, weighers: {%s}, disperse_accounts: %t, balancer: %s}",
			s.one("off", "off", "bands"), s.one("rank", "rank", "sum", "percentage-dynamic"), weighers, s.IntN(3) > 0, balancer)
	}
	s.line("  clusters:")
	s.line("    - {name: default, policy: %s, enforcement: automatic, balancing: automatic, cooldown: %s, ram_ratio: %s}",
		policy, s.one("0s", "5m", "30m", "30m"), s.one("1", "1", "1.5"))
}

// group is one of a random kind. It has what makes sense of rules: few nodes and few VMs.
func (s *randomSite) group(i int) string {
	group := fmt.Sprintf("{name: g%d, priority: %s", i+1, s.one("1", "1", "2", "0.5"))
	rule := s.IntN(3)
	if rule != 1 {
		group += fmt.Sprintf(", vms_rule: %s, vms_enforcing: %t", s.one("positive", "negative", "negative"), s.IntN(2) == 0)
	}
	if rule != 0 {
		group += fmt.Sprintf(", nodes_rule: %s, nodes_enforcing: %t", s.one("positive", "positive", "negative"), s.IntN(2) == 0)
	}
	if s.IntN(4) == 0 {
		group += ", vm_labels: [" + s.one("red", "blue") + "]"
	} else {
		group += ", vms: [" + s.some(s.vms, 5) + "]"
	}
	if s.IntN(4) == 0 {
		group += ", node_labels: [" + s.one("left", "right") + "]"
	} else {
		group += ", nodes: [" + s.some(s.nodes, 4) + "]"
	}
	if s.IntN(10) == 0 {
		group += ", unbalanced: true"
	}
	return group + "}"
}

// some are a few different ones of those.
func (s *randomSite) some(of []string, most int) string {
	picked := s.Perm(len(of))[:min(1+s.IntN(most), len(of))]
	names := make([]string, 0, len(picked))
	for _, i := range picked {
		names = append(names, of[i])
	}
	return strings.Join(names, ", ")
}

// members are what of nodes and VMs is declared.
func (s *randomSite) members() {
	s.line("  nodes:")
	management := s.IntN(2 * len(s.nodes))
	for i, name := range s.nodes {
		s.line(
			"    - {name: %s, labels: [%s], management: %t, unbalanced: %t}", name, s.one("left", "right", "middle"), i == management,
			s.IntN(15) == 0,
		)
	}
	s.line("  customers: [{name: acme}, {name: small}]")
	s.line("  vdcs: [{name: acme, customer: acme}, {name: small, customer: small}]")
	s.line("  vms:")
	for _, name := range s.vms {
		s.line("    - {name: %s, %smemory: %dG, vcpus: %d, labels: [%s], migration: %s}", name,
			s.one("vdc: acme, ", "vdc: acme, ", "vdc: small, ", ""), s.memory[name], 1+s.IntN(4),
			s.one("red", "blue", "green", "grey", "grey"),
			s.one("automatic", "automatic", "automatic", "automatic", "automatic", "automatic", "automatic", "never", "manual"))
	}
}

// figures are what is known of the nodes, and what runs where: anywhere that has the memory for it.
func (s *randomSite) figures() {
	type room struct{ memory, cpus, used, load float64 }
	rooms := make([]room, len(s.nodes))
	var running []string
	for i := range rooms {
		rooms[i] = room{memory: float64(16 + 16*s.IntN(3)), cpus: float64(4 + 4*s.IntN(5)), load: s.Float64()}
	}
	crowded := s.IntN(len(rooms)) // most are on few nodes, so that there is something to do
	for _, name := range s.vms {
		at := s.IntN(len(rooms))
		if s.IntN(2) == 0 {
			at = s.IntN(crowded + 1)
		}
		node := &rooms[at]
		resident := (0.2 + 0.8*s.Float64()) * float64(s.memory[name])
		if node.used+resident > node.memory-1 {
			continue // it is stopped
		}
		cpu := s.Float64() * 2
		node.used, node.load = node.used+resident, node.load+cpu
		running = append(running, fmt.Sprintf("  - {vm: %s, node: %s, resident: %dM, cpu: %.2f}", name, s.nodes[at], int(resident*1024), cpu))
	}
	s.line("nodes:")
	for i, name := range s.nodes {
		s.line("  - {name: %s, memory: %gG, cpus: %g, load: %.2f}", name, rooms[i].memory, rooms[i].cpus, rooms[i].load)
	}
	s.line("running:")
	for _, one := range running {
		s.line("%s", one)
	}
}
