package estate

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth/coordinator/affinity"
	"berth/coordinator/balance"
	"berth/coordinator/document"
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/schema"
	"berth/coordinator/view"
	"berth/shared/units"
)

// maker draws a state that breaks no rule.
type maker struct {
	t     *rapid.T
	state State
}

func (m *maker) pick(label string, from []string) string {
	return rapid.SampledFrom(from).Draw(m.t, label)
}

func (m *maker) yes(label string) bool { return rapid.Bool().Draw(m.t, label) }

func (m *maker) figure(label string) float64 {
	return rapid.OneOf(
		rapid.SampledFrom([]float64{0, 1, -1, 0.5, 100, -100, 1e9, -1e9, 1e-300}),
		rapid.Float64Range(-model.MaxKeyFigure, model.MaxKeyFigure),
	).Draw(m.t, label)
}

// of are the IDs of the resources of a kind and, of offers, for a kind.
func (m *maker) of(kind, offerFor model.Kind) []string {
	var found []string
	for i := range m.state.Resources {
		if r := &m.state.Resources[i]; r.Kind == kind && (kind != model.KindOffer || r.Settings[schema.SettingFor] == string(offerFor)) {
			found = append(found, r.ID)
		}
	}
	return found
}

func (m *maker) keys(kind model.Kind) []model.Key {
	var keys []model.Key
	for range rapid.IntRange(0, 3).Draw(m.t, "keys") {
		key := model.Key{
			Class: model.KeyClass(m.pick("class", []string{"system", "billing-entity", "customer"})),
			Name: m.pick(
				"key",
				[]string{
					"K", "Group 1", "_ssd", "#RAM", "#LOAD", "yes", "null", "1e3", "a.b", "ü", "-", "~", "0x10", "[x]", "{}", "&a", "*b", "!c",
					"|", ">", "%d", "`e",
				},
			),
			Value: m.figure("value"), Weight: m.figure("weight"),
		}
		if model.ValidateKey(kind, key) == nil {
			keys, _ = schema.SetKey(kind, keys, key)
		}
	}
	return keys
}

// settings are some of each kind's settings, in the form in which they are kept.
var settings = map[string][]string{
	"storage": {"shared", "local"}, "ram_ratio": {"0.1", "1.5", "16"}, "cpu_ratio": {"1", "0.25"}, "overhead": {
		"0", "1", "1536", "1073741824",
	},
	"initial_msav": {"80", "100.5"}, "final_msav": {"-10", "-1e-05"}, "msav_steps": {"1", "1000"},
	"customer_key_scope": {"customer", "cluster"}, "contended_above": {"60", "12.5"},
	"physical_ledger": {"pessimistic", "optimistic"}, "master": {"false"}, "format": {"raw", "qcow2"}, "bus": {"virtio", "sata", "scsi"},
	"for":     {"customer", "image", "vdc", "vm", "disk", "network", "nic"},
	"source":  {"default", "bridge:br0", "null", "yes", "1.5", "a: b", "#x", "~"},
	"planner": {"first-fit"}, "balance_window": {
		"22:00-06:00", "Mon-Fri 20:00-24:00", "Sat 00:00-01:00",
	}, "cooldown": {"0s", "30m", "720h", "1h0m1s"},
	"special_labels":            {"gpu", "fpga,gpu", "none"},
	"cpu_to_memory_weight":      {"0", "0.25", "1"},
	"user_vm_dispersion_weight": {"0", "0.75", "1"}, "capacity_threshold": {"0", "0.85", "10"}, "over_provisioning": {"1", "2.5", "100"},
	"cpu_model": {"null", "1.5", "EPYC-Rome"}, "size": {"1048576", "1048577", "21474836480"},
	"parallel_moves": {"1", "16"}, "permit": {"all", "none", "host-devices,host-paths"},
	"image_folders": {"none", "/srv/images"}, "parallel_starts": {"1", "64"}, "spare_nodes": {"0", "8"}, "fence_after": {"30s", "5m", "24h"},
	"fence_sick_after": {"never", "5m"},
	"priority": {
		"0.0000001", "1", "2.5", "1000000",
	},
}

// labels are such that YAML takes some of them for something else.
func (m *maker) labels(what string) []string {
	labels := rapid.SliceOfNDistinct(
		rapid.SampledFrom([]string{"web", "null", "1e3", "yes", "0x10", "rack-1"}), 0, 3, rapid.ID,
	).Draw(m.t, what)
	slices.Sort(labels)
	return labels[:len(labels):len(labels)]
}

// policy gives a policy rules that the engine and the balancer take.
func (m *maker) policy(r *model.Resource) {
	r.Lists = make(map[string][]string)
	for _, name := range schema.Weighers() {
		if m.yes(name) {
			r.Lists[schema.ListWeighers] = append(r.Lists[schema.ListWeighers], schema.PairText(name, m.figure("factor")))
		}
	}
	slices.Sort(r.Lists[schema.ListWeighers])
	if m.yes("constraints") {
		r.Lists[schema.ListConstraints] = slices.Sorted(slices.Values(schema.Constraints()))
	}
	if balancer, known := balance.ByName(r.Settings[schema.SettingBalancer]); known {
		for _, parameter := range balancer.Parameters {
			if m.yes(parameter.Name) {
				r.Lists[schema.ListParameters] = append(r.Lists[schema.ListParameters], schema.PairText(parameter.Name, parameter.Most))
			}
		}
		slices.Sort(r.Lists[schema.ListParameters])
	}
	policy, _ := readPolicy(r, model.DefaultSettings())
	if placement.Validate(policy) != nil { // such as a selector that needs more of a weigher than it has
		delete(r.Settings, schema.SettingSelector)
	}
	maps.DeleteFunc(r.Lists, func(_ string, list []string) bool { return len(list) == 0 })
	r.Lists = nilIfEmpty(r.Lists)
}

// group gives a group members of its cluster, and tells whether it contradicts no other one.
func (m *maker) group(r *model.Resource) bool {
	own, _ := clusterNamed(&m.state, r.Links[schema.LinkCluster])
	x := newIndex(&m.state)
	r.Members, r.Lists = make(map[string][]string), make(map[string][]string)
	for _, vm := range vmsOf(x, own) {
		if m.yes("member " + vm.Name) {
			r.Members[model.MembersVMs] = append(r.Members[model.MembersVMs], vm.ID)
		}
	}
	for _, node := range nodesOf(x, own) {
		if m.yes("member " + node.Name) {
			r.Members[model.MembersNodes] = append(r.Members[model.MembersNodes], node.ID)
		}
	}
	for _, list := range []string{model.ListVMLabels, model.ListNodeLabels} {
		if labels := m.labels(list); len(labels) > 0 {
			r.Lists[list] = labels
		}
	}
	r.Members, r.Lists = nilIfEmpty(r.Members), nilIfEmpty(r.Lists)
	with := m.state.withResource(*r)
	return !slices.ContainsFunc(Conflicts(newIndex(&with), own), func(c affinity.Conflict) bool { return c.Severity == affinity.Error })
}

func (m *maker) resource(form schema.Form, name string) {
	r := model.Resource{ID: "id-" + string(form.Kind) + "-" + name, Kind: form.Kind, Name: name, Revision: 1}
	if form.Kind == model.KindCluster && m.yes("default") {
		if _, taken := m.state.ResourceByName(form.Kind, model.DefaultCluster); !taken {
			r.ID, r.Name = model.DefaultCluster, model.DefaultCluster
		}
	}
	links := make(map[string]string)
	for _, link := range form.Links {
		if others := m.of(link.To, link.For); len(others) > 0 && (link.Required || m.yes(link.Name)) {
			links[link.Name] = m.pick(link.Name, others)
		} else if link.Required {
			return
		}
	}
	r.Links = canonicalLinks(r.Kind, links)
	r.Settings = make(map[string]string)
	filed := m.yes("file")
	for _, setting := range form.Settings {
		switch {
		case setting.Name == schema.SettingPath && (filed || setting.Required):
			r.Settings[setting.Name] = fmt.Sprintf("/srv/%s: #%d '\"", name, len(m.state.Resources))
		case setting.Name == schema.SettingPath:
		case setting.Name == schema.SettingFormat && form.Kind == model.KindImage && !filed:
		case setting.Required || setting.Name == schema.SettingFormat || m.yes(setting.Name):
			words := setting.Words
			if known := settings[setting.Name]; known != nil {
				words = known
			}
			r.Settings[setting.Name] = m.pick(setting.Name, words)
		}
	}
	switch form.Kind {
	case model.KindPolicy:
		m.policy(&r)
	case model.KindGroup:
		if !m.group(&r) {
			return
		}
	case model.KindVDC:
		m.vdc(&r)
	case model.KindOffer:
		if r.Settings[schema.SettingFor] != string(model.KindVM) {
			delete(r.Settings, model.SettingPlanner)
		}
	case model.KindPool:
		delete(r.Settings, model.SettingPoolSource) // so that no two are the same
	case model.KindDisk:
		m.disk(&r, filed)
	}
	r.Settings = nilIfEmpty(r.Settings)
	m.spelled(&r)
	r.Keys = m.keys(form.Kind)
	if form.HasNodeKeys && m.yes("node keys") {
		r.NodeKeys = []model.NodeKey{{Name: "DS", Default: m.figure("default"), Sticky: true, Weight: 30}, {Name: "null"}}
	}
	m.state.Resources = append(m.state.Resources, r)
}

// spellings are ways in which a document may have written fields by the names of the designs.
var spellings = map[string][]string{
	"nodes_rule": {"hosts_rule", "hosts_rule positive", "nodes_rule enabled positive enforcing", "hosts_rule enabled positive=true"},
	"vms_rule":   {"vms_rule positive", "vms_rule enabled enforcing", "vms_rule enabled positive=false enforcing"},
	"nodes":      {"hosts"}, "node_labels": {"host_labels"}, "nodes_enforcing": {"hosts_enforcing"},
	"planner": {"FirstFitPlanner", "UserDispersingPlanner", "first-fit"},
}

// spelled says how a document has written a resource, whether it is still so or not.
func (m *maker) spelled(r *model.Resource) {
	for _, field := range slices.Sorted(maps.Keys(spellings)) {
		if group := r.Kind == model.KindGroup; group == (field != "planner") && m.yes("spelled "+field) {
			if r.Spelled == nil {
				r.Spelled = make(map[string]string)
			}
			r.Spelled[field] = m.pick("spelling of "+field, spellings[field])
		}
	}
}

// vdc leaves a VDC one of the places that it names.
func (m *maker) vdc(r *model.Resource) {
	for i, link := range places {
		for _, wider := range places[i+1:] {
			if r.Links[link.Name] != "" {
				delete(r.Links, wider.Name)
			}
		}
	}
}

// disk leaves a disk one of its two shapes. No image here is imported, so that none can be copied.
func (m *maker) disk(r *model.Resource, filed bool) {
	delete(r.Links, schema.LinkImage)
	if filed {
		delete(r.Links, schema.LinkPool)
		delete(r.Settings, schema.SettingSize)
		delete(r.Settings, schema.SettingKeep)
	} else {
		delete(r.Settings, schema.SettingFormat)
		r.Settings[schema.SettingSize] = m.pick(schema.SettingSize, settings[schema.SettingSize])
	}
	r.Links = nilIfEmpty(r.Links)
}

func (m *maker) node(name string) {
	n := model.Node{ID: "id-node-" + name, Name: name, Cluster: model.DefaultCluster, Revision: 1}
	if clusters := m.of(model.KindCluster, ""); len(clusters) > 0 && m.yes("cluster") {
		record, _ := m.state.Resource(m.pick("cluster", clusters))
		n.Cluster = record.Name
	}
	record, _ := m.state.ResourceByName(model.KindCluster, n.Cluster)
	for _, key := range record.NodeKeys {
		if m.yes(key.Name) {
			value := m.figure(key.Name)
			n, _ = SetNodeKeyValue(record, n, key.Name, &value)
		}
	}
	if m.yes("settings") {
		ratio, overhead := rapid.Float64Range(model.MinRAMRatio, model.MaxRAMRatio).Draw(m.t, "ratio"), units.Bytes(
			rapid.IntRange(0, 1<<40).Draw(m.t, "overhead"),
		)
		n.Settings = model.NodeSettings{RAMRatio: &ratio, Overhead: &overhead}
	}
	n.Labels, n.Management, n.Unbalanced = m.labels("node's labels"), m.yes("management"), m.yes("unbalanced")
	m.state.Nodes = append(m.state.Nodes, n)
}

func (m *maker) vm(number int) {
	vm := model.VM{
		ID: fmt.Sprintf("id-vm-%d", number), Name: fmt.Sprintf("vm-%d", number), Desired: model.Stopped, Revision: 1,
		Keys: m.keys(model.KindVM),
		Spec: model.VMSpec{
			Memory: units.Bytes(rapid.Int64Range(int64(model.MinVMMemory), int64(model.MaxVMMemory)).Draw(m.t, "memory")),
			VCPUs:  rapid.IntRange(1, model.MaxVCPUs).Draw(m.t, "vcpus"),
		},
	}
	if m.yes("linked") {
		for _, link := range []struct {
			to   model.Kind
			into *string
		}{{model.KindVDC, &vm.VDC}, {model.KindOffer, &vm.Offer}, {model.KindImage, &vm.Image}} {
			if others := m.of(link.to, model.KindVM); len(others) > 0 {
				*link.into = m.pick(string(link.to), others)
			}
		}
		// The first VM has the first disk and NIC, and so on: none has two.
		if disks := m.of(model.KindDisk, ""); number < len(disks) {
			vm.Disks = disks[number : number+1]
		}
		if nics := m.of(model.KindNIC, ""); number < len(nics) {
			vm.NICs = nics[number : number+1]
		}
	}
	m.place(&vm)
	vm.Labels = m.labels("VM's labels")
	vm.Migration = model.Migration(m.pick("migration", []string{"", "manual", "never"}))
	vm.RestartAfter = m.labels("labels to restart after")
	vm.Restart = model.Restart(m.pick("restart", []string{"", "always", "ha", "never"}))
	vm.HA, vm.RestartPriority = m.yes("ha"), model.RestartPriority(m.pick("restart priority", []string{"", "high", "low"}))
	vm.Description = m.pick("description", []string{"", "the shop's front", " a: b #c ", "null", "- x", "1.5", "ü"})
	where, _ := scopesOf(&m.state).of(&vm)
	for _, node := range m.state.Nodes {
		if where.has(node.Cluster) && m.yes("prefers "+node.Name) {
			vm.Preferred = append(vm.Preferred, node.ID)
		}
	}
	switch m.pick("described by", []string{"XML", "fields"}) {
	case "XML":
		vm.Spec = model.VMSpec{Memory: units.GiB, VCPUs: 2, XML: m.pick("xml", []string{
			"<domain type='kvm'>\n  <memory unit='GiB'>1</memory>\n  <vcpu>2</vcpu>\n</domain>\n",
			"<domain type='kvm'>\r\n<memory unit='GiB'>1</memory>\t\n\n <vcpu>2</vcpu> \n</domain>\n\n",
			"\n  <domain type='kvm'><memory unit='GiB'>1</memory><vcpu>2</vcpu><!-- ü\u0085 \u2028# --></domain>",
		})}
	case "fields":
		vm.Spec.Kernel, vm.Spec.Cmdline = "/boot/k", m.pick("cmdline", []string{"", "quiet", " a: b #c ", "null", "'", "- x"})
		vm.Spec.Disks = []model.Disk{{Path: "/plain", Format: "raw", Bus: "sata", ReadOnly: m.yes("read-only")}}
		vm.Spec.Networks = []string{m.pick("network", settings["source"])}
		vm.Spec.Machine, vm.Spec.CPU = m.pick("machine", []string{"", "q35", "1.5"}), m.pick("cpu", []string{"", "host-passthrough", "null"})
		if disk, _ := m.state.Resource(firstOf(vm.Disks)); disk.ID != "" && IsVolume(&disk) {
			vm.Spec.UserData = m.pick("user data", []string{"", "#cloud-config\n", "a: b\n\n\n", "\t- ü\u0085 x "})
		}
	}
	m.state.VMs = append(m.state.VMs, vm)
}

// place says where a VM runs, and takes from it what cannot be there.
func (m *maker) place(vm *model.VM) {
	if places := slices.Concat(
		m.of(model.KindZone, ""), m.of(model.KindPod, ""), m.of(model.KindCluster, ""),
	); len(places) > 0 && m.yes("within") {
		vm.Within = m.pick("place", places)
	}
	wrong := func() bool {
		c := &checker{now: &m.state, index: newIndex(&m.state)}
		c.scopes = scopesOf(c.index)
		c.place(vm, vm.Name)
		return len(c.problems) > 0
	}
	for _, take := range []func(){func() { vm.Disks = nil }, func() { vm.Within = "" }, func() { vm.VDC = "" }} {
		if wrong() {
			take()
		}
	}
}

func randomState(t *rapid.T) State {
	m := &maker{t: t}
	of := func(form schema.Form) {
		for i := range rapid.IntRange(0, 3).Draw(t, form.Plural) {
			m.resource(form, m.pick("name", []string{"null", "true", "1.5", "x", "0x1F", "1e3", "y"})+fmt.Sprint(".", i))
		}
	}
	for _, form := range schema.Forms() {
		if len(form.Members) == 0 {
			of(form)
		}
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "nodes") {
		m.node(fmt.Sprintf("hv%d", i))
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "vms") {
		m.vm(i)
	}
	if form, known := schema.FormOf(model.KindGroup); known {
		of(form)
	}
	return m.state
}

// What is exported and applied again changes nothing; applied to a site that has only nodes it makes the same estate.
func TestExportThenApplyChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := randomState(t)
		if problems := Check(now); len(problems) > 0 {
			t.Fatalf("the state breaks rules:\n%s", lines(problems))
		}
		text, err := Export(now, rapid.Bool().Draw(t, "live"))
		if err != nil {
			t.Fatal(err)
		}
		doc, problems := document.Parse("export", text)
		if len(problems) > 0 {
			t.Fatalf("the export is refused:\n%s\n%s", lines(problems), text)
		}
		plan, problems := Diff(now, doc, rapid.Bool().Draw(t, "prune"))
		if len(problems) > 0 || len(plan.Changes) > 0 {
			t.Fatalf("not the same: %+v\n%s\n%s", plan.Changes, lines(problems), text)
		}
		built, problems := build(doc, epoch)
		if len(problems) > 0 {
			t.Fatalf("cannot be made anew:\n%s", lines(problems))
		}
		if diff := cmp.Diff(plainExport(t, now), plainExport(t, built)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Whatever keeps the rules can be placed and started.
func TestWhatKeepsTheRulesResolves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := randomState(t)
		for _, vm := range now.VMs {
			resolved, err := Resolve(&now, vm)
			if err != nil {
				t.Fatal(err)
			}
			vdc, _ := now.Resource(vm.VDC)
			if resolved.Owner.Customer != vdc.Links[schema.LinkCustomer] {
				t.Fatalf("%s is %s's, its VDC %s's", vm.Name, resolved.Owner.Customer, vdc.Links[schema.LinkCustomer])
			}
			if id := vdc.Links[schema.LinkCluster]; id != "" && resolved.Record.ID != id ||
				!scopesOf(&now).wide(&vm) && id == "" && resolved.Cluster != model.DefaultCluster {
				t.Fatalf("%s is in %s, its VDC links to %q", vm.Name, resolved.Cluster, id)
			}
			search, in, err := SearchOf(Indexed(&now), view.New(epoch, 1, view.Records{}, nil), vm, placement.ForStart)
			unsaid := vm.Within == "" && vdc.Links[schema.LinkCluster] == "" && vdc.Links[schema.LinkPod] == "" && vdc.Links[schema.LinkZone] == ""
			if err != nil || (search.Bound == "") != (len(search.Options) > 1 || unsaid) {
				t.Fatalf("%s is looked for in %+v (%v)", vm.Name, search, err)
			}
			for _, option := range search.Options {
				if in[option.Cluster].Cluster != option.Cluster || option.Request.Cluster != option.Cluster {
					t.Fatalf("what is asked of %s is %+v", option.Cluster, option.Request)
				}
			}
			spec, err := SpecOf(&now, vm)
			if errors.Is(err, ErrNoVolume) && len(resolved.Disks) > 0 {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if spec.Memory != vm.Spec.Memory || spec.XML == "" && len(spec.Networks) != len(vm.NICs)+len(vm.Spec.Networks) {
				t.Fatalf("%+v is started as %+v", vm, spec)
			}
		}
	})
}

func plainExport(t *rapid.T, now State) string {
	text, err := Export(now, false)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// withoutNodes is the state of a site that no node has joined.
func (s *State) withoutNodes() {
	s.Nodes = nil
	for i := range s.Resources {
		delete(s.Resources[i].Members, model.MembersNodes)
	}
	for i := range s.VMs {
		s.VMs[i].Preferred = nil
	}
}

// A plan leads from any state to any document that fits it, and there is nothing left to do afterwards.
func TestAPlanLeadsToWhatIsDeclared(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, wanted := randomState(t), randomState(t)
		wanted.withoutNodes()
		text := plainExport(t, wanted)
		doc, problems := document.Parse("wanted", []byte(text))
		if len(problems) > 0 {
			t.Fatalf("the export is refused:\n%s", lines(problems))
		}
		prune := rapid.Bool().Draw(t, "prune")
		plan, problems := Diff(now, doc, prune)
		if len(problems) > 0 {
			if len(plan.Changes) > 0 {
				t.Fatal("a plan beside problems")
			}
			return
		}
		for _, change := range plan.Changes {
			if change.Action == Modify && len(change.Fields) == 0 || change.Action == Delete && len(change.Fields) > 0 {
				t.Errorf("%s of %s/%s changes %v", change.Action, change.Kind, change.Name, change.Fields)
			}
		}
		plan.Assign(epoch, schema.Ref)
		after := plan.Apply(now)
		if problems := CheckChange(now, after); len(problems) > 0 {
			t.Fatalf("the outcome breaks rules:\n%s", lines(problems))
		}
		rest, problems := Diff(after, doc, prune)
		if len(problems) > 0 || len(rest.Changes) > 0 {
			t.Fatalf("something is left to do: %+v\n%s", rest.Changes, lines(problems))
		}
		if after.withoutNodes(); prune {
			if diff := cmp.Diff(text, plainExport(t, after)); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

// What is read never ends the program, and what is read and makes an estate is written and read as the same.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"estate.yaml", "estate.golden", "live.golden", "bad.yaml", "misfit.yaml", "town.golden"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, problems := document.Parse("fuzz", data)
		if (doc == nil) != (len(problems) > 0) {
			t.Fatalf("a document %v and problems %v", doc, problems)
		}
		if doc == nil {
			return
		}
		built, problems := build(doc, epoch)
		if len(problems) > 0 {
			return
		}
		if problems := Check(built); len(problems) > 0 {
			t.Fatalf("it breaks rules:\n%s", lines(problems))
		}
		text, err := Export(built, true)
		if err != nil {
			t.Fatal(err)
		}
		again, problems := document.Parse("export", text)
		if len(problems) > 0 {
			t.Fatalf("the export is refused:\n%s\n%s", lines(problems), text)
		}
		if plan, problems := Diff(built, again, true); len(problems) > 0 || len(plan.Changes) > 0 {
			t.Fatalf("not the same: %+v\n%s\n%s", plan.Changes, lines(problems), text)
		}
	})
}
