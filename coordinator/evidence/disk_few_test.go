package evidence

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"berth/coordinator/model"
)

// declared is an estate with clusters.
type declared struct {
	*estate

	clusters []model.Resource
}

func (s *declared) Clusters() []model.Resource { return s.clusters }

// withDisk is the list that an inventory keeps.
func (s *estate) withDisk(name string) []string {
	var ids []string
	for _, node := range s.nodes {
		if slices.ContainsFunc(s.facts[node.ID].Domains, func(one model.Domain) bool {
			return slices.ContainsFunc(one.Sources, func(source model.DiskSource) bool { return source.FileName() == name })
		}) {
			ids = append(ids, node.ID)
		}
	}
	return ids
}

// someSource is one of few disks, as a file or as a volume: their names are often the same where they are not.
func someSource(random *rand.Rand) model.DiskSource {
	name := []string{"a.qcow2", "b.qcow2"}[random.IntN(2)]
	pool := []string{"vms", "fast"}[random.IntN(2)]
	if random.IntN(2) == 0 {
		return model.DiskSource{Pool: pool, Volume: name}
	}
	return model.DiskSource{Path: []string{"/srv/vms/", "/srv/fast/", "/srv/vms/../fast/", "/home/"}[random.IntN(4)] + name}
}

// anySite is a site on which anything may write to anything, and a VM that is to start there.
func anySite(random *rand.Rand) *declared {
	s := &declared{estate: running()}
	s.vm.Holder, s.vm.Operation = "", []string{"", "start"}[random.IntN(2)]
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	cluster := model.Resource{Kind: model.KindCluster, ID: "east", Name: "east", Settings: map[string]string{}}
	if random.IntN(2) == 0 {
		cluster.Settings[model.SettingStorage] = string(model.LocalStorage)
	}
	s.clusters = []model.Resource{cluster}
	s.resources = []model.Resource{cluster}
	for i, scope := range []model.PoolScope{model.PoolShared, ""} {
		pool := model.Resource{
			Kind: model.KindPool, ID: fmt.Sprint("p", i), Name: pick("vms", "fast"), Links: map[string]string{},
			Settings: map[string]string{model.SettingScope: string(scope)},
		}
		if random.IntN(2) == 0 {
			pool.Links[model.LinkCluster] = "east"
		}
		volume := &model.Volume{Pool: pool.ID, Name: pick("a.qcow2", "b.qcow2")}
		if scope == "" {
			volume.Nodes = []string{pick("n1", "n2", "gone")}
		}
		s.resources = append(s.resources, pool, model.Resource{Kind: model.KindDisk, ID: fmt.Sprint("d", i), Volume: volume})
	}
	for i := range s.nodes {
		s.nodes[i].Cluster = pick("", "east")
		s.change(s.nodes[i].ID, func(f *model.NodeFacts) {
			f.Domains, f.Pools = nil, []model.PoolFacts{{Name: "vms", Path: "/srv/vms"}, {Name: "fast", Path: pick("/srv/fast", "/home")}}
			for _, uuid := range []string{vmID, "other", "stray"} {
				if random.IntN(3) > 0 {
					continue
				}
				state := []model.DomainState{model.DomainRunning, model.DomainPaused, model.DomainShutoff}[random.IntN(3)]
				f.Domains = append(f.Domains, model.Domain{
					UUID: uuid, Name: uuid, State: state, Sources: []model.DiskSource{someSource(random), someSource(random)},
				})
			}
			slices.SortFunc(f.Domains, func(a, b model.Domain) int { return cmp.Compare(a.UUID, b.UUID) })
			f.Liveness = []model.Liveness{model.Up, model.Up, model.Up, model.Unreachable, model.Degraded}[random.IntN(5)]
			f.DomainsKnown = f.Liveness == model.Up
		})
		if random.IntN(8) == 0 {
			s.fenced(s.nodes[i].ID)
		}
	}
	s.vm.Disks, s.vm.Spec = [][]string{nil, {"d0"}, {"d1"}, {"d0", "d1"}}[random.IntN(4)], model.VMSpec{}
	for range random.IntN(3) {
		source := someSource(random)
		s.vm.Spec.Disks = append(s.vm.Spec.Disks, model.Disk{Path: source.Path, Pool: source.Pool, Volume: source.Volume})
	}
	s.others = []model.VM{{ID: "other", Name: "other", LastNode: pick("n1", "n2"), Holder: pick("", "n2"), StartedAt: s.at.Add(-time.Hour)}}
	return s
}

// Who asks only the nodes that show a disk of such a name finds the domain that a look at all nodes finds first, or none where that
// finds none.
func TestADiskInUseIsThatOfAllNodes(t *testing.T) {
	rounds, found, last := 20_000, 0, 0
	if testing.Short() {
		rounds /= 10
	}
	for seed := range rounds {
		random := rand.New(rand.NewPCG(uint64(seed), 18))
		s := anySite(random)
		moment := Moment{Records: s, At: s.at, Facts: func(node string) model.NodeFacts { return s.facts[node] }}
		all := s.proof.Survey(moment)
		moment.MayShow, moment.WithDisk = s.mayShow, s.withDisk
		some := s.proof.Survey(moment)
		target := []string{"", "n1", "n2", "n3", "gone"}[random.IntN(5)]
		want, used := all.UsedDisk(&s.vm, target)
		got, is := some.UsedDisk(&s.vm, target)
		if is != used || !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d, on %q: %t %+v, of all nodes %t %+v", seed, target, is, got, used, want)
		}
		if used {
			found++
		}
		if want.Last {
			last++
		}
	}
	if found < rounds/10 || rounds-found < rounds/10 || last < rounds/100 {
		t.Errorf("of %d starts %d find their disk in use, %d by what was shown last: all have to be seen", rounds, found, last)
	}
}

// large is an estate of many nodes with ten domains each, every domain with a disk of its own.
type large struct {
	*estate

	byID map[string]int
}

func (s *large) Node(id string) (model.Node, bool) {
	at, known := s.byID[id]
	if !known {
		return model.Node{}, false
	}
	return s.nodes[at], true
}

// What a start of a VM with a disk pays to know that nobody else writes to that.
func BenchmarkUsedDisk(b *testing.B) {
	for _, nodes := range []int{1000, 10_000} {
		s := &large{estate: running(), byID: map[string]int{}}
		s.nodes = nil
		kept := map[string][]string{}
		for n := range nodes {
			id := fmt.Sprintf("n%05d", n)
			s.byID[id] = n
			s.nodes = append(s.nodes, model.Node{ID: id, Name: id})
			facts := model.NodeFacts{Liveness: model.Up, HeardAt: s.at, Inventory: true, DomainsKnown: true}
			for d := range 10 {
				name := fmt.Sprintf("%s-%d.qcow2", id, d)
				facts.Domains = append(facts.Domains, model.Domain{
					UUID: name, State: model.DomainRunning, Sources: []model.DiskSource{{Path: "/srv/vms/" + name}},
				})
				kept[name] = append(kept[name], id)
			}
			s.facts[id] = facts
		}
		vm := model.VM{ID: vmID, LastNode: "n00001", Spec: model.VMSpec{Disks: []model.Disk{{Path: "/srv/vms/its-own.qcow2"}}}}
		moment := Moment{
			Records: s, At: s.at, Facts: func(node string) model.NodeFacts { return s.facts[node] },
			MayShow: func(string) []string { return nil },
		}
		for name, withDisk := range map[string]func(string) []string{"all": nil, "kept": func(name string) []string { return kept[name] }} {
			moment.WithDisk = withDisk
			b.Run(fmt.Sprintf("%s/%d_nodes", name, nodes), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					s.proof.Survey(moment).UsedDisk(&vm, "n00001")
				}
			})
		}
	}
}
