package keys

import (
	"strings"
	"testing"
	"time"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// site's estate: the special keys have no weight, so that every node scores 0 and nothing but the keys of a test decides.
const estateFile = `format: berth/estate/v1
clusters:
  - name: default
    node_keys:
      - {name: Premium, default: 0}
      - {name: DS, sticky: true, weight: 30}
      - {name: _SSD, default: 0}
    keys:
      - {name: "#RAM", value: 0, weight: 0}
      - {name: "#CPU", value: 0, weight: 0}
      - {name: "#LOAD", value: 0, weight: 0}
billing_entities:
  - {name: house, master: true}
offers:
  - name: tiny
    for: vm
customers:
  - {name: acme, billing_entity: house}
  - {name: other, billing_entity: house}
vdcs:
  - {name: acme-prod, customer: acme}
  - {name: other-prod, customer: other}
nodes:
  - {name: node1, keys: {DS: 1}}
  - {name: node2, keys: {DS: 2, _SSD: 1}}
  - {name: node3, keys: {DS: 3, Premium: 1}}
`

const tiny = "64M"

func TestKeysDecideWhereGuestsRun(t *testing.T) {
	s := raise(t)
	path := s.file("estate.yaml", estateFile)
	s.berth(0, []string{"apply", "-f", path, "--dry-run"}, "acme-prod")
	s.berth(0, []string{"apply", "-f", path}, "acme-prod")
	s.berth(0, []string{"apply", "-f", path}, "nothing to change")

	s.sub("VMs of one customer that repel each other land apart", apart)
	s.sub("a premium key attracts", premium)
	s.sub("customers see what nodes publish", reserved)
	s.sub("a sticky key brings a VM back", sticky)
	s.sub("each ledger refuses by itself", ledgers)
	s.sub("a migration to the best node moves only for a gain", gain)
	s.sub("export then apply changes nothing", exported)
	s.sub("today's cluster is tomorrow's scenario", scenario)
	s.sub("with local storage a VM starts where its disk is", local)
}

func apart(s *site) {
	flags := []string{"--memory", tiny, "--vdc", "acme-prod", "--key", "Apart=1@-100"}
	on := map[string]string{}
	for _, name := range []string{"a1", "a2", "a3"} {
		host := s.start(name, flags...)
		if other, taken := on[host]; taken {
			s.Errorf("%s is on %s, where %s is", name, host, other)
		}
		on[host] = name
	}
	// A stranger with the same key is neither repelled nor told anything.
	s.start("b1", "--memory", tiny, "--vdc", "other-prod", "--key", "Apart=1@-100")
	for _, node := range s.last().GetNodes() {
		if node.GetCustomerScore() != 0 {
			s.Errorf("a stranger's VM scores %v on %s", node.GetCustomerScore(), node.GetNode())
		}
	}
	s.berth(0, []string{"vm", "why", "a2"}, "Apart")
	var shown berthv1.GetVMResponse
	if err := s.lab.Ask(s.Context(), &shown, "vm", "show", "a2"); err != nil {
		s.Fatal(err)
	}
	// Now that there is one of them on every node, the key speaks for none.
	placed := shown.GetVm().GetLastDecisionId()
	s.berth(0, []string{"vm", "why-not", "a2", "--node", on2(on, "a1"), "--decision", placed}, "Apart")
	s.berth(0, []string{"decision", "replay", "last"}, "comes out the same")
	s.clear("a1", "a2", "a3", "b1")
}

func on2(on map[string]string, vm string) string {
	for host, name := range on {
		if name == vm {
			return host
		}
	}
	return ""
}

func premium(s *site) {
	s.does("vm", "add", "vip", "--memory", tiny, "--vdc", "acme-prod")
	s.does("key", "set", "vm/vip", "Premium=1", "--weight", "100", "--class", "system")
	s.berth(0, []string{"key", "compiled", "vip"}, "Premium", "100", "vm/vip")
	if host := s.start("vip"); host != "node3" {
		s.Errorf("vip is on %s, the premium node is node3", host)
	}
	s.clear("vip")
}

func reserved(s *site) {
	if host := s.start("fast", "--memory", tiny, "--vdc", "acme-prod", "--key", "_SSD=1@50"); host != "node2" {
		s.Errorf("fast is on %s, the SSD is in node2", host)
	}
	s.clear("fast")
}

func sticky(s *site) {
	for _, host := range []string{"node2", "node1"} {
		s.start("home", append([]string{"--node", host}, newVM(s, "home")...)...)
		s.does("vm", "stop", "home", "--force")
		for range 2 {
			if again := s.start("home"); again != host {
				s.Errorf("home started on %s after %s", again, host)
			}
			s.does("vm", "stop", "home", "--force")
		}
	}
	s.does("vm", "delete", "home", "--yes")
}

// newVM are the flags that describe a VM, for one that is not there yet.
func newVM(s *site, name string) []string {
	if strings.Contains(s.does("vm", "list", "-o", "name"), name) {
		return nil
	}
	return []string{"--memory", tiny, "--vdc", "acme-prod"}
}

func ledgers(s *site) {
	host, err := s.lab.HostOf(s.startOn("load", "node1"))
	if err != nil {
		s.Fatal(err)
	}
	shape, err := host.Shape()
	if err != nil {
		s.Fatal(err)
	}
	// Promised three times over, and nearly nothing of it is really free.
	s.does("node", "set", "node1", "--ram-ratio", "3")
	if err := host.SetMemory(s.Context(), shape.Memory, shape.Memory-1536*units.MiB); err != nil {
		s.Fatal(err)
	}
	s.await("node1", func(n *berthv1.Node) bool {
		return n.GetLedgers().GetPhysicalFreeBytes() < int64(1600*units.MiB)
	})
	s.berth(2, []string{"vm", "start", "big", "--memory", "2G", "--node", "node1"}, "memory-physical")
	refused := s.last()
	if !s.verdict(refused, "node1", "memory-promised").GetPassed() {
		s.Error("the promised ledger has room and refuses")
	}
	// The other way round.
	if err := host.SetMemory(s.Context(), shape.Memory, shape.Reserve); err != nil {
		s.Fatal(err)
	}
	s.does("node", "set", "node1", "--ram-ratio", "0.5")
	s.await("node1", func(n *berthv1.Node) bool {
		return n.GetLedgers().GetPhysicalFreeBytes() > int64(3*units.GiB)
	})
	s.berth(2, []string{"vm", "start", "big", "--memory", "1536M", "--node", "node1"}, "memory-promised")
	refused = s.last()
	if !s.verdict(refused, "node1", "memory-physical").GetPassed() {
		s.Error("the physical ledger has room and refuses")
	}
	s.does("node", "set", "node1", "--reset", "ram_ratio")
	s.clear("load")
}

func (s *site) startOn(name, node string) string {
	s.Helper()
	s.start(name, "--memory", tiny, "--node", node)
	return name
}

// await waits until the coordinators know something of a node.
func (s *site) await(node string, known func(*berthv1.Node) bool) {
	s.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		var answer berthv1.GetNodeResponse
		if err := s.lab.Ask(s.Context(), &answer, "node", "show", node); err != nil {
			s.Fatal(err)
		}
		if known(answer.GetNode()) {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("the coordinators do not know it of %s: %v", node, answer.GetNode().GetLedgers())
		}
	}
}

func gain(s *site) {
	s.does("vm", "add", "mover", "--memory", tiny, "--vdc", "acme-prod")
	s.does("key", "set", "vm/mover", "Premium=1", "--weight", "100", "--class", "system")
	s.start("mover", "--node", "node1")
	// 100 for the premium node, less 30 for the sticky key that the start on node1 has left.
	s.berth(0, []string{"vm", "migrate", "mover", "--best", "--if-better", "80"}, "stays on node1")
	s.berth(0, []string{"vm", "migrate", "mover", "--best", "--if-better", "60"}, "node3")
	if host, err := s.lab.HostOf("mover"); err != nil || host.Name != "node3" {
		s.Errorf("mover is on %v (%v), 70 more is a gain of at least 60", host, err)
	}
	s.berth(0, []string{"vm", "migrate", "mover", "--best"}, "stays on node3")
	s.clear("mover")
}

func exported(s *site) {
	s.does("export", "--to", "/root/exported.yaml")
	s.berth(0, []string{"apply", "-f", "/root/exported.yaml", "--prune"}, "nothing to change")
}

func scenario(s *site) {
	flags := []string{"--memory", tiny, "--vdc", "acme-prod", "--key", "Apart=1@-100"}
	s.start("a1", append([]string{"--node", "node1"}, flags...)...)
	s.start("a2", append([]string{"--node", "node2"}, flags...)...)
	today := s.does("export", "--scenario")
	if !strings.HasSuffix(today, "steps: []\n") {
		s.Fatalf("a scenario without steps ends otherwise:\n%s", today)
	}
	path := s.file("tomorrow.yaml", strings.TrimSuffix(today, "steps: []\n")+`steps:
  - start: {vm: a3, vdc: acme-prod, memory: 64M, vcpus: 1, keys: [{name: Apart, value: 1, weight: -100, class: customer}]}
    expect: {node: node3, outcome: placed}
  - capacity: {memory: 1G, vcpus: 1}
`)
	s.berth(0, []string{"simulate", path}, "a3", "node3")
	if host := s.start("a3", flags...); host != "node3" {
		s.Errorf("a3 is on %s, the simulation said node3", host)
	}
	s.berth(0, []string{"capacity", "--memory", "1G", "--vcpus", "1"}, "node1", "node2", "node3")
	s.clear("a1", "a2", "a3")
}

func local(s *site) {
	s.does("cluster", "add", "edge", "--storage", "local")
	s.does("vdc", "add", "acme-edge", "--customer", "acme", "--cluster", "edge")
	// The other cluster declares no node keys, so a node leaves its values behind.
	s.does("node", "set", "node2", "--cluster", "edge", "--unset-key", "DS", "--unset-key", "_SSD")
	s.does("node", "set", "node3", "--cluster", "edge", "--unset-key", "DS", "--unset-key", "Premium")
	s.does("vm", "add", "disky", "--memory", tiny, "--vdc", "acme-edge")
	var shown berthv1.GetVMResponse
	if err := s.lab.Ask(s.Context(), &shown, "vm", "show", "disky"); err != nil {
		s.Fatal(err)
	}
	home := shown.GetVm().GetHome()
	if home != "node2" && home != "node3" {
		s.Fatalf("the disk of disky is on %q, want a node of its cluster", home)
	}
	if host := s.start("disky"); host != home {
		s.Errorf("disky is on %s, its disk on %s", host, home)
	}
	s.berth(1, []string{"vm", "migrate", "disky", "--best"}, "local storage")
	s.does("vm", "stop", "disky", "--force")
	s.does("node", "maintenance", home, "on", "--reason", "new disks")
	s.berth(2, []string{"vm", "start", "disky"}, "maintenance", "local-storage")
	s.does("node", "maintenance", home, "off")
	if host := s.start("disky"); host != home {
		s.Errorf("disky is on %s after maintenance, its disk on %s", host, home)
	}
	s.clear("disky")
}
