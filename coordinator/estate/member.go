package estate

import (
	"fmt"
	"maps"
	"slices"

	"berth/coordinator/cluster"
)

// Fields of nodes and VMs, in documents and in differences.
const (
	fieldLabels     = "labels"
	fieldManagement = "management"
	fieldUnbalanced = "unbalanced"
	fieldMigration  = "migration"
	fieldHA         = "ha"
	fieldPreferred  = "preferred"
	fieldWithin     = "within"
	fieldDisks      = "disks"
	fieldUserData   = "user_data"
)

// migrations are the words for who may move a running VM.
var migrations = []string{"automatic", string(cluster.MigrateManual), string(cluster.MigrateNever)}

// ParseMigration reads who may move a running VM. The error is a *cluster.InvalidError.
func ParseMigration(word string) (cluster.Migration, error) {
	if _, err := oneOf(fieldMigration, migrations, word); err != nil {
		return "", err
	}
	if word == migrations[0] {
		return cluster.MigrateAutomatic, nil
	}
	return cluster.Migration(word), nil
}

// MigrationText is who may move a running VM, in a word.
func MigrationText(m cluster.Migration) string {
	if m == cluster.MigrateAutomatic {
		return migrations[0]
	}
	return string(m)
}

// EffectiveList is what a list of a resource comes to, by default if it is not set: of the parameters of a balancer each by
// itself.
func EffectiveList(r *cluster.Resource, list List) []string {
	if r.Kind == cluster.KindPolicy && list.Name == ListParameters {
		return parametersOf(r)
	}
	if words := r.Lists[list.Name]; len(words) > 0 {
		return words
	}
	return list.Default
}

// vms are those of the state by ID.
func (c *checker) vms() map[string]*cluster.VM {
	if c.vmsByID == nil {
		c.vmsByID = make(map[string]*cluster.VM, len(c.now.VMs))
		for i := range c.now.VMs {
			c.vmsByID[c.now.VMs[i].ID] = &c.now.VMs[i]
		}
	}
	return c.vmsByID
}

// lists checks that lists are known and as they are stored.
func (c *checker) lists(form Form, r *cluster.Resource, subject string) {
	for _, name := range slices.Sorted(maps.Keys(r.Lists)) {
		at := slices.IndexFunc(form.Lists, func(l List) bool { return l.Name == name })
		if at < 0 {
			c.report(subject, name, fmt.Sprintf("%s has no list %s", r.Kind.WithArticle(), name), "remove it")
			continue
		}
		if canonical, err := form.Lists[at].Canonical(r.Lists[name]); err != nil {
			c.problems = append(c.problems, problemOf(subject, name, err))
		} else if !slices.Equal(canonical, r.Lists[name]) {
			c.report(subject, name, fmt.Sprintf("%s is kept as %q, want %q", name, r.Lists[name], canonical), "set it again")
		}
	}
}

// members checks that lists of members are known, and that everything in them exists and is there once.
func (c *checker) members(form Form, r *cluster.Resource, subject string) {
	for _, name := range slices.Sorted(maps.Keys(r.Members)) {
		at := slices.IndexFunc(form.Members, func(l MemberList) bool { return l.Name == name })
		if at < 0 {
			c.report(subject, name, fmt.Sprintf("%s has no members %s", r.Kind.WithArticle(), name), "remove them")
			continue
		}
		c.listed("its member", r.Members[name], form.Members[at], subject)
	}
}

func (c *checker) listed(as string, ids []string, list MemberList, subject string) {
	if !slices.IsSorted(ids) {
		c.report(subject, list.Name, list.Name+" are not kept in the order of their IDs", "set them again")
	}
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		name := id
		switch vm, node := c.vms()[id], c.index.nodes[id]; {
		case list.To == cluster.KindVM && vm != nil:
			name = vm.Name
		case list.To == cluster.KindNode && node != nil:
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

func (c *checker) labels(labels []string, subject string) {
	if err := cluster.ValidateLabels(labels); err != nil {
		c.problems = append(c.problems, problemOf(subject, fieldLabels, err))
	} else if !slices.IsSorted(labels) {
		c.report(subject, fieldLabels, fmt.Sprintf("labels are kept as %q, not in their order", labels), "set them again")
	}
}

func (c *checker) migration(vm *cluster.VM, subject string) {
	if _, err := ParseMigration(MigrationText(vm.Migration)); err != nil {
		c.problems = append(c.problems, problemOf(subject, fieldMigration, err))
	}
}

// preferred checks that the nodes that a VM prefers are there, each once, and of the VM's cluster.
func (c *checker) preferred(vm *cluster.VM, subject string) {
	if len(vm.Preferred) > cluster.MaxLabels {
		c.report(subject, fieldPreferred, fmt.Sprintf("it prefers %d nodes, at most %d are kept", len(vm.Preferred), cluster.MaxLabels), "name fewer")
	}
	c.listed("what it prefers", vm.Preferred, MemberList{Name: fieldPreferred, To: cluster.KindNode}, subject)
	where, err := c.scopes.of(vm)
	for _, id := range vm.Preferred {
		if node := c.index.nodes[id]; err == nil && node != nil && !where.has(node.Cluster) {
			c.report(subject, fieldPreferred,
				fmt.Sprintf("it prefers node/%s, which is in cluster %s, and belongs into %s", node.Name, node.Cluster, where.text()),
				"take the node from those that it prefers first")
		}
	}
}
