package admission

import (
	"slices"
	"testing"

	"berth/coordinator/model"
	"berth/coordinator/schema"
	"berth/shared/domxml/guard"
)

// site is the records of a site with nodes n1 and n2 in the default cluster.
type site struct {
	guarded string
	all     []model.Resource
}

func (s site) Resource(id string) (model.Resource, bool) {
	at := slices.IndexFunc(s.all, func(r model.Resource) bool { return r.ID == id })
	if at < 0 {
		return model.Resource{}, false
	}
	return s.all[at], true
}

func (s site) Resources(kind model.Kind) (found []model.Resource) {
	for _, one := range s.all {
		if one.Kind == kind {
			found = append(found, one)
		}
	}
	return found
}

func (site) Nodes() []model.Node {
	return []model.Node{{ID: "n1", Cluster: model.DefaultCluster}, {ID: "n2", Cluster: model.DefaultCluster}}
}

func (s site) Meta(string) string { return s.guarded }

// clusters are named default and east, and permit that; empty: they do not say what.
func clusters(guarded string, permits ...string) site {
	s := site{guarded: guarded}
	for i, permit := range permits {
		name := []string{model.DefaultCluster, "east"}[i]
		r := model.Resource{Kind: model.KindCluster, ID: name, Name: name, Settings: map[string]string{}}
		if permit != "" {
			r.Settings[model.SettingPermit] = permit
		}
		s.all = append(s.all, r)
	}
	return s
}

func TestWhatIsPermittedIsSaidByTheCluster(t *testing.T) {
	nobody := func(string) model.NodeFacts { return model.NodeFacts{} }
	paths := []guard.Permission{guard.HostPaths}
	for name, c := range map[string]struct {
		records site
		cluster string
		want    []guard.Permission
	}{
		"a new site":                     {clusters("yes"), model.DefaultCluster, nil},
		"one of an earlier release":      {clusters(""), model.DefaultCluster, guard.Permissions()},
		"one that has said what":         {clusters("", "host-paths"), model.DefaultCluster, paths},
		"one that has said nothing":      {clusters("", "none"), model.DefaultCluster, nil},
		"all":                            {clusters("yes", "all"), model.DefaultCluster, guard.Permissions()},
		"of any cluster, what all allow": {clusters("yes", "host-paths,unconfined", "host-paths"), "", paths},
		"another cluster's is not its":   {clusters("yes", "", "all"), model.DefaultCluster, nil},
		"a cluster that is not there":    {clusters("yes", "all"), "gone", nil},
	} {
		if got := Permitted(c.records, nobody, c.cluster).Permissions; !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestAFolderOfAPoolIsKnownIfAllNodesSayTheSame(t *testing.T) {
	records := site{guarded: "yes", all: []model.Resource{
		{Kind: model.KindPool, ID: "p", Name: "vms", Settings: map[string]string{schema.SettingSource: "vms", model.SettingScope: "shared"}},
		{Kind: model.KindNetwork, ID: "n", Name: "front", Settings: map[string]string{schema.SettingSource: "bridge:br0"}},
	}}
	says := map[string]string{"n1": "/srv/vms", "n2": "/srv/vms"}
	facts := func(node string) model.NodeFacts {
		return model.NodeFacts{PoolsKnown: true, Pools: []model.PoolFacts{{Name: "vms", Path: says[node]}}}
	}
	spec := model.VMSpec{
		Kernel: "/var/lib/libvirt/images/k", Disks: []model.Disk{{Path: "/srv/vms/a.raw"}, {Pool: "vms", Volume: "b"}},
		Networks: []string{"bridge:br0", "default"},
	}
	judge := func() []guard.Finding {
		found, err := Spec(&spec, Permitted(records, facts, model.DefaultCluster))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if found := judge(); len(found) > 0 {
		t.Errorf("all is declared: %v", found)
	}
	for _, lie := range []string{"/", "/srv", "/etc"} {
		says["n2"] = lie
		if found := judge(); len(found) != 1 || found[0].Permission != guard.HostPaths {
			t.Errorf("a node says %s: %v", lie, found)
		}
	}
	says["n1"], says["n2"] = "/etc", "/etc"
	spec.Disks[0].Path = "/etc/shadow"
	if found := judge(); len(found) != 1 {
		t.Errorf("a pool in /etc makes it known: %v", found)
	}
}

func TestAChangeAnswersForWhatIsNewInIt(t *testing.T) {
	one := "<hostdev mode='subsystem' type='pci'><source><address domain='0' bus='1' slot='0' function='0'/></source></hostdev>"
	other := "<hostdev mode='subsystem' type='pci'><source><address domain='0' bus='2' slot='0' function='0'/></source></hostdev>"
	judge := func(devices string) []guard.Finding {
		found, err := guard.JudgeDevices(devices, guard.Permitted{})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if found := New(judge(one), judge(one+"<memballoon model='none'/>")); len(found) > 0 {
		t.Errorf("what it had: %v", found)
	}
	if found := New(judge(one), judge(one+other)); len(found) != 1 {
		t.Errorf("another device of the same sort: %v", found)
	}
}

// An overlay beside a disk that the VM has is where libvirt puts it, and needs nothing.
func TestAnOverlayBesideADiskNeedsNothing(t *testing.T) {
	beside := []model.DiskSource{{Path: "/mnt/vms/a.qcow2"}, {Path: "/dev/sda"}}
	for path, needs := range map[string]int{"/mnt/vms/a.snap1": 0, "/mnt/other": 1, "/dev/sdb": 1, "/etc/shadow": 1} {
		element := "<disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='" + path + "'/><target dev='vda'/></disk>"
		if found, err := Device(element, beside, guard.Permitted{}); err != nil || len(found) != needs {
			t.Errorf("%s: %v %v", path, found, err)
		}
	}
}
