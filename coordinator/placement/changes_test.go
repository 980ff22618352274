package placement

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"berth/coordinator/model"
	"berth/coordinator/placement/key"
	"berth/coordinator/placement/policies"
	"berth/coordinator/unanswered"
	"berth/shared/units"
)

// What a refusal says would have changed it is done to the records, and the decision made again.
func TestChangesOfARefusalAreTrue(t *testing.T) {
	kinds := make(map[string]int)
	rapid.Check(t, func(t *rapid.T) {
		s, request, seed := draws(t)
		request.Memory *= units.Bytes(rapid.IntRange(1, 20).Draw(t, "larger"))
		for _, change := range Place(s.view(), request, s.policy(), seed).Changes {
			kinds[change.Kind]++
			other, asked, policy := *s, request, s.policy()
			other.nodes, other.vms = slices.Clone(s.nodes), slices.Clone(s.vms)
			node := &other.nodes[slices.IndexFunc(other.nodes, func(n model.Node) bool { return n.ID == change.Node })]
			switch change.Kind {
			case ChangeSize:
				asked.Memory = units.Bytes(change.Figure)
			case ChangeOverhead:
				node.Settings.Overhead = ptr(units.Bytes(change.Figure))
			case ChangeKey:
				asked.SystemKeys = slices.DeleteFunc(slices.Clone(asked.SystemKeys), func(k key.Weighted) bool { return k.Name == change.Key })
			case ChangeFinal:
				policy.Gate.Final = change.Figure
			case ChangeMove:
				vm := &other.vms[slices.IndexFunc(other.vms, func(v model.VM) bool { return v.ID == change.VM })]
				moved := Request{Purpose: ForMigrate, VM: vm.ID, Memory: vm.Spec.Memory, VCPUs: vm.Spec.VCPUs, Current: vm.Holder, Pinned: change.To}
				constraints := policy
				constraints.Gate, constraints.Weighers = policies.Gate{Kind: policies.GateOff}, nil
				if d := Place(other.view(), moved, constraints, seed); d.Winner != change.To {
					t.Fatalf("%q: it cannot move: %s", change.Text, d.Reason)
				}
				vm.Holder = change.To
			case "memory-promised":
				ratio, err := strconv.ParseFloat(strings.TrimSuffix(strings.Fields(change.Text)[2], ","), 64)
				if err != nil {
					t.Fatal(err)
				}
				node.Settings.RAMRatio = &ratio
			case "running":
				node.Maintenance = false
			case "answering":
				node.Unanswered = unanswered.Mark{}
			case "pin":
				asked.Pinned = ""
			case "storage":
				asked.CopyStorage = true
			case "headroom":
				other.cluster.Settings = maps.Clone(s.cluster.Settings)
				delete(other.cluster.Settings, model.SettingSpareNodes)
			case "node-affinity", "vm-affinity":
				other.groups = withoutNamed(s.groups, change.Text)
			default:
				t.Fatalf("nobody tries out %q", change.Text)
			}
			again := Explain(Place(other.view(), asked, policy, seed))
			at := slices.IndexFunc(again.Nodes, func(n NodeResult) bool { return n.Node == change.Node })
			if !again.Nodes[at].Admitted {
				t.Fatalf("%q is not true:\n%s\n%s", change.Text, Text(Place(s.view(), request, s.policy(), seed)), Text(again))
			}
		}
	})
	if !testing.Short() && len(kinds) == 0 { // nearly always there are six of the eight; the golden files have each of them
		t.Error("no change was met")
	}
}

// withoutNamed are the groups but for those that a change is without.
func withoutNamed(groups []model.Resource, change string) []model.Resource {
	before, _, _ := strings.Cut(strings.TrimPrefix(change, "without "), ", node-")
	names := strings.FieldsFunc(before, func(r rune) bool { return r == ' ' || r == ',' })
	return slices.DeleteFunc(slices.Clone(groups), func(g model.Resource) bool { return slices.Contains(names, g.Name) })
}

// What a win says would have changed it is tried out on the records too.
func TestCounterfactualsOfAWinAreTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, request, seed := draws(t)
		d := Explain(Place(s.view(), request, s.policy(), seed))
		if d.Outcome == Refused || d.Counterfactual == "" {
			return
		}
		for _, sentence := range strings.Split(d.Counterfactual, "; ") {
			words := strings.Fields(sentence) // without system key NAME, NODE would win
			if words[1] == "group" {
				other := *s
				other.groups = withoutNamed(s.groups, sentence)
				if again := Place(other.view(), request, s.policy(), seed); again.WinnerName != words[3] {
					t.Fatalf("%q is not true:\n%s\n%s", sentence, FullText(d), FullText(again))
				}
				continue
			}
			without := func(keys []key.Weighted) []key.Weighted {
				return slices.DeleteFunc(slices.Clone(keys), func(k key.Weighted) bool { return k.Name == strings.TrimSuffix(words[3], ",") })
			}
			asked := request
			if words[1] == "system" {
				asked.SystemKeys = without(asked.SystemKeys)
			} else {
				asked.CustomerKeys = without(asked.CustomerKeys)
			}
			if again := Place(s.view(), asked, s.policy(), seed); again.WinnerName != words[4] {
				t.Fatalf("%q is not true:\n%s\n%s", sentence, FullText(d), FullText(again))
			}
		}
	})
}

// On a large cluster the node that would have won without a key is far from the best ones, and named all the same.
func TestCounterfactualsOfALargeClusterAreTrue(t *testing.T) {
	var text strings.Builder
	text.WriteString("cluster node_key=Fast:0 node_key=_Near:0 initial_msav=150\n")
	for i := range 4 * MaxKept {
		fmt.Fprintf(&text, "node node%03d memory=64G cpus=16 available=60G", i)
		switch {
		case i < MaxKept: // what the key asks for
			fmt.Fprintf(&text, " key=Fast:1 load=%d key=_Near:0\n", 8+i%2)
		case i < 2*MaxKept: // idle
			text.WriteString(" load=0 key=_Near:0\n")
		case i == 2*MaxKept: // what the customer would rather not have
			text.WriteString(" key=Fast:1 load=8 key=_Near:1\n")
		default:
			text.WriteString(" load=4 key=_Near:0.5\n")
		}
	}
	text.WriteString("start new memory=1G vcpus=1 key=Fast:1:100 wants=_Near:0:5\n")
	s := parseScenario(t, text.String())
	request := s.asked[0].request
	d := Explain(Place(s.view(), request, s.policy(), 3))
	if d.Omitted == 0 || len(d.Nodes) > keptOfMore {
		t.Fatalf("%d nodes are kept, %d left out", len(d.Nodes), d.Omitted)
	}
	at := slices.IndexFunc(request.SystemKeys, func(k key.Weighted) bool { return k.Name == "Fast" })
	request.SystemKeys = slices.Delete(slices.Clone(request.SystemKeys), at, at+1)
	other := Place(s.view(), request, s.policy(), 3)
	if want := "without system key Fast, " + other.WinnerName + " would win"; !strings.Contains(d.Counterfactual, want) {
		t.Errorf("%q, want %q", d.Counterfactual, want)
	}
}

// Why a node was not taken is said of every node, and what would change it is said of every one that a key keeps out.
func TestEveryNodeHasAnAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, request, seed := draws(t)
		d := Place(s.view(), request, s.policy(), seed)
		for _, node := range s.nodes {
			answer, err := WhyNot(d, node.Name)
			if err != nil || len(answer.Why) == 0 || answer.Won != (node.ID == d.Winner) || answer.Node.Node != node.ID {
				t.Fatalf("%s: %+v, %v", node.Name, answer, err)
			}
			again, err := WhyNot(d, node.ID)
			if err != nil || len(again.Changes) != len(answer.Changes) {
				t.Fatalf("%s by ID: %+v, %v", node.ID, again, err)
			}
		}
	})
}
