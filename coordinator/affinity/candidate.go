package affinity

import (
	"cmp"
	"slices"

	"berth/coordinator/model"
)

// Candidate is a VM whose move would repair something, or a part of it.
type Candidate struct {
	VM     string // ID
	Breach Breach
	Hard   bool
}

// Candidates are the VMs to try, in the order in which enforcement tries them: hard node rules, hard VM rules, soft node
// rules, soft VM rules. SEMANTICS.md has the order inside each ("Enforcement"). A VM is listed once for each breach that its
// move may repair.
//
// Fixed tells which VMs are immovable; nil: none. Less sorts VMs that are otherwise equal; nil: by ID. The caller has to find
// out whether a candidate fits elsewhere.
//
// One point differs from oVirt. VMs that should be apart may leave a node on which one of them is immovable, because that is
// how the rule comes to hold. VMs that should be together may not leave it: the others have to come there.
func Candidates(groups []model.Group, where Where, fixed func(vm string) bool, less func(a, b string) int, names Names) []Candidate {
	if fixed == nil {
		fixed = func(string) bool { return false }
	}
	order := func(a, b string) int {
		if less != nil {
			if c := less(a, b); c != 0 {
				return c
			}
		}
		return cmp.Compare(a, b)
	}
	s := search{groups: byName(groups), where: where, fixed: fixed, order: order, names: names}
	for _, hard := range []bool{true, false} {
		s.ofNodes(hard)
		s.ofVMs(hard)
	}
	return s.found
}

// search collects candidates.
type search struct {
	groups []model.Group
	where  Where
	fixed  func(vm string) bool
	order  func(a, b string) int
	names  Names
	found  []Candidate
}

// ofNodes adds the VMs that break rules for nodes, those that break most first (oVirt, "soft host to VM affinity", step 3 of
// the selection; its engine begins with the fewest). Of VMs that break equally many, the one with the highest priority comes
// first.
func (s *search) ofNodes(hard bool) {
	type violator struct {
		vm       string
		breaches []int // of the list below, those of the highest priority first
	}
	var breaches []Breach
	var priorities []float64
	violators := map[string]*violator{}
	var sorted []*violator
	for _, g := range byPriority(s.groups) {
		breach, broken := breachOf(g, OfNodes, s.where, s.names)
		if !broken || breach.Rule.Enforcing != hard {
			continue
		}
		for _, vm := range breach.VMs {
			if s.fixed(vm) {
				continue
			}
			if violators[vm] == nil {
				violators[vm] = &violator{vm: vm}
				sorted = append(sorted, violators[vm])
			}
			violators[vm].breaches = append(violators[vm].breaches, len(breaches))
		}
		breaches, priorities = append(breaches, breach), append(priorities, g.Priority)
	}
	slices.SortFunc(sorted, func(a, b *violator) int {
		c := cmp.Compare(len(b.breaches), len(a.breaches))
		for i := 0; c == 0 && i < len(a.breaches); i++ {
			c = cmp.Compare(priorities[b.breaches[i]], priorities[a.breaches[i]])
		}
		return cmp.Or(c, s.order(a.vm, b.vm))
	})
	for _, v := range sorted {
		for _, at := range v.breaches {
			s.found = append(s.found, Candidate{VM: v.vm, Breach: breaches[at], Hard: hard})
		}
	}
}

// byPriority sorts the groups: higher priorities first, then by name.
func byPriority(groups []model.Group) []*model.Group {
	sorted := make([]*model.Group, 0, len(groups))
	for i := range groups {
		sorted = append(sorted, &groups[i])
	}
	slices.SortStableFunc(sorted, higherFirst)
	return sorted
}

func higherFirst(a, b *model.Group) int { return cmp.Compare(b.Priority, a.Priority) }

// company is VMs that one rule, or several merged rules, want together or apart.
type company struct {
	vms      []string       // ascending
	groups   []*model.Group // whose rules these are
	polarity model.Polarity
	priority float64 // 0 for hard ones
}

// companies is the companies of the hard rules or of the soft ones, in the order in which they are repaired: soft ones of
// higher priority first, then larger ones, then those whose first VM has the higher ID (oVirt).
func (s *search) companies(hard bool) []company {
	var all []company
	joined := ties{}
	if hard {
		joined = tiesOf(s.groups)
		for _, set := range joined.sets() {
			all = append(all, company{vms: set, polarity: model.Positive})
		}
	}
	for i := range s.groups {
		g := &s.groups[i]
		switch {
		case !g.VMsRule.Enabled() || g.VMsRule.Enforcing != hard || len(g.VMs) < 2:
		case hard && g.VMsRule.Polarity == model.Positive:
			at := slices.IndexFunc(all, func(c company) bool { return c.vms[0] == joined.root(g.VMs[0]) })
			all[at].groups = append(all[at].groups, g)
		default:
			c := company{vms: g.VMs, groups: []*model.Group{g}, polarity: g.VMsRule.Polarity}
			if !hard {
				c.priority = g.Priority
			}
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b company) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(len(b.vms), len(a.vms)), cmp.Compare(b.vms[0], a.vms[0]))
	})
	return all
}

// ofVMs adds the VMs that break rules for VMs.
func (s *search) ofVMs(hard bool) {
	for _, c := range s.companies(hard) {
		var breaches []Breach
		for _, g := range c.groups {
			if breach, broken := breachOf(g, OfVMs, s.where, s.names); broken {
				breaches = append(breaches, breach)
			}
		}
		if len(breaches) == 0 {
			continue
		}
		for _, share := range s.sources(&c) {
			s.leaving(share, breaches)
		}
	}
}

// sources is the shares to take VMs from. For VMs that should be together these are the smallest first, without a share that
// has an immovable VM. For VMs that should be apart they are the largest first. Between shares of one size, the one with the
// lower first ID comes first.
func (s *search) sources(c *company) []share {
	shares := sharesOf(c.vms, s.where)
	if c.polarity == model.Negative {
		shares = slices.DeleteFunc(shares, func(sh share) bool { return len(sh.vms) < 2 })
	} else {
		shares = slices.DeleteFunc(shares, func(sh share) bool { return slices.ContainsFunc(sh.vms, s.fixed) })
	}
	for i := range shares {
		slices.SortFunc(shares[i].vms, s.order)
	}
	slices.SortFunc(shares, func(a, b share) int {
		larger := cmp.Compare(len(b.vms), len(a.vms))
		if c.polarity == model.Positive {
			larger = -larger
		}
		return cmp.Or(larger, s.order(a.vms[0], b.vms[0]))
	})
	return shares
}

// leaving adds the VMs of one share. A merged rule may tie a VM to others although no group of its own is broken. Then the VM
// is a candidate for the first group that is.
func (s *search) leaving(sh share, breaches []Breach) {
	for _, vm := range sh.vms {
		if s.fixed(vm) {
			continue
		}
		before := len(s.found)
		for _, breach := range breaches {
			if has(breach.VMs, vm) {
				s.found = append(s.found, Candidate{VM: vm, Breach: breach, Hard: breach.Rule.Enforcing})
			}
		}
		if len(s.found) == before {
			s.found = append(s.found, Candidate{VM: vm, Breach: breaches[0], Hard: breaches[0].Rule.Enforcing})
		}
	}
}
