package placement

import (
	"fmt"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/placement/key"
	"berth/coordinator/placement/policies"
	"berth/coordinator/placement/selector"
	"berth/coordinator/view"
	"berth/shared/units"
)

// crowd is a cluster of n nodes with ten VMs each, and these groups; one node in eight is full.
func crowd(n int, groups ...model.Resource) *view.View {
	var nodes []model.Node
	var vms []model.VM
	facts := make(map[string]model.NodeFacts, n)
	for i := range n {
		id := fmt.Sprintf("n%06d", i)
		nodes = append(nodes, model.Node{ID: id, Name: id, Cluster: model.DefaultCluster})
		size := 8 * units.GiB
		if i%8 == 0 {
			size = 52 * units.GiB
		}
		for v := range 10 {
			vms = append(vms, model.VM{
				ID: fmt.Sprintf("%s-%d", id, v), Holder: id, StartedAt: noon.Add(-time.Hour),
				Spec:     model.VMSpec{Memory: size, VCPUs: 1 + (i+v)%8},
				Resident: []model.ResidentKey{{Class: model.CustomerKey, Name: "G", Value: float64((i + v) % 10)}},
			})
		}
		facts[id] = model.NodeFacts{
			Liveness: model.Up, Inventory: true, InventoryAt: noon, DomainsKnown: true, Memory: 512 * units.GiB, CPUs: 64,
			Telemetry: true, TelemetryAt: noon, Available: ptr(300 * units.GiB), Load1: ptr(float64(i%640) / 10),
		}
	}
	return view.New(noon, 1, view.Records{Nodes: nodes, VMs: vms, Groups: groups}, facts)
}

var sizes = []int{1000, 10_000, 100_000}

// fleet is n nodes with five declared keys, as columns. One node in eight is full.
func fleet(n, residents int) *view.Columns {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("n%06d", i)
	}
	c := emptyNodes(ids...)
	mixed := uint64(1)
	random := func() float64 {
		mixed += 0x9e3779b97f4a7c15
		return float64(selector.Draw(0, mixed)>>11) / (1 << 53)
	}
	for k := range 5 {
		column := view.NodeKeyColumn{Name: fmt.Sprint("K", k)}
		values := make([]float64, n)
		for i := range values {
			values[i] = random()
		}
		column.Values = view.ColumnOf(values...)
		c.NodeKeys = append(c.NodeKeys, column)
	}
	c.Residents = view.NewResidents()
	for i := range n {
		c.Promised[i], c.Memory[i], c.VCPULimit[i] = 512*units.GiB, 512*units.GiB, 512
		c.Free.Set(i, 500*units.GiB)
		c.Used.Set(i, units.Bytes(random()*float64(400*units.GiB)))
		if random() < 0.125 {
			c.Used.Set(i, 511*units.GiB)
		}
		c.VCPUs.Set(i, int(random()*256))
		c.Load.Set(i, random())
		for range residents {
			c.Residents.Add(i, model.Owner{}, []model.ResidentKey{
				{Class: model.CustomerKey, Name: "G", Value: 1}, {Class: model.CustomerKey, Name: "H", Value: float64(int(random() * 4))},
			})
		}
	}
	c.Derive()
	return c
}

func askedOf(customer bool) *Request {
	request := &Request{Purpose: ForStart, VM: "new", VMName: "new", Memory: 4 * units.GiB, VCPUs: 2, SystemKeys: specials()}
	for k := range 5 {
		request.SystemKeys = append(request.SystemKeys, key.Weighted{Name: fmt.Sprint("K", k), Value: 0.5, Weight: 10})
	}
	if customer {
		request.CustomerKeys = []key.Weighted{
			{Name: "G", Value: 1, Weight: 100, Class: model.CustomerKey}, {Name: "H", Value: 1, Weight: -50, Class: model.CustomerKey},
		}
	}
	return request
}

func newEngine(t testing.TB, policy policies.Policy) *Engine {
	t.Helper()
	engine, err := NewEngine(policy)
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// BenchmarkChoose is a whole decision: filter, rounds, customer round, tie.
func BenchmarkChoose(b *testing.B) {
	for _, n := range sizes {
		for _, residents := range []int{0, 50} {
			columns, request := fleet(n, residents), askedOf(residents > 0)
			engine := newEngine(b, policies.Default())
			b.Run(fmt.Sprintf("nodes=%d/residents=%d", n, residents), func(b *testing.B) {
				b.ReportAllocs()
				seed := uint64(0)
				for b.Loop() {
					seed++
					if engine.Choose(columns, noon, request, seed).Node < 0 {
						b.Fatal("no node fits")
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
			})
		}
	}
}

// BenchmarkChooseAmongGroups is a decision on the nodes of a view with a thousand groups: of a VM that is in none, of one that
// is in two, and by a policy whose weighers are ranked.
func BenchmarkChooseAmongGroups(b *testing.B) {
	var groups []model.Resource
	for i := range 1000 {
		polarity, enforcing := model.Negative, "true"
		if i%2 == 0 {
			polarity, enforcing = model.Positive, "false"
		}
		groups = append(groups, model.Resource{
			Kind: model.KindGroup, ID: fmt.Sprint("g", i), Name: fmt.Sprint("group-", i),
			Settings: map[string]string{model.SettingVMsRule: string(polarity), model.SettingVMsEnforcing: enforcing},
			Members:  map[string][]string{model.MembersVMs: {fmt.Sprintf("n%06d-0", i), fmt.Sprintf("n%06d-1", i)}},
			Lists:    map[string][]string{model.ListVMLabels: {fmt.Sprint("label-", i)}},
		})
	}
	columns := crowd(1000, groups...).Columns(model.DefaultCluster)
	even, _ := policies.Builtin(policies.EvenLoad, model.DefaultSettings())
	for name, one := range map[string]struct {
		policy policies.Policy
		labels []string
	}{
		"in none": {policies.Default(), nil}, "in two": {policies.Default(), []string{"label-2", "label-3"}}, "in none, ranked": {even, nil},
	} {
		engine, request := newEngine(b, one.policy), askedOf(false)
		request.Labels = one.labels
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if engine.Choose(columns, noon, request, 1).Node < 0 {
					b.Fatal("no node fits")
				}
			}
		})
	}
}

// BenchmarkSequence places one VM after another, each charged before the next.
func BenchmarkSequence(b *testing.B) {
	for _, n := range sizes {
		original, request := fleet(n, 0), askedOf(false)
		engine := newEngine(b, policies.Default())
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			columns, placed := original.Clone(), 0
			for b.Loop() {
				choice := engine.Choose(columns, noon, request, uint64(placed))
				if choice.Node < 0 {
					b.Fatal("no node fits")
				}
				columns.Charge(choice.Node, view.Allocation{Memory: request.Memory, VCPUs: request.VCPUs})
				if placed++; placed == 10*n { // far from full
					columns, placed = original.Clone(), 0
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "placements/s")
		})
	}
}

// BenchmarkPlaceOn makes the record too.
func BenchmarkPlaceOn(b *testing.B) {
	for _, n := range []int{3, 1000, 10_000} {
		columns, request := fleet(n, 10), askedOf(true)
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if PlaceOn(columns, noon, *request, policies.Default(), 1).Outcome != Placed {
					b.Fatal("no node fits")
				}
			}
		})
	}
}

// BenchmarkGatherAndPlace is the first decision on a view: its columns are gathered, of ten VMs a node.
func BenchmarkGatherAndPlace(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		view := crowd(n)
		for _, customer := range []bool{false, true} {
			request := askedOf(customer)
			b.Run(fmt.Sprintf("nodes=%d/customer=%t", n, customer), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					columns := view.ColumnsOf(model.DefaultCluster, view.Nodes.Slice())
					if PlaceOn(columns, noon, *request, policies.Default(), 1).Outcome != Placed {
						b.Fatal("no node fits")
					}
				}
			})
		}
	}
}

// BenchmarkExplain explains all nodes: the record is cut down to what a decision keeps, so all are put back here.
func BenchmarkExplain(b *testing.B) {
	for _, n := range []int{MaxKept, 10_000} {
		columns, request := fleet(n, 10), askedOf(true)
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			d := PlaceOn(columns, noon, *request, policies.Default(), 1)
			engine := newEngine(b, policies.Default())
			engine.Choose(columns, noon, request, 1)
			d.Inputs, d.Omitted = &Inputs{Figures: columns.Figures, Met: engine.input.Met}, 0
			b.ReportAllocs()
			for b.Loop() {
				if len(Explain(d).Nodes) != n {
					b.Fatal("nodes are missing")
				}
			}
		})
	}
}
