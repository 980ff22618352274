package constraint

import (
	"strings"

	"berth/coordinator/placement/rule"
	"berth/coordinator/view"
)

// The causes of a refusal by vm-affinity.
const (
	notTogether = "together"
	notApart    = "apart"
	notSplit    = "split"
)

// vmAffinity is oVirt's filter for hard VM-to-VM rules. The VM may go to nodes with other members of its positive groups, and
// to any node while none of them runs. Positive groups that share VMs count as one. It may not go to nodes with other members
// of its negative groups.
var vmAffinity = Constraint{
	Name: "vm-affinity",
	Doc:  "Hard rules of the VM's affinity groups have it with the other members on the node, and apart from none that is there.",
	Check: func(in *rule.Input, node int) rule.Verdict {
		switch b := &in.Bounds; {
		case b.Split:
			return rule.Refuse(notSplit)
		case has(b.Apart, node):
			return rule.Refuse(notApart)
		case b.Ties && !has(b.Together, node):
			return rule.Refuse(notTogether)
		}
		return rule.Pass()
	},
	Say: func(in *rule.Input, node int, refusal rule.Verdict) string {
		return sayGroups(brokenOfVMs(in, node, refusal.Code), func(m *rule.Membership) string {
			switch refusal.Code {
			case notSplit:
				return "keeps its VMs apart, and more than one of them is to be placed on one node"
			case notApart:
				p, _ := m.At(node)
				return "keeps its VMs apart, and " + areOn(p, in.Name(node))
			default:
				return "keeps its VMs together, and " + whereabouts(in, m)
			}
		})
	},
	Relax: func(in *rule.Input, node int, refusal rule.Verdict) (rule.Relaxation, bool) {
		return withoutGroups(in, node, brokenOfVMs(in, node, refusal.Code))
	},
	Sweep: func(in *rule.Input, out []bool) {
		b := &in.Bounds
		if b.Split {
			only(nil, out)
			return
		}
		if b.Ties {
			only(b.Together, out)
		}
		for _, node := range b.Apart {
			out[node] = true
		}
	},
}

// brokenOfVMs is the groups that refuse the node for one cause.
func brokenOfVMs(in *rule.Input, node int, cause string) []*rule.Membership {
	var broken []*rule.Membership
	for i := range in.Groups {
		m := &in.Groups[i]
		_, here := m.At(node)
		switch {
		case cause == notSplit && m.Apart() && m.Placing > 1,
			cause == notApart && m.Apart() && here,
			cause == notTogether && m.Together() && len(m.Others) > 0:
			broken = append(broken, m)
		}
	}
	return broken
}

// whereabouts tells where the other members of a group are.
func whereabouts(in *rule.Input, m *rule.Membership) string {
	var parts []string
	total := 0
	for i := range m.Others {
		p := &m.Others[i]
		if p.Stay() == 0 {
			continue
		}
		name := p.Name
		if p.Node >= 0 {
			name = in.Name(int(p.Node))
		}
		parts = append(parts, areOn(p, name))
		total++
	}
	const most = 3
	return rule.Enumerate(parts, total, most)
}

// areOn names members on a node: "web-2 is on hv1".
func areOn(p *view.Presence, node string) string {
	const most = 3
	verb := " are on "
	if p.Count == 1 {
		verb = " is on "
	}
	names := rule.Enumerate(p.VMs, int(p.Count), most)
	if names == "" {
		names = "one of them"
	}
	return strings.TrimSpace(names) + verb + node
}
