package estate

import (
	"fmt"
	"strings"

	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// vdc checks that a VDC says where its VMs run once.
func (c *checker) vdc(r *model.Resource, subject string) {
	var named []string
	for _, link := range places {
		if r.Links[link.Name] != "" {
			named = append(named, link.Name)
		}
	}
	if len(named) > 1 {
		c.report(
			subject, named[0], "it names a "+strings.Join(named, " and a ")+": its VMs run in one of them",
			"name one and leave out the others",
		)
	}
}

// offer checks that only offers for VMs name a planner.
func (c *checker) offer(r *model.Resource, subject string) {
	if r.Settings[model.SettingPlanner] != "" && r.Settings[schema.SettingFor] != string(model.KindVM) {
		c.report(
			subject, model.SettingPlanner,
			fmt.Sprintf("it has a planner and is for %ss: only VMs are placed", r.Settings[schema.SettingFor]),
			"leave out planner, or make an offer with for: vm",
		)
	}
}

// pool checks that no other pool of its cluster is the same one of libvirt.
func (c *checker) pool(r *model.Resource, subject string) {
	source := model.PoolSettingsOf(r).Source
	for i := range c.now.Resources {
		other := &c.now.Resources[i]
		if other == r {
			return // told of the second one
		}
		if other.Kind == model.KindPool && other.Links[schema.LinkCluster] == r.Links[schema.LinkCluster] &&
			model.PoolSettingsOf(other).Source == source {
			c.report(subject, model.SettingPoolSource, fmt.Sprintf(
				"%s is libvirt's pool %s of the cluster already", schema.Ref(other.Kind, other.Name), source,
			),
				"declare each of libvirt's pools once")
			return
		}
	}
}

// image checks that an image is one thing: a file on the nodes, an imported volume, or nothing but keys.
func (c *checker) image(r *model.Resource, subject string) {
	switch {
	case (r.Settings[schema.SettingPath] == "") != (r.Settings[schema.SettingFormat] == ""):
		c.report(subject, schema.SettingFormat, "path and format say together what its file is, one is missing", "give both or none")
	case r.Settings[schema.SettingPath] != "" && r.Volume != nil:
		c.report(
			subject, schema.SettingPath, "it has been imported, and cannot be a file as well",
			"leave out path and format, or declare another image",
		)
	}
}

// disk checks that a disk is either a file that is there or a volume that is made.
func (c *checker) disk(r *model.Resource, subject string) {
	if !IsVolume(r) {
		c.file(r, subject)
		return
	}
	image := c.index.byID[r.Links[schema.LinkImage]]
	before := len(c.problems)
	switch {
	case r.Settings[schema.SettingFormat] != "":
		c.report(
			subject, schema.SettingFormat, "a format and no path: volumes are made as qcow2",
			"give the path of a file too, or leave out format",
		)
	case r.Settings[schema.SettingSize] == "" && r.Links[schema.LinkImage] == "":
		c.report(
			subject, schema.SettingSize, "neither a file nor a volume",
			"give path and format of a file that is there, or size or image of a volume that is to be made",
		)
	case image == nil || r.Volume != nil:
	case image.Volume == nil:
		c.report(
			subject, schema.LinkImage,
			schema.Ref(image.Kind, image.Name)+" has not been imported, and nothing can be a copy of it",
			"import it with 'berth image import', or give path and format of a file",
		)
	case image.Volume.Doomed:
		c.report(
			subject, schema.LinkImage, schema.Ref(image.Kind, image.Name)+" is being imported or removed",
			"wait until it is there, or name another image",
		)
	case sizeOf(r, image) < image.Volume.Capacity:
		c.report(subject, schema.SettingSize, fmt.Sprintf(
			"size %s is smaller than %s, which has %s", schema.Exact(sizeOf(r, image)), schema.Ref(image.Kind, image.Name),
			schema.Exact(image.Volume.Capacity),
		),
			"give at least that, or leave out size")
	}
	pool := c.index.byID[r.Links[schema.LinkPool]]
	if len(c.problems) > before || r.Volume != nil || pool == nil || image == nil || image.Volume == nil {
		return
	}
	if there := c.index.byID[image.Volume.Pool]; there != nil && !c.comesTo(image, pool) {
		c.report(subject, schema.LinkPool, fmt.Sprintf(
			"%s is in another cluster than %s with %s", schema.Ref(pool.Kind, pool.Name),
			schema.Ref(there.Kind, there.Name), schema.Ref(image.Kind, image.Name),
		),
			"import the image into a pool of that cluster")
	}
}

// comesTo tells whether an image is in the cluster of a pool, and so can be copied into the pool.
func (c *checker) comesTo(image, pool *model.Resource) bool {
	for volume := range image.Volumes() {
		there := c.index.byID[volume.Pool]
		if !volume.Doomed && there != nil && there.Links[schema.LinkCluster] == pool.Links[schema.LinkCluster] {
			return true
		}
	}
	return false
}

// file checks a disk that is a file.
func (c *checker) file(r *model.Resource, subject string) {
	if r.Settings[schema.SettingFormat] == "" {
		c.report(subject, schema.SettingFormat, "path and format say together what its file is, one is missing", "give the format, raw or qcow2")
	}
	for _, other := range []struct {
		field string
		set   bool
	}{
		{schema.SettingSize, r.Settings[schema.SettingSize] != ""},
		{schema.SettingKeep, r.Settings[schema.SettingKeep] != ""},
		{schema.LinkImage, r.Links[schema.LinkImage] != ""},
		{schema.LinkPool, r.Links[schema.LinkPool] != ""},
		{schema.SettingPath, r.Volume != nil},
	} {
		if other.set {
			c.report(subject, other.field, "a path says that it is a file which is there, and the rest that it is a volume",
				"leave out path and format, or size, image, pool and keep")
			return
		}
	}
}

// volumes refuses what an edit cannot do to a volume: make it larger, or take it away.
func (t *transition) volumes() {
	for i := range t.now.Resources {
		r := &t.now.Resources[i]
		next := t.is.byID[r.ID]
		switch {
		case r.Volume == nil:
		case next == nil:
			t.report(schema.Ref(r.Kind, r.Name), "", "its content is in a storage pool, which a change of the estate does not remove",
				fmt.Sprintf("delete it with 'berth %s delete %s'", r.Kind, r.Name))
		case next.Settings[schema.SettingSize] != r.Settings[schema.SettingSize]:
			t.report(schema.Ref(r.Kind, r.Name), schema.SettingSize, "its volume is made, and its size does not change by an edit",
				fmt.Sprintf("use 'berth disk grow %s SIZE'", r.Name))
		}
	}
}
