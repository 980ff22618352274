package placement

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"berth/coordinator/model"
	"berth/shared/units"
)

// addPool declares a pool, and puts it on nodes as NODE:CAPACITY:AVAILABLE.
func (s *scenario) addPool(name string, w words) {
	s.pools = append(s.pools, model.Resource{
		ID: "id-" + name, Kind: model.KindPool, Name: name,
		Settings: map[string]string{model.SettingScope: w.text("scope"), model.SettingOverProvisioning: w.text("over")},
	})
	for _, text := range slices.Concat(w.named["node"], w.named["inactive"]) {
		parts := strings.Split(text, ":")
		facts, known := s.facts[parts[0]]
		if !known || len(parts) != 3 {
			w.t.Fatalf("%s: %s: want NODE:CAPACITY:AVAILABLE of a node above", w.line, text)
		}
		facts.Pools = append(facts.Pools, model.PoolFacts{
			Name: name, Active: slices.Contains(w.named["node"], text), Capacity: w.parsed(parts[1]), Available: w.parsed(parts[2]),
		})
		s.facts[parts[0]] = facts
	}
}

// addVolume puts a disk of a VM into a pool.
func (s *scenario) addVolume(name string, w words) {
	s.disks = append(s.disks, model.Resource{
		ID: "id-" + name, Kind: model.KindDisk, Name: name,
		Volume: &model.Volume{Pool: "id-" + w.text("pool"), Nodes: w.named["node"], Name: name, Capacity: w.size("size")},
	})
	for i := range s.vms {
		if s.vms[i].ID == w.text("of") {
			s.vms[i].Disks = append(s.vms[i].Disks, "id-"+name)
		}
	}
}

func (w words) parsed(text string) units.Bytes {
	size, err := units.ParseBytes(text)
	if err != nil {
		w.t.Fatalf("%s: %v", w.line, err)
	}
	return size
}

// knowAround reads what a node has around its VMs.
func knowAround(facts *model.NodeFacts, w words) {
	facts.PoolsKnown, facts.NetworksKnown = !w.has("no-pools"), !w.has("no-networks")
	facts.Networks, facts.Bridges = w.named["network"], w.named["bridge"]
	facts.CPUModels, facts.HostCPU = w.named["cpu_model"], w.text("host_cpu")
}

// askAround reads what a request needs of that: disk=NAME:SIZE[:POOL], made=NAME:SIZE:POOL[:NODE], image=POOL[:NODE] of all
// disks, and further=POOL[:NODE] where that is besides.
func (r *Request) askAround(w words) {
	r.Planner, r.Networks, r.CopyStorage = w.text("planner"), w.named["network"], w.has("copy")
	r.CPU, r.PassedCPU, r.Last = w.text("cpu"), w.text("passed_cpu"), w.text("last")
	r.HA, r.Restart, r.Bindings = r.HA || w.has("ha"), w.has("restart"), nil
	for _, text := range w.named["binding"] {
		r.Bindings = append(r.Bindings, strings.ReplaceAll(text, "_", " "))
	}
	r.Apart = nil
	for _, text := range w.named["apart"] {
		node, why, _ := strings.Cut(text, ":")
		r.Apart = append(r.Apart, Apart{Node: node, Why: strings.ReplaceAll(why, "_", " ")})
	}
	for _, text := range w.named["disk"] {
		parts := append(strings.Split(text, ":"), "")
		disk := Disk{ID: "id-" + parts[0], Name: parts[0], Size: w.parsed(parts[1])}
		if parts[2] != "" {
			disk.Wanted = "id-" + parts[2]
		}
		r.Disks = append(r.Disks, disk)
	}
	for _, text := range w.named["made"] {
		parts := append(strings.Split(text, ":"), "")
		r.Disks = append(r.Disks, Disk{ID: "id-" + parts[0], Name: parts[0], Size: w.parsed(parts[1]), Pool: "id-" + parts[2], Node: parts[3]})
	}
	if w.has("image") {
		pool, node, local := strings.Cut(w.text("image"), ":")
		for i := range r.Disks {
			r.Disks[i].Image, r.Disks[i].ImagePool = "debian", "id-"+pool
			if local {
				r.Disks[i].ImageNodes = []string{node}
			}
			for _, text := range w.named["further"] {
				r.Disks[i].ImagePlaces = append(r.Disks[i].ImagePlaces, placeOf(text))
			}
		}
	}
}

func placeOf(text string) ImagePlace {
	pool, node, local := strings.Cut(text, ":")
	place := ImagePlace{Pool: "id-" + pool}
	if local {
		place.Nodes = []string{node}
	}
	return place
}

// poolsText says where the disks go.
func poolsText(d *Decision) string {
	text := ""
	for _, choice := range d.Pools {
		text += fmt.Sprintf("disk %s goes to pool %s", strings.TrimPrefix(choice.Disk, "id-"), choice.PoolName)
		if choice.ImagePool != "" {
			text += " as a copy of the image in pool " + strings.TrimPrefix(choice.ImagePool, "id-")
		}
		text += "\n"
	}
	return text
}

// drawAround gives some of the scenarios pools, networks, CPUs and planners, and their requests needs of them.
func drawAround(t *rapid.T, s *scenario, request *Request) {
	if rapid.IntRange(0, 2).Draw(t, "around") > 0 {
		return
	}
	ids := make([]string, 0, len(s.nodes))
	scopes := rapid.SampledFrom([]string{"shared", "local"})
	pools := []string{"p0", "p1", "p2"}[:rapid.IntRange(0, 3).Draw(t, "pools")]
	for _, id := range pools {
		s.pools = append(s.pools, model.Resource{
			ID: id, Kind: model.KindPool, Name: "pool-" + id, Settings: map[string]string{model.SettingScope: scopes.Draw(t, "scope")},
		})
	}
	gib := func(label string, most int) units.Bytes {
		return units.Bytes(rapid.IntRange(0, most).Draw(t, label)) * units.GiB
	}
	mostly := func(label string) bool { return rapid.IntRange(0, 7).Draw(t, label) > 0 }
	models := rapid.SampledFrom([][]string{{"Haswell"}, {"Haswell", "Penryn"}, nil})
	for i := range s.nodes {
		id := s.nodes[i].ID
		ids = append(ids, id)
		facts := s.facts[id]
		for _, pool := range pools {
			if mostly("has pool") {
				facts.Pools = append(facts.Pools, model.PoolFacts{
					Name: "pool-" + pool, Active: mostly("active"), Capacity: gib("capacity", 40), Available: gib("available", 2),
				})
			}
		}
		facts.PoolsKnown, facts.NetworksKnown = mostly("pools known"), mostly("networks known")
		facts.Networks, facts.Bridges = rapid.SampledFrom([][]string{{"lan"}, {"lan", "san"}, nil}).Draw(t, "networks"), []string{"br0"}
		facts.CPUModels, facts.HostCPU = models.Draw(t, "models"), rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "host CPU")
		s.facts[id] = facts
	}
	some := rapid.SampledFrom(append([]string{""}, ids...))
	for _, node := range ids {
		if !mostly("apart") {
			request.Apart = append(request.Apart, Apart{Node: node, Why: "it is another pool there"})
		}
	}
	pool := rapid.SampledFrom(append([]string{"", "gone"}, pools...))
	for i := range rapid.IntRange(0, 4).Draw(t, "disks") {
		disk := Disk{ID: fmt.Sprint("d", i), Name: fmt.Sprint("disk", i), Size: gib("disk size", 20), Wanted: pool.Draw(t, "wanted")}
		if rapid.Bool().Draw(t, "made") {
			disk.Wanted, disk.Pool, disk.Node = "", pool.Draw(t, "pool"), some.Draw(t, "node")
		}
		disk.ImagePool = pool.Draw(t, "image pool")
		if node := some.Draw(t, "image node"); node != "" {
			disk.ImageNodes = []string{node}
		}
		for range rapid.IntRange(0, 2).Draw(t, "further places") {
			place := ImagePlace{Pool: pool.Draw(t, "further pool")}
			if node := some.Draw(t, "further node"); node != "" {
				place.Nodes = []string{node}
			}
			disk.ImagePlaces = append(disk.ImagePlaces, place)
		}
		request.Disks = append(request.Disks, disk)
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "volumes") {
		s.disks = append(s.disks, model.Resource{
			ID: fmt.Sprint("v", i), Kind: model.KindDisk, Name: fmt.Sprint("volume", i),
			Volume: &model.Volume{Pool: pool.Draw(t, "volume pool"), Nodes: []string{some.Draw(t, "volume node")}, Capacity: gib("volume size", 10)},
		})
		if len(s.vms) > 0 {
			s.vms[i%len(s.vms)].Disks = append(s.vms[i%len(s.vms)].Disks, fmt.Sprint("v", i))
		}
	}
	request.CopyStorage = rapid.Bool().Draw(t, "copy")
	request.Networks = rapid.SampledFrom([][]string{nil, {"lan"}, {"bridge:br0", "lan"}, {"san"}}).Draw(t, "needs networks")
	request.CPU = rapid.SampledFrom([]string{"", "Haswell", "Penryn", model.CPUHostPassthrough}).Draw(t, "needs CPU")
	request.PassedCPU = rapid.SampledFrom([]string{"", "", "x"}).Draw(t, "passed CPU")
	request.Planner = rapid.SampledFrom([]string{"", "first-fit", "user-dispersing", "user-concentrated"}).Draw(t, "planner")
	request.Last = some.Draw(t, "last")
}
