package schema

import (
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/model"
)

// zoneForm is what pods are in, with how planners put its pods and clusters in order.
var zoneForm = Form{
	Kind: model.KindZone, Plural: "zones", Doc: "pods, with how planners put them and their clusters in order",
	Settings: []Setting{
		{
			Name: model.SettingPlanner, Doc: "of offers that name none: " + AnyOf(Planners()), Default: model.DefaultPlanner,
			Words: Planners(), aliases: plannerAliases,
		},
		{
			Name: model.SettingHeuristicsTo, Default: model.LevelCluster, Words: []string{model.LevelPod, model.LevelCluster},
			Doc: "where planners put things in order: pod, and then the clusters inside each pod; or cluster, whatever its pod",
		},
		{
			Name: model.SettingDispersionWeight, Default: "1", check: number(model.SettingDispersionWeight, 0, 1),
			Doc: "of dispersion against used capacity, 0 to 1",
		},
		{
			Name: model.SettingCapacityType, Default: model.CapacityCPU,
			Words: []string{model.CapacityCPU, model.CapacityRAM, model.CapacityCombined},
			Doc:   "which used share orders clusters: cpu, ram or combined, of both by cpu_to_memory_weight",
		},
		{
			Name: model.SettingCPUWeight, Default: Figure(model.DefaultCPUWeight), check: number(model.SettingCPUWeight, 0, 1),
			Doc: "of CPU against memory in the capacity type combined, 0 to 1",
		},
		{
			Name: model.SettingSpecialLabels, Default: model.DefaultSpecialLabels, check: labelList(model.SettingSpecialLabels),
			Doc: "labels of nodes that few VMs need, with commas between, or none: clusters with such nodes come last for VMs without these labels",
		},
		capacityThreshold(
			"used share of CPU or RAM above which planners leave a cluster out, 0 for never", Figure(model.DefaultCapacityThreshold),
		),
	},
}

// podForm is what clusters are in.
var podForm = Form{
	Kind: model.KindPod, Plural: "pods", Doc: "clusters that fail together, a rack or a row of them",
	Links: []Link{{Name: LinkZone, To: model.KindZone, Required: true, Doc: "where it stands"}},
}

// poolForm is a storage pool that libvirt has on the nodes of a cluster.
var poolForm = Form{
	Kind: model.KindPool, Plural: "pools", Doc: "a storage pool of libvirt on the nodes of a cluster, that volumes are made in",
	Links: []Link{{Name: LinkCluster, To: model.KindCluster, Required: true, Fixed: true, Doc: "whose nodes have it"}},
	Settings: []Setting{
		{
			Name: model.SettingScope, Required: true, Fixed: true, Words: []string{string(model.PoolShared), string(model.PoolLocal)},
			Doc: "shared: all nodes see the same volumes; or local: each node has its own",
		},
		{
			Name: model.SettingPoolSource, Fixed: true, Doc: "libvirt's name of it on the nodes; its own name if left out",
			check: word64(model.SettingPoolSource),
		},
		{
			Name: model.SettingOverProvisioning, Default: Figure(model.DefaultOverProvisioning),
			Doc:   fmt.Sprintf("how many times its capacity is promised, 1 to %g", model.MaxOverProvisioning),
			check: number(model.SettingOverProvisioning, 1, model.MaxOverProvisioning),
		},
		{
			Name: model.SettingHAWithoutLock, Default: "false", Words: truth,
			Doc: "true: VMs with ha may have disks there although a lock of a file does not reach all nodes",
		},
	},
}

// diskForm is a disk of one of two shapes: a file that is there, or a volume that the first start makes.
var diskForm = Form{
	Kind: model.KindDisk, Plural: "disks", Doc: "a disk, attached to a VM by the VM: a file with path and format, " +
		"or a volume with a size or an image",
	Links: []Link{
		offer(model.KindDisk),
		{Name: LinkImage, To: model.KindImage, Fixed: true, Doc: "imported image that its volume is a thin copy of; left out: it is empty"},
		{Name: LinkPool, To: model.KindPool, Fixed: true, Doc: "the only pool that its volume may be made in; any of the cluster if left out"},
	},
	Settings: []Setting{
		{Name: SettingPath, Doc: "file on the nodes", check: absolute(SettingPath)},
		{Name: SettingFormat, Doc: "raw or qcow2, of the file", Words: []string{"raw", "qcow2"}},
		{
			Name: SettingSize, Doc: "of its volume; as large as its image if left out", Bytes: true,
			check: size(SettingSize, model.MinVolume, model.MaxVolume),
		},
		{Name: SettingKeep, Doc: "true: its volume stays when its VM is deleted", Default: "false", Words: truth},
		{Name: SettingBus, Doc: "virtio, sata or scsi", Default: DefaultBus, Words: []string{"virtio", "sata", "scsi"}},
	},
}

func capacityThreshold(doc, byDefault string) Setting {
	return Setting{
		Name: model.SettingCapacityLimit, Doc: doc, Default: byDefault,
		check: number(model.SettingCapacityLimit, 0, model.MaxCapacityThreshold),
	}
}

// word64 is a name that libvirt has.
func word64(field string) func(string) (string, error) {
	return func(value string) (string, error) {
		if model.ValidateName(field, value) != nil {
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
			return "", refuse(field, value, "labels of nodes with commas between, or "+model.NoLabels)
		}
		for _, label := range labels {
			if model.ValidateLabel(label) != nil {
				return "", refuse(field, value, "labels of nodes with commas between, or "+model.NoLabels)
			}
		}
		return strings.Join(labels, ","), nil
	}
}
