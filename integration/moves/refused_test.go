package moves

import (
	"strings"
	"testing"
)

// refusal is a command that has to be refused.
type refusal struct {
	why  string // the case's name
	args []string
	code int
	says []string
}

func TestGroupsAndPoliciesThatMakeNoSenseAreRefused(t *testing.T) {
	s := begin(t)
	s.does("cluster", "add", "edge")
	s.does("customer", "add", "acme")
	s.does("vdc", "add", "far", "--customer", "acme", "--cluster", "edge")
	s.does("vm", "add", "away", "--memory", "64M", "--vdc", "far")
	for _, name := range []string{"a", "b"} {
		s.does("vm", "add", name, "--memory", "64M")
	}
	s.does("group", "add", "apart", "--vm", "a,b", "--vms-rule", "negative", "--vms-enforcing")
	create := func(flags ...string) []string { return append([]string{"group", "add", "odd"}, flags...) }
	policy := func(flags ...string) []string { return append([]string{"policy", "add", "odd"}, flags...) }
	for _, r := range []refusal{
		{"a VM of another cluster", create("--vm", "a,away"), 1, []string{"away", "edge", "default"}},
		{"a VM that does not exist", create("--vm", "a,ghost"), 1, []string{`"ghost"`}},
		{"a node that does not exist", create("--vm", "a", "--node", "ghost", "--nodes-rule", "positive"), 1, []string{`"ghost"`}},
		{"a name twice", []string{"group", "add", "apart"}, 1, []string{`"apart"`}},
		{"a contradiction", create("--vm", "a,b", "--vms-rule", "positive", "--vms-enforcing"), 1, []string{"group odd", "group apart"}},
		{"a unit that there is not", policy("--weigher", "warmth=1"), 64, []string{"warmth", "vm-count"}},
		{"a constraint that there is not", policy("--constraint", "warm"), 64, []string{"warm", "vm-affinity"}},
		{"a factor of NaN", policy("--weigher", "vm-count=NaN"), 64, []string{"NaN", "NAME=NUMBER"}},
		{"a parameter that there is not", policy("--balancer", "even-vm-count", "--parameter", "Warmth=1"), 1, []string{"Warmth", "HighVMCount"}},
		{
			"a threshold of 1", policy("--balancer", "even-vm-count", "--parameter", "MigrationThreshold=1"), 1,
			[]string{"MigrationThreshold", "from 2 to 100000", "back and forth"},
		},
	} {
		t.Logf("%s:\n%s", r.why, s.berth(r.code, r.args, r.says...))
	}
	// The same in a document: with its line, and nothing is done.
	path := s.file("odd.yaml", `format: berth/estate/v1
policies:
  - {name: odd, balancer: even-vm-count, parameters: {MigrationThreshold: 1}}
groups:
  - {name: odd, vms: [a, ghost], vms_rule: positive}
`)
	t.Logf("a document:\n%s", s.berth(1, []string{"apply", "-f", path}, "odd.yaml:3", "MigrationThreshold"))
	if groups := s.does("group", "list", "-o", "name"); groups != "group/apart\n" {
		t.Errorf("what was refused has left the groups %s", groups)
	}
	if policies := s.does("policy", "list", "-o", "name"); strings.Contains(policies, "odd") {
		t.Errorf("what was refused has left the policies %s", policies)
	}
	// What may be, but is not sound, is warned of.
	s.berth(0, []string{"group", "set", "apart", "--vms-rule", "negative", "--priority", "2"})
	s.berth(0, []string{"group", "add", "near", "--vm", "a,b", "--vms-rule", "positive"}, "warning", "near", "apart")
}

func TestTheLastNodeIsNotDrained(t *testing.T) {
	s := begin(t)
	s.firmware("last", "--node", s.lab.Hosts[0].Name)
	for _, host := range s.lab.Hosts[1:] {
		s.does("node", "maintenance", host.Name, "on")
	}
	s.berth(1, []string{"node", "drain", s.lab.Hosts[0].Name, "--yes"}, "cannot be drained", "no other node of cluster default", "next step: ")
	s.berth(1, []string{"node", "drain", s.lab.Hosts[0].Name, "--dry-run"}, "cannot be drained")
	s.berth(4, []string{"node", "drain", "ghost", "--yes"}, `"ghost"`)
	if host := s.host("last"); host != s.lab.Hosts[0].Name {
		t.Errorf("last is on %s", host)
	}
}
