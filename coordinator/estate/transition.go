package estate

import (
	"cmp"
	"fmt"
	"slices"

	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// CheckChange tells every rule that going from one state to another breaks: those of Check that are not broken in the
// same way already, and those about what cannot change or go.
func CheckChange(now, after State) []schema.Problem {
	t := &transition{now: &now, after: &after, was: newIndex(&now), is: newIndex(&after)}
	t.resources()
	t.volumes()
	t.storage()
	t.nodes()
	t.vms()
	t.snapshots()
	broken := Check(*t.after)
	if len(broken) == 0 {
		return t.problems
	}
	known := make(map[schema.Problem]bool)
	for _, problem := range Check(now) {
		known[problem] = true
	}
	for _, problem := range broken {
		if !known[problem] {
			t.problems = append(t.problems, problem)
		}
	}
	return t.problems
}

// transition compares two states.
type transition struct {
	now, after *State
	was, is    *index
	problems   []schema.Problem
}

func (t *transition) report(subject, field, message, next string) {
	t.problems = append(t.problems, schema.Problem{Subject: subject, Field: field, Message: message, Next: next})
}

func (t *transition) resources() {
	t.gone()
	for i := range t.now.Resources {
		r := &t.now.Resources[i]
		subject := schema.Ref(r.Kind, r.Name)
		next := t.is.byID[r.ID]
		if next == nil {
			continue
		}
		form, _ := schema.FormOf(r.Kind)
		for _, link := range form.Links {
			if link.Fixed && leadsTo(r, link) != leadsTo(next, link) {
				t.report(subject, link.Name,
					fmt.Sprintf("its %s cannot change once the %s is there", link.Name, r.Kind), "delete it and make another one")
			}
		}
		for _, setting := range form.Settings {
			if from, to := Effective(r, setting), Effective(next, setting); setting.Fixed && from != to {
				message := fmt.Sprintf(
					"%s cannot change from %s to %s once the %s is there", setting.Name, cmp.Or(from, "none"), cmp.Or(to, "none"), r.Kind,
				)
				if setting.Why != "" {
					message += ": " + setting.Why
				}
				t.report(subject, setting.Name, message, "delete it and make another one")
			}
		}
	}
}

// gone refuses to delete what is in use. It stays in the state after, so that this is told once and not by each user's
// broken link, and uses what it links to.
func (t *transition) gone() {
	byKind := make(map[model.Kind][]*model.Resource)
	for i := range t.now.Resources {
		if r := &t.now.Resources[i]; t.is.byID[r.ID] == nil {
			byKind[r.Kind] = append(byKind[r.Kind], r)
		}
	}
	if len(byKind) == 0 {
		return
	}
	users := usersOf(t.after)
	kept := slices.Clone(t.after.Resources)
	for _, form := range slices.Backward(schema.Forms()) {
		for _, r := range byKind[form.Kind] {
			used := users.of(r.Kind, r.ID, r.Name)
			if len(used) == 0 {
				continue
			}
			next := "delete or relink what uses it first"
			if r.ID == model.DefaultCluster {
				next = "name it in the document, it is there for what is in no other cluster"
			}
			t.report(schema.Ref(r.Kind, r.Name), "", "it is in use by "+schema.Several(used)+" and cannot be deleted", next)
			kept = append(kept, *r)
			users.resource(r)
		}
	}
	t.after.Resources = kept
}

// leadsTo is where a link leads; to the default cluster if it names no other one.
func leadsTo(r *model.Resource, link schema.Link) string {
	if id := r.Links[link.Name]; id != "" || link.To != model.KindCluster {
		return id
	}
	return model.DefaultCluster
}

// Effective is the value that a setting of a resource has, by default if it is not set.
func Effective(r *model.Resource, setting schema.Setting) string {
	if value, set := r.Settings[setting.Name]; set {
		return value
	}
	return setting.Default
}

// storage refuses to change where the disks of VMs are: those that are there have none, or one, on a node.
func (t *transition) storage() {
	used := make(map[string][]string)
	s := scopesOf(t.was)
	for i := range t.now.VMs {
		vm := &t.now.VMs[i]
		if name, _, err := s.settled(vm); err == nil && name != "" {
			used[name] = append(used[name], schema.Ref(model.KindVM, vm.Name))
		}
	}
	of := func(x *index, name string) model.Storage {
		record, _ := x.ResourceByName(model.KindCluster, name)
		return model.SettingsOf(&record).Storage
	}
	for i := range t.after.Resources {
		r := &t.after.Resources[i]
		if r.Kind != model.KindCluster || len(used[r.Name]) == 0 {
			continue
		}
		if from, to := of(t.was, r.Name), of(t.is, r.Name); from != to {
			slices.Sort(used[r.Name])
			t.report(schema.Ref(r.Kind, r.Name), model.SettingStorage,
				fmt.Sprintf("storage cannot change from %s to %s while the cluster has VMs: %s", from, to, schema.Several(used[r.Name])),
				"move them to a VDC of another cluster first")
		}
	}
}

// nodes refuses to move a node to another cluster with its VMs.
func (t *transition) nodes() {
	for i := range t.now.Nodes {
		n := &t.now.Nodes[i]
		next := t.is.nodes[n.ID]
		if next == nil || next.Cluster == n.Cluster {
			continue
		}
		if users := InUse(*t.now, model.KindNode, n.ID); len(users) > 0 {
			t.report(schema.Ref(model.KindNode, n.Name), schema.LinkCluster,
				fmt.Sprintf("it cannot move from cluster %s to %s with VMs or volumes: %s", n.Cluster, next.Cluster, schema.Several(users)),
				"drain it, and delete or move what has its volume there")
		}
	}
}

// vms refuses to delete a VM that a node may run.
func (t *transition) vms() {
	kept := make(map[string]bool, len(t.after.VMs))
	for i := range t.after.VMs {
		kept[t.after.VMs[i].ID] = true
	}
	for i := range t.now.VMs {
		vm := &t.now.VMs[i]
		if kept[vm.ID] || !busy(vm) {
			continue
		}
		t.report(schema.Ref(model.KindVM, vm.Name), "", "it runs, or an operation works on it, and cannot be deleted", "stop it first")
	}
}

// snapshots refuses to take a disk from a VM while snapshots of the VM are in its file: nobody could revert to them, and nothing but a
// removal of them by hand would ever take them out of it.
func (t *transition) snapshots() {
	for i := range t.after.VMs {
		vm := &t.after.VMs[i]
		at := slices.IndexFunc(t.now.VMs, func(before model.VM) bool { return before.ID == vm.ID })
		if at < 0 || len(t.now.VMs[at].Snapshots) == 0 {
			continue
		}
		before := &t.now.VMs[at]
		for _, id := range before.Disks {
			disk := t.was.byID[id]
			if disk == nil || slices.Contains(vm.Disks, id) {
				continue
			}
			if name := before.SnapshotIn(disk); name != "" {
				t.report(schema.Ref(model.KindVM, vm.Name), "disks",
					fmt.Sprintf("%s has the snapshot %q, which would stay in its file", schema.Ref(disk.Kind, disk.Name), name),
					fmt.Sprintf("delete the snapshot first: 'berth vm snapshot delete %s --name %s'", vm.Name, name))
			}
		}
	}
}

// busy tells whether a node may run the VM.
func busy(vm *model.VM) bool {
	return vm.Holder != "" || vm.Operation != "" || vm.Desired == model.Running
}
