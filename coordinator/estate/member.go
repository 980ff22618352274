package estate

import (
	"fmt"
	"maps"
	"slices"

	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// Fields of VMs that problems name.
const (
	fieldLabels    = "labels"
	fieldPreferred = "preferred"
	fieldWithin    = "within"
	fieldDisks     = "disks"
	fieldUserData  = "user_data"
)

// EffectiveList is what a list of a resource comes to, by default if it is not set: of the parameters of a balancer each by
// itself.
func EffectiveList(r *model.Resource, list schema.List) []string {
	if r.Kind == model.KindPolicy && list.Name == schema.ListParameters {
		return parametersOf(r)
	}
	if words := r.Lists[list.Name]; len(words) > 0 {
		return words
	}
	return list.Default
}

// vms are those of the state by ID.
func (c *checker) vms() map[string]*model.VM {
	if c.vmsByID == nil {
		c.vmsByID = make(map[string]*model.VM, len(c.now.VMs))
		for i := range c.now.VMs {
			c.vmsByID[c.now.VMs[i].ID] = &c.now.VMs[i]
		}
	}
	return c.vmsByID
}

// lists checks that lists are known and as they are stored.
func (c *checker) lists(form schema.Form, r *model.Resource, subject string) {
	for _, name := range slices.Sorted(maps.Keys(r.Lists)) {
		at := slices.IndexFunc(form.Lists, func(l schema.List) bool { return l.Name == name })
		if at < 0 {
			c.report(subject, name, fmt.Sprintf("%s has no list %s", r.Kind.WithArticle(), name), "remove it")
			continue
		}
		if canonical, err := form.Lists[at].Canonical(r.Lists[name]); err != nil {
			c.problems = append(c.problems, schema.ProblemOf(subject, name, err))
		} else if !slices.Equal(canonical, r.Lists[name]) {
			c.report(subject, name, fmt.Sprintf("%s is kept as %q, want %q", name, r.Lists[name], canonical), "set it again")
		}
	}
}

// members checks that lists of members are known, and that everything in them exists and is there once.
func (c *checker) members(form schema.Form, r *model.Resource, subject string) {
	for _, name := range slices.Sorted(maps.Keys(r.Members)) {
		at := slices.IndexFunc(form.Members, func(l schema.MemberList) bool { return l.Name == name })
		if at < 0 {
			c.report(subject, name, fmt.Sprintf("%s has no members %s", r.Kind.WithArticle(), name), "remove them")
			continue
		}
		c.listed("its member", r.Members[name], form.Members[at], subject)
	}
}

func (c *checker) listed(as string, ids []string, list schema.MemberList, subject string) {
	if !slices.IsSorted(ids) {
		c.report(subject, list.Name, list.Name+" are not kept in the order of their IDs", "set them again")
	}
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		name := id
		switch vm, node := c.vms()[id], c.index.nodes[id]; {
		case list.To == model.KindVM && vm != nil:
			name = vm.Name
		case list.To == model.KindNode && node != nil:
			name = node.Name
		default:
			c.report(subject, list.Name, fmt.Sprintf("%s, the %s with ID %s, does not exist", as, list.To, id), "leave it out")
		}
		if seen[id] {
			c.report(subject, list.Name, fmt.Sprintf("%s lists %s twice", list.Name, name), "keep one")
		}
		seen[id] = true
	}
}

func (c *checker) labels(field string, labels []string, subject string) {
	if err := model.ValidateLabels(labels); err != nil {
		c.problems = append(c.problems, schema.ProblemOf(subject, field, err))
	} else if !slices.IsSorted(labels) {
		c.report(subject, field, fmt.Sprintf("labels are kept as %q, not in their order", labels), "set them again")
	}
}

// texts checks that the texts of a VM are among the words that their fields have, and not too long.
func (c *checker) texts(vm *model.VM, subject string) {
	for i := range schema.VM {
		f := &schema.VM[i]
		if text, is := f.At(vm).(*string); is && *text != "" {
			if _, err := f.Take(*text); err != nil {
				c.problems = append(c.problems, schema.ProblemOf(subject, f.Name, err))
			}
		}
	}
}

// preferred checks that the nodes that a VM prefers are there, each once, and of the VM's cluster.
func (c *checker) preferred(vm *model.VM, subject string) {
	if len(vm.Preferred) > model.MaxLabels {
		c.report(
			subject, fieldPreferred, fmt.Sprintf("it prefers %d nodes, at most %d are kept", len(vm.Preferred), model.MaxLabels),
			"name fewer",
		)
	}
	c.listed("what it prefers", vm.Preferred, schema.MemberList{Name: fieldPreferred, To: model.KindNode}, subject)
	where, err := c.scopes.of(vm)
	for _, id := range vm.Preferred {
		if node := c.index.nodes[id]; err == nil && node != nil && !where.has(node.Cluster) {
			c.report(subject, fieldPreferred,
				fmt.Sprintf("it prefers node/%s, which is in cluster %s, and belongs into %s", node.Name, node.Cluster, where.text()),
				"take the node from those that it prefers first")
		}
	}
}
