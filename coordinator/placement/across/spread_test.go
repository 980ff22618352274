package across

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/policies"
	"berth/coordinator/view"
	"berth/shared/units"
)

// region is an estate of 3 zones, each of 4 pods, of 5 clusters, of 20 nodes.
type region struct {
	records  view.Records
	facts    map[string]model.NodeFacts
	clusters [][]Option // by zone
	counted  map[string]int
}

func newRegion() *region {
	r := &region{facts: map[string]model.NodeFacts{}, counted: map[string]int{}}
	for zone := range 3 {
		var options []Option
		for pod := range 4 {
			for c := range 5 {
				name := fmt.Sprintf("z%d-p%d-c%d", zone, pod, c)
				record := model.DefaultClusterRecord()
				record.ID, record.Name = "id-"+name, name
				r.records.Clusters = append(r.records.Clusters, record)
				options = append(options, Option{Cluster: name, Pod: name[:5], Policy: policies.Default(), Threshold: 0.85})
				for n := range 20 {
					r.node(fmt.Sprintf("%s-n%02d", name, n), name, 7*zone+5*pod+3*c+n)
				}
			}
		}
		r.clusters = append(r.clusters, options)
	}
	return r
}

// node adds one that somebody else's VM uses a little.
func (r *region) node(id, in string, salt int) {
	r.records.Nodes = append(r.records.Nodes, model.Node{ID: id, Name: id, Cluster: in})
	r.facts[id] = model.NodeFacts{
		Liveness: model.Up, Inventory: true, InventoryAt: noon, DomainsKnown: true, Memory: 256 * units.GiB, CPUs: 64,
		Telemetry: true, TelemetryAt: noon, Available: ptr(200 * units.GiB), Load1: ptr(1.0),
	}
	r.records.VMs = append(r.records.VMs, model.VM{
		ID: "other-" + id, Name: "other-" + id, Holder: id, StartedAt: noon.Add(-time.Hour), Desired: model.Running,
		Spec: model.VMSpec{Memory: units.Bytes(1+salt%16) * units.GiB, VCPUs: 1 + salt%40},
	})
}

// fill leaves the nodes of a cluster no memory.
func (r *region) fill(name string) {
	for _, node := range r.records.Nodes {
		if node.Cluster == name {
			facts := r.facts[node.ID]
			facts.Available = ptr(units.MiB)
			r.facts[node.ID] = facts
		}
	}
}

// start starts a VM of a customer in a zone. Every third one is still on its way when the next one starts.
func (r *region) start(t *testing.T, customer string, zone int, level string, weight float64) {
	t.Helper()
	number := len(r.records.VMs)
	vm := model.VM{
		ID: fmt.Sprintf("%s-%05d", customer, number), Spec: model.VMSpec{Memory: units.GiB, VCPUs: 2}, Desired: model.Running,
		Owner: model.Owner{Customer: customer},
	}
	search := Search{Options: r.clusters[zone], Planner: "user-dispersing", Level: level, Weight: weight, Capacity: model.CapacityCPU}
	for i := range search.Options {
		search.Options[i].Request = placement.Request{
			Purpose: placement.ForStart, VM: vm.ID, VMName: vm.ID, Memory: vm.Spec.Memory, VCPUs: vm.Spec.VCPUs, Owner: vm.Owner,
			Cluster: search.Options[i].Cluster, Planner: "user-dispersing", SystemKeys: specials(),
		}
	}
	d := Place(r.view(), search, uint64(number))
	if d.Outcome != placement.Placed {
		t.Fatalf("VM %d: %s", number, d.Reason)
	}
	if number%3 == 0 {
		r.records.Reservations = append(r.records.Reservations, model.Reservation{
			Node: d.Winner, VM: vm.ID, Memory: vm.Spec.Memory, VCPUs: vm.Spec.VCPUs, Operation: vm.ID,
		})
	} else {
		vm.Holder, vm.StartedAt = d.Winner, noon.Add(-time.Minute)
	}
	r.records.VMs = append(r.records.VMs, vm)
}

func (r *region) view() *view.View { return view.New(noon, 1, r.records, r.facts) }

// spread is the fewest and the most VMs of a customer on places of one kind, one range for each group of them in which they
// have to be even.
type spread struct{ least, most map[string]int }

// over counts the VMs by place; group says in which range a place is, and skips it if it is none.
func over(counts map[string]int, places []string, group func(place string) string) spread {
	s := spread{map[string]int{}, map[string]int{}}
	for _, place := range places {
		name := group(place)
		if name == "" {
			continue
		}
		if _, there := s.least[name]; !there {
			s.least[name], s.most[name] = counts[place], counts[place]
		}
		s.least[name], s.most[name] = min(s.least[name], counts[place]), max(s.most[name], counts[place])
	}
	return s
}

// widest is the largest difference in any group, and the fewest and the most of all.
func (s spread) widest() (difference, least, most int) {
	least = 1 << 30
	for name := range s.least {
		difference = max(difference, s.most[name]-s.least[name])
		least, most = min(least, s.least[name]), max(most, s.most[name])
	}
	return difference, least, most
}

// Hundreds of VMs of several accounts are started one after the other, each on what the ones before left: at each level that
// the planner disperses over, places that can take VMs differ by one at most. It prints the table.
func TestAccountsSpreadOverARegion(t *testing.T) {
	if testing.Short() {
		t.Skip("starts some thousand VMs")
	}
	const prefix = len("z0-p0")
	for _, full := range []int{0, 6} {
		for _, level := range []string{model.LevelPod, model.LevelCluster} {
			r := newRegion()
			isFull := map[string]bool{}
			for i := range full {
				name := fmt.Sprintf("z%d-p%d-c%d", i%3, i%4, i%5)
				isFull[name] = true
				r.fill(name)
			}
			vms := map[string]int{"acme": 50, "blue": 21, "coal": 70}
			for i := range 70 { // in turns, as they come
				for _, customer := range []string{"acme", "blue", "coal"} {
					for zone := 0; zone < 3 && i < vms[customer]; zone++ {
						r.start(t, customer, zone, level, 1)
					}
				}
			}
			view := r.view()
			var clusters, pods, nodes []string
			podsSeen := map[string]bool{}
			for _, one := range r.records.Clusters {
				if clusters = append(clusters, one.Name); !podsSeen[one.Name[:prefix]] {
					podsSeen[one.Name[:prefix]] = true
					pods = append(pods, one.Name[:prefix])
				}
			}
			for _, one := range r.records.Nodes {
				nodes = append(nodes, one.ID)
			}
			for _, customer := range []string{"acme", "blue", "coal"} {
				account := view.AccountVMs(customer)
				if account.Total != 3*vms[customer] {
					t.Errorf("%s has %d VMs, want %d", customer, account.Total, 3*vms[customer])
				}
				inPods := map[string]int{}
				for name, n := range account.Clusters {
					inPods[name[:prefix]] += n
					if isFull[name] {
						t.Errorf("%d VMs of %s are in %s, which is full", n, customer, name)
					}
				}
				levels := []struct {
					name string
					even bool
					spread
				}{
					{"pods", level == model.LevelPod, over(inPods, pods, func(pod string) string { return pod[:2] })},
					{"clusters", true, over(account.Clusters, clusters, func(name string) string {
						switch {
						case isFull[name]:
							return ""
						case level == model.LevelPod: // even inside each pod
							return name[:prefix]
						default:
							return name[:2]
						}
					})},
					{"nodes", true, over(account.Nodes, nodes, func(node string) string {
						name, _, _ := strings.Cut(node, "-n")
						if isFull[name] {
							return ""
						}
						return name
					})},
				}
				for _, one := range levels {
					difference, least, most := one.widest()
					t.Logf("level %-7s full clusters %d  %s  %3d VMs a zone: %-8s %2d to %2d", level, full, customer, vms[customer], one.name, least, most)
					if one.even && difference > 1 {
						t.Errorf("%s at %s level: %s of one range differ by %d", customer, level, one.name, difference)
					}
				}
			}
		}
	}
}
