package estate

import (
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/cluster"
)

// zoneForm is what pods are in, with how planners put its pods and clusters in order.
var zoneForm = Form{
	Kind: cluster.KindZone, Plural: "zones", Doc: "pods, with how planners put them and their clusters in order",
	Settings: []Setting{
		{Name: cluster.SettingPlanner, Doc: "of offers that name none: " + anyOf(planners()), Default: cluster.DefaultPlanner, Words: planners()},
		{
			Name: cluster.SettingHeuristicsTo, Default: cluster.LevelCluster, Words: []string{cluster.LevelPod, cluster.LevelCluster},
			Doc: "where planners put things in order: pod, and then the clusters inside each pod; or cluster, whatever its pod",
		},
		{
			Name: cluster.SettingDispersionWeight, Default: "1", check: number(cluster.SettingDispersionWeight, 0, 1),
			Doc: "of dispersion against used capacity, 0 to 1",
		},
		{
			Name: cluster.SettingCapacityType, Default: cluster.CapacityCPU,
			Words: []string{cluster.CapacityCPU, cluster.CapacityRAM, cluster.CapacityCombined},
			Doc:   "which used share orders clusters: cpu, ram or combined, half of each",
		},
		{
			Name: cluster.SettingSpecialLabels, Default: cluster.DefaultSpecialLabels, check: labelList(cluster.SettingSpecialLabels),
			Doc: "labels of nodes that few VMs need, with commas between, or none: clusters with such nodes come last for VMs without these labels",
		},
		capacityThreshold("used share of CPU or RAM above which planners leave a cluster out, 0 for never", figure(cluster.DefaultCapacityThreshold)),
	},
}

// podForm is what clusters are in.
var podForm = Form{
	Kind: cluster.KindPod, Plural: "pods", Doc: "clusters that fail together, a rack or a row of them",
	Links: []Link{{Name: LinkZone, To: cluster.KindZone, Required: true, Doc: "where it stands"}},
}

// poolForm is a storage pool that libvirt has on the nodes of a cluster.
var poolForm = Form{
	Kind: cluster.KindPool, Plural: "pools", Doc: "a storage pool of libvirt on the nodes of a cluster, that volumes are made in",
	Links: []Link{{Name: LinkCluster, To: cluster.KindCluster, Required: true, Fixed: true, Doc: "whose nodes have it"}},
	Settings: []Setting{
		{
			Name: cluster.SettingScope, Required: true, Fixed: true, Words: []string{string(cluster.PoolShared), string(cluster.PoolLocal)},
			Doc: "shared: all nodes see the same volumes; or local: each node has its own",
		},
		{Name: cluster.SettingPoolSource, Fixed: true, Doc: "libvirt's name of it on the nodes; its own name if left out", check: word64(cluster.SettingPoolSource)},
		{
			Name: cluster.SettingOverProvisioning, Default: figure(cluster.DefaultOverProvisioning),
			Doc:   fmt.Sprintf("how many times its capacity is promised, 1 to %g", cluster.MaxOverProvisioning),
			check: number(cluster.SettingOverProvisioning, 1, cluster.MaxOverProvisioning),
		},
	},
}

// diskForm is a disk of one of two shapes: a file that is there, or a volume that the first start makes.
var diskForm = Form{
	Kind: cluster.KindDisk, Plural: "disks", Doc: "a disk, attached to a VM by the VM: a file with path and format, or a volume with a size or an image",
	Links: []Link{
		offer(cluster.KindDisk),
		{Name: LinkImage, To: cluster.KindImage, Fixed: true, Doc: "imported image that its volume is a thin copy of; left out: it is empty"},
		{Name: LinkPool, To: cluster.KindPool, Fixed: true, Doc: "the only pool that its volume may be made in; any of the cluster if left out"},
	},
	Settings: []Setting{
		{Name: SettingPath, Doc: "file on the nodes", check: absolute(SettingPath)},
		{Name: SettingFormat, Doc: "raw or qcow2, of the file", Words: []string{"raw", "qcow2"}},
		{Name: SettingSize, Doc: "of its volume; as large as its image if left out", Bytes: true, check: size(SettingSize, cluster.MinVolume, cluster.MaxVolume)},
		{Name: SettingKeep, Doc: "true: its volume stays when its VM is deleted", Default: "false", Words: truth},
		{Name: SettingBus, Doc: "virtio, sata or scsi", Default: defaultBus, Words: []string{"virtio", "sata", "scsi"}},
	},
}

func capacityThreshold(doc, byDefault string) Setting {
	return Setting{
		Name: cluster.SettingCapacityLimit, Doc: doc, Default: byDefault,
		check: number(cluster.SettingCapacityLimit, 0, cluster.MaxCapacityThreshold),
	}
}

// word64 is a name that libvirt has.
func word64(field string) func(string) (string, error) {
	return func(value string) (string, error) {
		if cluster.ValidateName(field, value) != nil {
			return "", refuse(field, value, "1 to 64 letters, digits, dots, underscores or dashes, the first one a letter or a digit")
		}
		return value, nil
	}
}

// labelList reads labels with commas between.
func labelList(field string) func(string) (string, error) {
	return func(value string) (string, error) {
		labels := strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
		slices.Sort(labels)
		labels = slices.Compact(labels)
		if len(labels) == 0 {
			return "", refuse(field, value, "labels of nodes with commas between, or "+cluster.NoLabels)
		}
		for _, label := range labels {
			if cluster.ValidateLabel(label) != nil {
				return "", refuse(field, value, "labels of nodes with commas between, or "+cluster.NoLabels)
			}
		}
		return strings.Join(labels, ","), nil
	}
}
