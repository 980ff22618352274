package estate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"berth/coordinator/document"
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/across"
	"berth/coordinator/schema"
	"berth/coordinator/view"
	"berth/shared/units"
)

const land = `format: berth/estate/v1
zones: [{name: fra, planner: user-dispersing, apply_planner_heuristics_to: pod, capacity_threshold: 0.9}]
pods: [{name: p1, zone: fra}, {name: p2, zone: fra}, {name: bare, zone: fra}]
clusters: [{name: c1, pod: p1}, {name: c2, pod: p1, capacity_threshold: 0.5}, {name: c3, pod: p2}]
pools:
  - {name: fast, cluster: c1, scope: local, source: vms}
  - {name: all, cluster: c1, scope: shared}
  - {name: far, cluster: c3, scope: shared}
offers: [{name: apart, for: vm, planner: user-dispersing}]
customers: [{name: acme}]
vdcs: [{name: wide, customer: acme, zone: fra}, {name: home, customer: acme}]
disks: [{name: d, size: 20G, pool: fast}, {name: e, size: 1G}]
vms:
  - {name: a, vdc: wide, memory: 1G, vcpus: 1, disks: [e], user_data: x}
  - {name: b, pod: p1, offer: apart, memory: 1G, vcpus: 1, disks: [d]}
  - {name: c, memory: 1G, vcpus: 1}
`

// landState has a node in each cluster.
func landState(t *testing.T) State {
	now := State{}
	for _, name := range []string{"c1", "c2", "c3"} {
		now.Nodes = append(now.Nodes, model.Node{ID: "n-" + name, Name: "hv-" + name, Cluster: model.DefaultCluster})
	}
	now = carriedOut(t, now, land, false)
	for i, name := range []string{"c1", "c2", "c3"} {
		now.Nodes[i].Cluster = name
	}
	return now
}

func searched(t *testing.T, now *State, name string, change func(*model.VM)) across.Search {
	t.Helper()
	vm, _ := now.VM(name)
	if change != nil {
		change(&vm)
	}
	search, _, err := SearchOf(Indexed(now), view.New(epoch, 1, view.Records{}, nil), vm, placement.ForStart)
	if err != nil {
		t.Fatal(err)
	}
	return search
}

func told(search across.Search) string {
	var options []string
	for _, o := range search.Options {
		options = append(options, fmt.Sprintf("%s/%s<%g", o.Pod, o.Cluster, o.Threshold))
	}
	return strings.Join(options, " ") + " by " + search.Planner + " at " + search.Level + " last " + search.LastNode +
		" bound: " + search.Bound
}

func TestSearchOf(t *testing.T) {
	now := landState(t)
	disk, _ := now.ResourceByName(model.KindDisk, "e")
	far, _ := now.ResourceByName(model.KindPool, "far")
	made := now.withResource(func() model.Resource {
		disk.Volume = &model.Volume{Pool: far.ID, Name: "berth-e.qcow2", Format: "qcow2", Capacity: units.GiB}
		return disk
	}())
	for _, c := range []struct {
		now    *State
		vm     string
		change func(*model.VM)
		want   string
	}{
		{&now, "a", nil, "p1/c1<0.9 p1/c2<0.5 p2/c3<0.9 by user-dispersing at pod last  bound: "},
		{&now, "a", func(vm *model.VM) { vm.LastNode = "n-c2" }, "p1/c1<0.9 p1/c2<0.5 p2/c3<0.9 by user-dispersing at pod last n-c2 bound: "},
		{&made, "a", nil, "p2/c3<0.9 by user-dispersing at pod last  bound: its disk e is in pool/far in cluster c3"},
		{&now, "b", nil, "p1/c1<0.9 by user-dispersing at pod last  bound: its disk d is to be made in pool/fast in cluster c1"},
		{&now, "c", func(vm *model.VM) { vm.LastNode = "n-c2" }, "/default<0 by first-fit at cluster last  bound: "},
	} {
		if got := told(searched(t, c.now, c.vm, c.change)); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.vm, got, c.want)
		}
	}
}

func TestVolumesOfAStart(t *testing.T) {
	now := landState(t)
	vm, _ := now.VM("a")
	pool, _ := now.ResourceByName(model.KindPool, "fast")
	disk, _ := now.ResourceByName(model.KindDisk, "e")
	if _, err := SpecOf(&now, vm); !errors.Is(err, ErrNoVolume) {
		t.Errorf("a VM whose disk is not made is started (%v)", err)
	}
	choice := []placement.PoolChoice{{Disk: disk.ID, Pool: pool.ID, PoolName: pool.Name}}
	toMake, there, err := VolumesOf(&now, vm, choice)
	if err != nil || len(there) != 0 || len(toMake) != 2 {
		t.Fatalf("made %+v, there %+v (%v)", toMake, there, err)
	}
	if one := toMake[0]; one.PoolName != "vms" || one.Shared || one.Capacity != units.GiB ||
		one.Name != model.VolumeName(disk.ID, "qcow2") || one.Disk != disk.ID {
		t.Errorf("the disk is made as %+v", one)
	}
	if seed := toMake[1]; seed.Disk != "" || seed.PoolName != "vms" || seed.Name != model.VolumeName(vm.ID+"-seed", "iso") {
		t.Errorf("the seed is made as %+v", seed)
	}
	spec, err := SpecIn(&now, vm, choice)
	if err != nil || len(spec.Disks) != 1 || spec.Disks[0].Pool != "vms" || spec.Disks[0].Volume != toMake[0].Name ||
		spec.Disks[0].Path != "" {
		t.Errorf("it is made of %+v (%v)", spec.Disks, err)
	}
	if toMake, there, err := VolumesOf(&now, vm, nil); err != nil || len(toMake)+len(there) != 0 {
		t.Errorf("without a pool %+v are made and %+v there (%v)", toMake, there, err)
	}
	disk.Volume = &model.Volume{Pool: pool.ID, Nodes: []string{"n-c1"}, Name: toMake[0].Name, Format: "qcow2", Capacity: 2 * units.GiB}
	now = now.withResource(disk)
	toMake, there, err = VolumesOf(&now, vm, nil)
	if err != nil || len(toMake) != 1 || len(there) != 2 || there[0].Capacity != 2*units.GiB {
		t.Errorf("of a made disk %+v are made and %+v there (%v)", toMake, there, err)
	}
}

// An image in several pools is copied from where placement says, and a disk that is made needs the place that it is a copy of.
func TestADiskIsACopyOfOnePlaceOfItsImage(t *testing.T) {
	now := landState(t)
	vm, _ := now.VM("a")
	id := func(name string) string {
		pool, _ := now.ResourceByName(model.KindPool, name)
		return pool.ID
	}
	image := model.Resource{ID: "i", Kind: model.KindImage, Name: "debian", Volume: &model.Volume{
		Pool: id("far"), Name: "berth-i.raw", Format: "raw", Capacity: units.GiB,
	}}
	for name, doomed := range map[string]bool{"fast": false, "all": true} {
		image.Copies = append(image.Copies, model.Volume{
			Pool: id(name), Nodes: []string{"n-c1"}, Name: "berth-i-" + name + ".raw", Format: "raw", Capacity: units.GiB, Doomed: doomed,
		})
	}
	slices.SortFunc(image.Copies, func(a, b model.Volume) int { return strings.Compare(b.Name, a.Name) }) // fast is the first
	now.Resources = append(now.Resources, image)
	disk, _ := now.ResourceByName(model.KindDisk, "e")
	disk.Links = map[string]string{schema.LinkImage: "i"}
	now = now.withResource(disk)

	asked := func() placement.Disk {
		t.Helper()
		disks := searched(t, &now, "a", nil).Options[0].Request.Disks
		if len(disks) != 1 {
			t.Fatalf("it asks for %+v", disks)
		}
		return disks[0]
	}
	if one := asked(); one.ImagePool != id("far") || len(one.ImagePlaces) != 1 || one.ImagePlaces[0].Pool != id("fast") || !slices.Equal(
		one.ImagePlaces[0].Nodes, []string{"n-c1"},
	) {
		t.Errorf("it asks for %+v", one)
	}
	choice := placement.PoolChoice{Disk: disk.ID, Pool: id("all"), PoolName: "all", ImagePool: id("fast")}
	toMake, _, err := VolumesOf(&now, vm, []placement.PoolChoice{choice})
	if err != nil || toMake[0].BackingPool != "vms" || toMake[0].BackingName != "berth-i-fast.raw" || toMake[0].BackedIn != id("fast") {
		t.Errorf("it is made as %+v (%v)", toMake, err)
	}
	choice.ImagePool = ""
	toMake, _, err = VolumesOf(&now, vm, []placement.PoolChoice{choice})
	if err != nil || toMake[0].BackingPool != "far" || toMake[0].BackingName != "berth-i.raw" || toMake[0].BackedIn != "" {
		t.Errorf("by an earlier decision it is made as %+v (%v)", toMake, err)
	}
	choice.ImagePool = id("all")
	if _, _, err = VolumesOf(&now, vm, []placement.PoolChoice{choice}); !errors.Is(err, ErrNoVolume) {
		t.Errorf("of half an image: %v", err)
	}

	disk.Volume = &model.Volume{Pool: id("all"), Name: "berth-e.qcow2", Format: "qcow2", Capacity: units.GiB, Backing: id("fast")}
	now = now.withResource(disk)
	if one := asked(); one.ImagePool != id("fast") || len(one.ImagePlaces) != 0 {
		t.Errorf("once it is made it asks for %+v", one)
	}
	if used := InUse(now, model.KindPool, id("fast")); !slices.Contains(used, "image/debian") {
		t.Errorf("the pool of a copy is used by %v", used)
	}
	// A disk goes where a whole place of its image is.
	for pool, want := range map[string]string{
		"far": "", "fast": "", "there": "pool/there is in another cluster than pool/far with image/debian",
	} {
		doc, problems := document.Parse(
			"land",
			[]byte(
				"format: berth/estate/v1\npools: [{name: there, cluster: c2, scope: local}]\ndisks: [{name: x, image: debian, pool: "+pool+"}]\n",
			),
		)
		if doc != nil {
			_, problems = Diff(now, doc, false)
		}
		if got := lines(problems); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("a disk in %s: got %q, want %q", pool, got, want)
		}
	}
}

// What a document says of places and disks that cannot be is refused, with what to do.
func TestPlacesAndDisksThatCannotBe(t *testing.T) {
	for declared, want := range map[string]string{
		"vdcs: [{name: wide, customer: acme, zone: fra, pod: p1}]":       "it names a pod and a zone",
		"offers: [{name: d, for: disk, planner: first-fit}]":             "only VMs are placed",
		"offers: [{name: apart, for: vm}]":                               "an offer keeps the planner that it was created with",
		"offers: [{name: new, for: vm, planner: best}]":                  "want first-fit, user-dispersing or user-concentrated",
		"pods: [{name: lost}]":                                           "without a zone",
		"pools: [{name: twice, cluster: c1, scope: local, source: vms}]": "pool/fast is libvirt's pool vms of the cluster already",
		"pools: [{name: fast, cluster: c1, scope: shared, source: vms}]": "scope cannot change from local to shared",
		"disks: [{name: x, path: /a, format: raw, size: 1G}]":            "a path says that it is a file",
		"disks: [{name: x, path: /a}]":                                   "path and format say together what its file is",
		"disks: [{name: x}]":                                             "neither a file nor a volume",
		"images: [{name: i}]\ndisks: [{name: x, image: i}]":              "image/i has not been imported",
		"vms: [{name: x, pod: bare, memory: 1G, vcpus: 1}]":              "pod/bare has no clusters",
		"vms: [{name: x, vdc: home, pod: p1, memory: 1G, vcpus: 1}]":     "vm/x names pod/p1, but vdc/home names no other cluster",
		"vms: [{name: x, zone: fra, pod: p1, memory: 1G, vcpus: 1}]":     "it names a pod and a zone",
		"vms: [{name: x, memory: 1G, vcpus: 1, user_data: y}]":           "cloud-init needs a disk in a storage pool",
		"vms: [{name: x, memory: 1G, vcpus: 1, firmware: uefi}]":         "want bios or efi",
		"disks: [{name: f, size: 1G, pool: far}]\n" +
			"vms: [{name: x, pod: p1, memory: 1G, vcpus: 1, disks: [f]}]": "pool/far of its disk f is in cluster c3",
	} {
		doc, problems := document.Parse("land", []byte("format: berth/estate/v1\n"+declared+"\n"))
		if doc != nil {
			_, problems = Diff(landState(t), doc, false)
		}
		if !strings.Contains(lines(problems), want) {
			t.Errorf("%s: got %q, want %q", declared, lines(problems), want)
		}
	}
}

// Edits neither take a volume away nor make it larger, and a node with a volume stays in its cluster.
func TestVolumesAndEdits(t *testing.T) {
	now := landState(t)
	disk, _ := now.ResourceByName(model.KindDisk, "d")
	pool, _ := now.ResourceByName(model.KindPool, "fast")
	disk.Volume = &model.Volume{Pool: pool.ID, Nodes: []string{"n-c1"}, Name: "berth-d.qcow2", Format: "qcow2", Capacity: 20 * units.GiB}
	now = now.withResource(disk)
	refused := func(what string, err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	_, err := Edit(now, disk, Wanted{Settings: map[string]string{schema.SettingSize: "30G"}})
	refused("a larger size", err, "use 'berth disk grow d SIZE'")
	_, err = Edit(now, disk, Wanted{Unset: []string{schema.LinkPool}})
	refused("another pool", err, "its pool cannot change once the disk is there")
	node, _ := now.Node("n-c1")
	node.Cluster = "c2"
	refused("a node with a volume", EditNode(now, node), "it cannot move from cluster c1 to c2 with VMs or volumes: disk/d")
	doc := read(t, strings.Replace(strings.Replace(land, "{name: d, size: 20G, pool: fast}, ", "", 1), "disks: [d]", "disks: []", 1))
	if _, problems := Diff(now, doc, true); !strings.Contains(lines(problems), "disk/d: its content is in a storage pool") {
		t.Errorf("a disk that is pruned: %s", lines(problems))
	}
	if used := InUse(now, model.KindPool, pool.ID); strings.Join(used, " ") != "disk/d" {
		t.Errorf("the pool is used by %v", used)
	}
}
