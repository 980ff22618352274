package estate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"berth/coordinator/cluster"
)

// Check tells every rule that a state breaks. A state that was only ever changed through this package breaks none.
func Check(now State) []Problem {
	c := &checker{now: &now, index: newIndex(&now)}
	c.scopes = scopesOf(c.index)
	for i := range now.Resources {
		c.resource(&now.Resources[i])
	}
	c.masters()
	c.conflicts()
	names := make(map[string]bool, len(now.Nodes)+len(now.VMs))
	unique := func(kind cluster.Kind, name string) {
		if err := cluster.ValidateName(string(kind), name); err != nil {
			c.problems = append(c.problems, problemOf(ref(kind, name), "name", err))
		}
		if names[ref(kind, name)] {
			c.report(ref(kind, name), "name", "two "+string(kind)+"s have the name", "rename one")
		}
		names[ref(kind, name)] = true
	}
	for i := range now.Nodes {
		unique(cluster.KindNode, now.Nodes[i].Name)
		c.node(&now.Nodes[i])
	}
	used := make(map[string]string)
	for i := range now.VMs {
		unique(cluster.KindVM, now.VMs[i].Name)
		c.vm(&now.VMs[i], used)
	}
	return c.problems
}

type checker struct {
	now      *State
	index    *index
	problems []Problem

	scopes *scopes

	vmsByID map[string]*cluster.VM // once it is needed
}

func (c *checker) report(subject, field, message, next string) {
	c.problems = append(c.problems, Problem{Subject: subject, Field: field, Message: message, Next: next})
}

func (c *checker) resource(r *cluster.Resource) {
	subject := ref(r.Kind, r.Name)
	form, known := FormOf(r.Kind)
	if !known {
		c.report(subject, "", fmt.Sprintf("no kind of resource is called %q", r.Kind), "delete it")
		return
	}
	if err := cluster.ValidateName(string(r.Kind), r.Name); err != nil {
		c.problems = append(c.problems, problemOf(subject, "name", err))
	}
	switch {
	case c.index.byName[subject] != r:
		c.report(subject, "name", "two "+string(r.Kind)+"s have the name", "rename one")
	case c.index.byID[r.ID] != r:
		c.report(subject, "", "another resource has its ID "+r.ID, "delete one")
	case r.Kind == cluster.KindCluster && (r.Name == cluster.DefaultCluster) != (r.ID == cluster.DefaultCluster):
		c.report(subject, "", "the cluster default, and only it, has the ID default", "delete it")
	}
	c.links(form, r, subject)
	c.settings(form, r, subject)
	c.lists(form, r, subject)
	c.members(form, r, subject)
	switch r.Kind {
	case cluster.KindPolicy:
		c.policy(r, subject)
	case cluster.KindGroup:
		c.group(r, subject)
	case cluster.KindVDC:
		c.vdc(r, subject)
	case cluster.KindOffer:
		c.offer(r, subject)
	case cluster.KindPool:
		c.pool(r, subject)
	case cluster.KindDisk:
		c.disk(r, subject)
	}
	if len(r.NodeKeys) > 0 && !form.HasNodeKeys {
		c.report(subject, "node_keys", r.Kind.WithArticle()+" declares keys of nodes", "declare them on a cluster")
	}
	c.nodeKeys(r.NodeKeys, subject)
	c.keys(r.Kind, r.Keys, subject)
}

func (c *checker) links(form Form, r *cluster.Resource, subject string) {
	for _, link := range form.Links {
		id, set := r.Links[link.Name]
		if !set {
			if link.Required {
				c.report(subject, link.Name, "without a "+link.Name, "name one: "+link.Doc)
			}
			continue
		}
		c.link(subject, link.Name, link.To, link.For, id)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Links)) {
		if !slices.ContainsFunc(form.Links, func(l Link) bool { return l.Name == name }) {
			c.report(subject, name, fmt.Sprintf("%s links to no %s: links lead up the hierarchy, so that they cannot go round", r.Kind.WithArticle(), name),
				"remove the link")
		}
	}
}

// link checks one link: that it leads somewhere, to the right kind, and to an offer that is for this.
func (c *checker) link(subject, name string, to, offerFor cluster.Kind, id string) {
	if to == cluster.KindCluster && id == cluster.DefaultCluster || id == unresolved {
		return // there without being declared, or told already
	}
	if built, known := BuiltinByID(id); known && built.Kind == to {
		return
	}
	found := c.index.byID[id]
	switch {
	case found == nil:
		c.report(subject, name, fmt.Sprintf("its %s, the %s with ID %s, does not exist", name, to, id), "link it to one that does")
	case found.Kind != to:
		c.report(subject, name, fmt.Sprintf("its %s is %s, want %s", name, ref(found.Kind, found.Name), to.WithArticle()), "link it to "+to.WithArticle())
	case to == cluster.KindOffer && found.Settings[SettingFor] != string(offerFor):
		c.report(subject, name, fmt.Sprintf("%s is an offer for %ss, not for %ss", ref(found.Kind, found.Name), found.Settings[SettingFor], offerFor),
			fmt.Sprintf("name an offer with for: %s", offerFor))
	}
}

func (c *checker) settings(form Form, r *cluster.Resource, subject string) {
	for _, setting := range form.Settings {
		value, set := r.Settings[setting.Name]
		if !set {
			if setting.Required {
				c.report(subject, setting.Name, "without a "+setting.Name, "give one: "+setting.Doc)
			}
			continue
		}
		if canonical, err := setting.Canonical(value); err != nil {
			c.problems = append(c.problems, problemOf(subject, setting.Name, err))
		} else if canonical != value {
			c.report(subject, setting.Name, fmt.Sprintf("%s is kept as %q, want %q", setting.Name, value, canonical), "set it again")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Settings)) {
		if !slices.ContainsFunc(form.Settings, func(s Setting) bool { return s.Name == name }) {
			c.report(subject, name, fmt.Sprintf("%s has no setting %s", r.Kind.WithArticle(), name), "remove it")
		}
	}
	switch r.Kind {
	case cluster.KindCluster:
		if s := cluster.SettingsOf(r); s.FinalMSAV > s.InitialMSAV {
			c.report(subject, cluster.SettingFinalMSAV,
				fmt.Sprintf("final_msav %g is above initial_msav %g: the threshold falls from round to round", s.FinalMSAV, s.InitialMSAV),
				"give final_msav at most initial_msav")
		}
	case cluster.KindImage:
		c.image(r, subject)
	}
}

func (c *checker) nodeKeys(keys []cluster.NodeKey, subject string) {
	if len(keys) > cluster.MaxKeys {
		c.report(subject, "node_keys", fmt.Sprintf("%d node keys, at most %d are kept", len(keys), cluster.MaxKeys), "declare fewer")
	}
	seen := make(map[string]bool, len(keys))
	for _, one := range keys {
		if err := cluster.ValidateNodeKey(one); err != nil {
			c.problems = append(c.problems, problemOf(subject, "node_keys", err))
		}
		if seen[one.Name] {
			c.report(subject, "node_keys", "two node keys "+one.Name, "keep one")
		}
		seen[one.Name] = true
	}
}

func (c *checker) keys(kind cluster.Kind, keys []cluster.Key, subject string) {
	if len(keys) > cluster.MaxKeys {
		c.report(subject, "keys", fmt.Sprintf("%d keys, at most %d are kept on one resource", len(keys), cluster.MaxKeys), "set fewer")
	}
	type identity struct {
		class cluster.KeyClass
		name  string
	}
	seen := make(map[identity]bool, len(keys))
	for _, one := range keys {
		if err := cluster.ValidateKey(kind, one); err != nil {
			c.problems = append(c.problems, problemOf(subject, "keys", err))
		}
		if seen[identity{one.Class, one.Name}] {
			c.report(subject, "keys", "two "+string(one.Class)+" keys "+one.Name, "keep one")
		}
		seen[identity{one.Class, one.Name}] = true
	}
}

func (c *checker) masters() {
	var masters []string
	for i := range c.now.Resources {
		if r := &c.now.Resources[i]; r.Kind == cluster.KindBillingEntity && r.Settings[SettingMaster] == "true" {
			masters = append(masters, ref(r.Kind, r.Name))
		}
	}
	for _, one := range masters[min(1, len(masters)):] {
		c.report(one, SettingMaster, fmt.Sprintf("%s is the master billing entity already, there is at most one", masters[0]),
			"leave out master, or delete the other one")
	}
}

func (c *checker) node(n *cluster.Node) {
	subject := ref(cluster.KindNode, n.Name)
	if err := cluster.ValidateSettings(n.Settings); err != nil {
		c.problems = append(c.problems, problemOf(subject, settingOf(err), err))
	}
	c.labels(n.Labels, subject)
	record, declared := c.index.ResourceByName(cluster.KindCluster, n.Cluster)
	if !declared && n.Cluster != cluster.DefaultCluster {
		c.report(subject, LinkCluster, fmt.Sprintf("its cluster %s does not exist", n.Cluster), "declare the cluster, or correct its name")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(n.Keys)) {
		if _, has := record.NodeKey(name); !has {
			c.report(subject, nodeKeyField(name), fmt.Sprintf("cluster/%s does not declare the node key %s", n.Cluster, name),
				"declare it under the cluster's node_keys, then all its nodes have it; or remove it here")
		}
		if err := cluster.ValidateKeyFigure("key "+name, n.Keys[name]); err != nil {
			c.problems = append(c.problems, problemOf(subject, nodeKeyField(name), err))
		}
	}
}

// vm checks one VM. used has the VM that each disk and NIC is attached to.
func (c *checker) vm(vm *cluster.VM, used map[string]string) {
	subject := ref(cluster.KindVM, vm.Name)
	before := len(c.problems)
	for _, link := range []struct {
		name         string
		to, offerFor cluster.Kind
		id           string
	}{
		{LinkVDC, cluster.KindVDC, "", vm.VDC},
		{LinkOffer, cluster.KindOffer, cluster.KindVM, vm.Offer},
		{LinkImage, cluster.KindImage, "", vm.Image},
	} {
		if link.id != "" {
			c.link(subject, link.name, link.to, link.offerFor, link.id)
		}
	}
	attach := func(field string, kind cluster.Kind, ids []string) {
		for _, id := range ids {
			c.link(subject, field, kind, "", id)
			if other, taken := used[id]; taken && id != unresolved {
				c.report(subject, field, fmt.Sprintf("%s is attached to %s already, to one VM at a time and once", c.shown(id), other),
					"leave it out of one of them")
			}
			used[id] = subject
		}
	}
	attach("disks", cluster.KindDisk, vm.Disks)
	attach("nics", cluster.KindNIC, vm.NICs)
	c.within(vm, subject)
	c.keys(cluster.KindVM, vm.Keys, subject)
	c.labels(vm.Labels, subject)
	c.migration(vm, subject)
	if len(c.problems) > before {
		return // what follows looks at what it links to
	}
	c.preferred(vm, subject)
	if err := cluster.ValidateSpec(c.spec(vm)); err != nil {
		c.problems = append(c.problems, problemOf(subject, settingOf(err), err))
	}
	c.seeded(vm, subject)
	c.place(vm, subject)
}

func (c *checker) shown(id string) string {
	if r := c.index.byID[id]; r != nil {
		return ref(r.Kind, r.Name)
	}
	return id
}

// settingOf is the field of a record that an error about a value is about.
func settingOf(err error) string {
	message := err.Error()
	if at := strings.IndexAny(message, " [."); at > 0 {
		return message[:at]
	}
	return ""
}
