// Package admission tells what may be put onto the hosts of a cluster: which permissions are given there, and which places need none. It is
// pure: records and facts go in, and what needs a permission comes out.
package admission

import (
	"slices"
	"strings"

	"berth/coordinator/model"
	"berth/coordinator/schema"
	"berth/shared/domxml/guard"
)

// Records are where clusters, pools and networks are looked up.
type Records interface {
	Resource(id string) (model.Resource, bool)
	Resources(kind model.Kind) []model.Resource
	Nodes() []model.Node
	Meta(key string) string
}

// Facts are those of a node, by its ID.
type Facts func(node string) model.NodeFacts

// Permitted is what may be put onto the hosts of a cluster, by whoever may do that. Empty: of every cluster, so that what all of them
// permit is.
func Permitted(records Records, facts Facts, cluster string) guard.Permitted {
	var clusters []model.Resource
	for _, one := range clustersOf(records) {
		if cluster == "" || one.Name == cluster {
			clusters = append(clusters, one)
		}
	}
	if len(clusters) == 0 {
		return guard.Permitted{} // it is gone
	}
	permitted := guard.Permitted{Permissions: guard.Permissions()}
	var folders []string
	for i := range clusters {
		given := Permissions(records, &clusters[i])
		permitted.Permissions = slices.DeleteFunc(permitted.Permissions, func(p guard.Permission) bool { return !slices.Contains(given, p) })
		own := imageFolders(&clusters[i])
		if i == 0 {
			folders = own
		}
		folders = slices.DeleteFunc(folders, func(folder string) bool { return !slices.Contains(own, folder) })
	}
	permitted.Folders = folders
	for _, pool := range records.Resources(model.KindPool) {
		inside, _ := records.Resource(pool.Links[schema.LinkCluster])
		if name := nameOf(&inside); cluster != "" && name != cluster {
			continue
		}
		source := model.PoolSettingsOf(&pool).Source
		permitted.Pools = append(permitted.Pools, source)
		if folder := folderOf(records, facts, nameOf(&inside), source); folder != "" {
			permitted.Folders = append(permitted.Folders, folder)
		}
	}
	for _, network := range records.Resources(model.KindNetwork) {
		if bridge, is := strings.CutPrefix(network.Settings[schema.SettingSource], "bridge:"); is {
			permitted.Bridges = append(permitted.Bridges, bridge)
		}
	}
	return permitted
}

// clustersOf are all clusters. The default one is there until it is declared.
func clustersOf(records Records) []model.Resource {
	all := records.Resources(model.KindCluster)
	if !slices.ContainsFunc(all, func(r model.Resource) bool { return r.Name == model.DefaultCluster }) {
		all = append(all, model.DefaultClusterRecord())
	}
	return all
}

func nameOf(cluster *model.Resource) string {
	if cluster.Name == "" {
		return model.DefaultCluster
	}
	return cluster.Name
}

// Permissions are those that a cluster gives, by its record.
func Permissions(records Records, cluster *model.Resource) []guard.Permission {
	list, said := cluster.Settings[model.SettingPermit]
	if !said && records.Meta(model.MetaGuarded) == "" {
		return guard.Permissions()
	}
	given, _ := guard.Split(list)
	return given
}

// Unsaid are the clusters that permit everything because nobody has said what: an earlier release began the site.
func Unsaid(records Records) (names []string) {
	for _, one := range clustersOf(records) {
		if _, said := one.Settings[model.SettingPermit]; !said && records.Meta(model.MetaGuarded) == "" {
			names = append(names, one.Name)
		}
	}
	return names
}

func imageFolders(cluster *model.Resource) []string {
	list, said := cluster.Settings[model.SettingImageFolders]
	switch {
	case list == model.PermitNone:
		return nil
	case !said:
		list = model.DefaultImageFolders
	}
	return strings.Split(list, ",")
}

// folderOf is the folder of a pool, if all nodes that tell of it say the same: one node that lies cannot make a folder known that others
// have not. Empty: none is known.
func folderOf(records Records, facts Facts, cluster, pool string) (folder string) {
	for _, node := range records.Nodes() {
		if node.ClusterName() != cluster {
			continue
		}
		seen := facts(node.ID)
		for _, one := range seen.Pools {
			switch {
			case one.Name != pool || !seen.PoolsKnown:
			case folder != "" && folder != one.Path || one.Path == "":
				return ""
			default:
				folder = one.Path
			}
		}
	}
	return folder
}

// Spec lists what of a VM's own description needs a permission. What it links to was judged when that was declared.
func Spec(spec *model.VMSpec, permitted guard.Permitted) ([]guard.Finding, error) {
	if spec.XML != "" {
		return guard.Judge(spec.XML, permitted)
	}
	j := judge{permitted: &permitted}
	j.path("kernel", spec.Kernel)
	j.path("initrd", spec.Initrd)
	for _, disk := range spec.Disks {
		j.path("disk", disk.Path)
		if disk.Volume != "" && !permitted.Pool(disk.Pool) {
			j.add("disk", "volume "+disk.Volume+" of pool "+disk.Pool+", which is not declared", guard.HostPaths)
		}
	}
	for _, network := range spec.Networks {
		j.network("network", network)
	}
	return j.found, nil
}

// Resource lists what of a declared image, disk or network needs a permission.
func Resource(r *model.Resource, permitted guard.Permitted) []guard.Finding {
	j := judge{permitted: &permitted}
	switch r.Kind {
	case model.KindImage, model.KindDisk:
		j.path(schema.SettingPath, r.Settings[schema.SettingPath])
	case model.KindNetwork:
		j.network(schema.SettingSource, r.Settings[schema.SettingSource])
	}
	return j.found
}

// Device lists what of a disk or an interface needs a permission that somebody attaches, or has attached beside Berth. Beside is what the
// VM has by its record: an overlay that libvirt has made next to a disk of it is where that is.
func Device(element string, beside []model.DiskSource, permitted guard.Permitted) ([]guard.Finding, error) {
	for _, source := range beside {
		if at := strings.LastIndexByte(source.Path, '/'); at > 0 && !strings.HasPrefix(source.Path, "/dev/") {
			permitted.Folders = append(slices.Clone(permitted.Folders), source.Path[:at])
		}
	}
	return guard.JudgeDevices(element, permitted)
}

// New are the findings of a change that were not there before it.
func New(before, after []guard.Finding) []guard.Finding {
	return slices.DeleteFunc(slices.Clone(after), func(one guard.Finding) bool {
		return slices.ContainsFunc(before, func(old guard.Finding) bool { return old.Same(&one) })
	})
}

type judge struct {
	permitted *guard.Permitted
	found     []guard.Finding
}

func (j *judge) add(path, what string, permission guard.Permission) {
	if !slices.Contains(j.permitted.Permissions, permission) {
		j.found = append(j.found, guard.Finding{Path: path, What: what, Permission: permission})
	}
}

func (j *judge) path(field, path string) {
	if path != "" && !j.permitted.File(path) {
		j.add(field, "the file "+path+" outside of image folders and declared pools", guard.HostPaths)
	}
}

func (j *judge) network(field, network string) {
	if bridge, is := strings.CutPrefix(network, "bridge:"); is && !j.permitted.Bridge(bridge) {
		j.add(field, "the bridge "+bridge+", which is no declared network,", guard.HostNetwork)
	}
}
