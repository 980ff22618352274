package estate

import (
	"errors"
	"fmt"
	"slices"

	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/schema"
)

// text is where a VM may be placed, for people.
func (s *scope) text() string {
	if len(s.clusters) == 1 {
		return "cluster " + s.clusters[0].Name
	}
	return fmt.Sprintf("one of %d clusters (%s)", len(s.clusters), s.said)
}

// within checks that what a VM says of where it runs is a zone, a pod or a cluster.
func (c *checker) within(vm *model.VM, subject string) {
	if vm.Within == "" || vm.Within == model.DefaultCluster || vm.Within == unresolved {
		return
	}
	found := c.index.byID[vm.Within]
	switch {
	case found == nil:
		c.report(subject, fieldWithin, fmt.Sprintf("the place with ID %s, which it is within, does not exist", vm.Within), "name one that does")
	case found.Kind != model.KindZone && found.Kind != model.KindPod && found.Kind != model.KindCluster:
		c.report(subject, fieldWithin, fmt.Sprintf("it is within %s", schema.Ref(found.Kind, found.Name)), "name a zone, a pod or a cluster")
	}
}

// place checks that a cluster may take a VM, and that it is where its VDC and it itself say.
func (c *checker) place(vm *model.VM, subject string) {
	where, err := c.scopes.of(vm)
	if errors.Is(err, ErrNoCluster) {
		c.report(subject, schema.LinkVDC, err.Error(), "")
	}
	if err != nil {
		return // the VDC's own problem
	}
	if node := c.index.nodes[vm.Holder]; node != nil && !where.has(node.Cluster) {
		c.report(
			subject, schema.LinkVDC,
			fmt.Sprintf("it runs on node/%s in cluster %s, and belongs into %s", node.Name, node.Cluster, where.text()),
			"stop it first, or leave it in a VDC of cluster "+node.Cluster,
		)
		return
	}
	if node := c.index.nodes[vm.Home]; node != nil && !where.has(node.Cluster) && c.local(&where) {
		c.report(subject, schema.LinkVDC, fmt.Sprintf(
			"its disk is on node/%s in cluster %s, and it belongs into %s", node.Name, node.Cluster, where.text(),
		),
			"leave it in a VDC of cluster "+node.Cluster)
		return
	}
	c.pools(vm, subject, &where)
}

// local tells whether a cluster of a scope has local storage.
func (c *checker) local(where *scope) bool {
	for i := range where.clusters {
		if model.SettingsOf(&where.clusters[i]).Storage == model.LocalStorage {
			return true
		}
	}
	return false
}

// pools checks that the disks of a VM are, and are to be made, in pools of one cluster that may take it.
func (c *checker) pools(vm *model.VM, subject string, where *scope) {
	w := &walk{source: c.index}
	before, of := "", ""
	for _, id := range vm.Disks {
		disk, pool := w.poolOf(subject, id)
		if w.err != nil {
			return // the disk's own problem
		}
		if pool.ID == "" {
			continue
		}
		name, known := clusterNamed(c.index, pool.Links[schema.LinkCluster])
		switch {
		case !known:
		case !where.has(name):
			c.report(subject, fieldDisks, fmt.Sprintf(
				"pool/%s of its disk %s is in cluster %s, and it belongs into %s", pool.Name, disk.Name, name, where.text(),
			),
				"attach a disk of a pool there, or put the VM in cluster "+name)
		case before != "" && before != name:
			c.report(subject, fieldDisks, fmt.Sprintf("its disk %s is of cluster %s and %s of cluster %s", disk.Name, name, of, before),
				"attach disks of one cluster only")
		}
		before, of = name, disk.Name
	}
}

// spec is what a VM would be made of. Pools are chosen when it is started, and volumes are named by IDs that a plan has not
// given yet: others stand in for both.
func (c *checker) spec(vm *model.VM) model.VMSpec {
	pool, _ := first(c.now.Resources, func(r *model.Resource) bool { return r.Kind == model.KindPool })
	var pools []placement.PoolChoice
	for _, id := range vm.Disks {
		pools = append(pools, placement.PoolChoice{Disk: id, Pool: pool.ID})
	}
	spec, err := assemble(c.index, *vm, pools)
	if err != nil {
		return vm.Spec // the problem of what it links to
	}
	for i := range spec.Disks {
		if disk := &spec.Disks[i]; disk.Volume != "" {
			disk.Volume = fmt.Sprint("volume-", i)
		}
	}
	return spec
}

// seeded checks that a VM with user data has a volume: its seed image is made in the same pool.
func (c *checker) seeded(vm *model.VM, subject string) {
	if vm.Spec.UserData == "" || slices.ContainsFunc(vm.Disks, func(id string) bool {
		disk := c.index.byID[id]
		return disk != nil && IsVolume(disk)
	}) {
		return
	}
	c.report(
		subject, fieldUserData, "cloud-init needs a disk in a storage pool, where its seed image is made",
		"attach a disk that has a size or an image, or leave out user_data",
	)
}
