package estate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// Check tells every rule that a state breaks. A state that was only ever changed through this package breaks none.
func Check(now State) []schema.Problem {
	c := &checker{now: &now, index: newIndex(&now)}
	c.scopes = scopesOf(c.index)
	for i := range now.Resources {
		c.resource(&now.Resources[i])
	}
	c.masters()
	c.conflicts()
	names := make(map[string]bool, len(now.Nodes)+len(now.VMs))
	unique := func(kind model.Kind, name string) {
		if err := model.ValidateName(string(kind), name); err != nil {
			c.problems = append(c.problems, schema.ProblemOf(schema.Ref(kind, name), "name", err))
		}
		if names[schema.Ref(kind, name)] {
			c.report(schema.Ref(kind, name), "name", "two "+string(kind)+"s have the name", "rename one")
		}
		names[schema.Ref(kind, name)] = true
	}
	for i := range now.Nodes {
		unique(model.KindNode, now.Nodes[i].Name)
		c.node(&now.Nodes[i])
	}
	used := make(map[string]string)
	for i := range now.VMs {
		unique(model.KindVM, now.VMs[i].Name)
		c.vm(&now.VMs[i], used)
	}
	return c.problems
}

type checker struct {
	now      *State
	index    *index
	problems []schema.Problem

	scopes *scopes

	vmsByID map[string]*model.VM // once it is needed
}

func (c *checker) report(subject, field, message, next string) {
	c.problems = append(c.problems, schema.Problem{Subject: subject, Field: field, Message: message, Next: next})
}

func (c *checker) resource(r *model.Resource) {
	subject := schema.Ref(r.Kind, r.Name)
	form, known := schema.FormOf(r.Kind)
	if !known {
		c.report(subject, "", fmt.Sprintf("no kind of resource is called %q", r.Kind), "delete it")
		return
	}
	if err := model.ValidateName(string(r.Kind), r.Name); err != nil {
		c.problems = append(c.problems, schema.ProblemOf(subject, "name", err))
	}
	switch {
	case c.index.byName[subject] != r:
		c.report(subject, "name", "two "+string(r.Kind)+"s have the name", "rename one")
	case c.index.byID[r.ID] != r:
		c.report(subject, "", "another resource has its ID "+r.ID, "delete one")
	case r.Kind == model.KindCluster && (r.Name == model.DefaultCluster) != (r.ID == model.DefaultCluster):
		c.report(subject, "", "the cluster default, and only it, has the ID default", "delete it")
	}
	c.links(form, r, subject)
	c.settings(form, r, subject)
	c.lists(form, r, subject)
	c.members(form, r, subject)
	switch r.Kind {
	case model.KindPolicy:
		c.policy(r, subject)
	case model.KindGroup:
		c.group(r, subject)
	case model.KindVDC:
		c.vdc(r, subject)
	case model.KindOffer:
		c.offer(r, subject)
	case model.KindPool:
		c.pool(r, subject)
	case model.KindDisk:
		c.disk(r, subject)
	}
	if len(r.NodeKeys) > 0 && !form.HasNodeKeys {
		c.report(subject, "node_keys", r.Kind.WithArticle()+" declares keys of nodes", "declare them on a cluster")
	}
	c.nodeKeys(r.NodeKeys, subject)
	c.keys(r.Kind, r.Keys, subject)
}

func (c *checker) links(form schema.Form, r *model.Resource, subject string) {
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
		if !slices.ContainsFunc(form.Links, func(l schema.Link) bool { return l.Name == name }) {
			c.report(subject, name, fmt.Sprintf(
				"%s links to no %s: links lead up the hierarchy, so that they cannot go round", r.Kind.WithArticle(), name,
			),
				"remove the link")
		}
	}
}

// link checks one link: that it leads somewhere, to the right kind, and to an offer that is for this.
func (c *checker) link(subject, name string, to, offerFor model.Kind, id string) {
	if to == model.KindCluster && id == model.DefaultCluster || id == unresolved {
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
		c.report(
			subject, name, fmt.Sprintf("its %s is %s, want %s", name, schema.Ref(found.Kind, found.Name), to.WithArticle()),
			"link it to "+to.WithArticle(),
		)
	case to == model.KindOffer && found.Settings[schema.SettingFor] != string(offerFor):
		c.report(subject, name, fmt.Sprintf(
			"%s is an offer for %ss, not for %ss", schema.Ref(found.Kind, found.Name), found.Settings[schema.SettingFor], offerFor,
		),
			fmt.Sprintf("name an offer with for: %s", offerFor))
	}
}

func (c *checker) settings(form schema.Form, r *model.Resource, subject string) {
	for _, setting := range form.Settings {
		value, set := r.Settings[setting.Name]
		if !set {
			if setting.Required {
				c.report(subject, setting.Name, "without a "+setting.Name, "give one: "+setting.Doc)
			}
			continue
		}
		if canonical, err := setting.Canonical(value); err != nil {
			c.problems = append(c.problems, schema.ProblemOf(subject, setting.Name, err))
		} else if canonical != value {
			c.report(subject, setting.Name, fmt.Sprintf("%s is kept as %q, want %q", setting.Name, value, canonical), "set it again")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Settings)) {
		if !slices.ContainsFunc(form.Settings, func(s schema.Setting) bool { return s.Name == name }) {
			c.report(subject, name, fmt.Sprintf("%s has no setting %s", r.Kind.WithArticle(), name), "remove it")
		}
	}
	switch r.Kind {
	case model.KindCluster:
		if s := model.SettingsOf(r); s.FinalMSAV > s.InitialMSAV {
			c.report(subject, model.SettingFinalMSAV,
				fmt.Sprintf("final_msav %g is above initial_msav %g: the threshold falls from round to round", s.FinalMSAV, s.InitialMSAV),
				"give final_msav at most initial_msav")
		}
	case model.KindImage:
		c.image(r, subject)
	}
}

func (c *checker) nodeKeys(keys []model.NodeKey, subject string) {
	if len(keys) > model.MaxKeys {
		c.report(subject, "node_keys", fmt.Sprintf("%d node keys, at most %d are kept", len(keys), model.MaxKeys), "declare fewer")
	}
	seen := make(map[string]bool, len(keys))
	for _, one := range keys {
		if err := model.ValidateNodeKey(one); err != nil {
			c.problems = append(c.problems, schema.ProblemOf(subject, "node_keys", err))
		}
		if seen[one.Name] {
			c.report(subject, "node_keys", "two node keys "+one.Name, "keep one")
		}
		seen[one.Name] = true
	}
}

func (c *checker) keys(kind model.Kind, keys []model.Key, subject string) {
	if len(keys) > model.MaxKeys {
		c.report(subject, "keys", fmt.Sprintf("%d keys, at most %d are kept on one resource", len(keys), model.MaxKeys), "set fewer")
	}
	type identity struct {
		class model.KeyClass
		name  string
	}
	seen := make(map[identity]bool, len(keys))
	for _, one := range keys {
		if err := model.ValidateKey(kind, one); err != nil {
			c.problems = append(c.problems, schema.ProblemOf(subject, "keys", err))
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
		if r := &c.now.Resources[i]; r.Kind == model.KindBillingEntity && r.Settings[schema.SettingMaster] == "true" {
			masters = append(masters, schema.Ref(r.Kind, r.Name))
		}
	}
	for _, one := range masters[min(1, len(masters)):] {
		c.report(one, schema.SettingMaster, fmt.Sprintf("%s is the master billing entity already, there is at most one", masters[0]),
			"leave out master, or delete the other one")
	}
}

func (c *checker) node(n *model.Node) {
	subject := schema.Ref(model.KindNode, n.Name)
	if err := model.ValidateSettings(n.Settings); err != nil {
		c.problems = append(c.problems, schema.ProblemOf(subject, settingOf(err), err))
	}
	c.labels(fieldLabels, n.Labels, subject)
	record, declared := c.index.ResourceByName(model.KindCluster, n.Cluster)
	if !declared && n.Cluster != model.DefaultCluster {
		c.report(subject, schema.LinkCluster, fmt.Sprintf("its cluster %s does not exist", n.Cluster), "declare the cluster, or correct its name")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(n.Keys)) {
		if _, has := record.NodeKey(name); !has {
			c.report(subject, schema.NodeKeyField(name), fmt.Sprintf("cluster/%s does not declare the node key %s", n.Cluster, name),
				"declare it under the cluster's node_keys, then all its nodes have it; or remove it here")
		}
		if err := model.ValidateKeyFigure("key "+name, n.Keys[name]); err != nil {
			c.problems = append(c.problems, schema.ProblemOf(subject, schema.NodeKeyField(name), err))
		}
	}
}

// vm checks one VM. used has the VM that each disk and NIC is attached to.
func (c *checker) vm(vm *model.VM, used map[string]string) {
	subject := schema.Ref(model.KindVM, vm.Name)
	before := len(c.problems)
	for _, link := range []struct {
		name         string
		to, offerFor model.Kind
		id           string
	}{
		{schema.LinkVDC, model.KindVDC, "", vm.VDC},
		{schema.LinkOffer, model.KindOffer, model.KindVM, vm.Offer},
		{schema.LinkImage, model.KindImage, "", vm.Image},
	} {
		if link.id != "" {
			c.link(subject, link.name, link.to, link.offerFor, link.id)
		}
	}
	attach := func(field string, kind model.Kind, ids []string) {
		for _, id := range ids {
			c.link(subject, field, kind, "", id)
			if other, taken := used[id]; taken && id != unresolved {
				c.report(subject, field, fmt.Sprintf("%s is attached to %s already, to one VM at a time and once", c.shown(id), other),
					"leave it out of one of them")
			}
			used[id] = subject
		}
	}
	attach("disks", model.KindDisk, vm.Disks)
	attach("nics", model.KindNIC, vm.NICs)
	c.within(vm, subject)
	c.keys(model.KindVM, vm.Keys, subject)
	c.labels(fieldLabels, vm.Labels, subject)
	c.labels("restart_after", vm.RestartAfter, subject)
	c.texts(vm, subject)
	if len(c.problems) > before {
		return // what follows looks at what it links to
	}
	c.preferred(vm, subject)
	if err := model.ValidateSpec(c.spec(vm)); err != nil {
		c.problems = append(c.problems, schema.ProblemOf(subject, settingOf(err), err))
	}
	c.seeded(vm, subject)
	c.place(vm, subject)
}

func (c *checker) shown(id string) string {
	if r := c.index.byID[id]; r != nil {
		return schema.Ref(r.Kind, r.Name)
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
