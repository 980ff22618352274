package estate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"berth/coordinator/document"
	"berth/coordinator/model"
	"berth/coordinator/schema"
)

func TestSchema(t *testing.T) {
	text := document.Schema()
	golden(t, "schema.golden", text)
	// Its example is one.
	_, example, _ := strings.Cut(text, "Example:\n\n")
	doc := read(t, example)
	if _, problems := build(doc, epoch); len(problems) > 0 {
		t.Error(lines(problems))
	}
}

// What a plan changes, in words.
func TestDiffInWords(t *testing.T) {
	now := site(t)
	run("web-1", "n1")(&now)
	for i := range now.Nodes {
		now.Nodes[i].Revision = uint64(i + 5)
	}
	doc := read(t, head+`
clusters:
  - name: default
    ram_ratio: 1.25
    overhead: 3G
    node_keys: [{name: DS, default: 2}, {name: Rack, default: 1}]
    keys: [{name: "#RAM", value: 0, weight: 50}, {name: TIER, value: 2, weight: 5}]
  - {name: edge, storage: local}
  - {name: far, keys: []}
billing_entities: [{name: mbe, master: true}, {name: reseller}]
offers: [{name: gold, for: customer}, {name: small, for: vm}]
customers: [{name: acme, offer: gold}]
vdcs: [{name: acme-prod, customer: acme}, {name: far, customer: acme, cluster: far}]
networks: [{name: lan, source: bridge:br1}]
disks: [{name: web-1-root, path: /srv/disks/web-1.qcow2, format: qcow2}, {name: spare, path: /srv/spare, format: raw, bus: sata}]
nics: [{name: web-1-nic, network: lan}]
nodes: [{name: hv2, cluster: far, overhead: 512M, cpu_ratio: 4}]
vms:
  - name: web-1
    vdc: acme-prod
    memory: 4G
    vcpus: 2
    disks: [web-1-root, spare]
    nics: [web-1-nic]
    keys: [{name: Group1, value: 1, weight: 100, class: customer}]
  - {name: by-hand, memory: 1G, vcpus: 2, kernel: /k}
  - {name: new, vdc: far, memory: 1536M, vcpus: 1, disks: [{path: /d, format: raw, read_only: true}]}
`)
	plan, problems := Diff(now, doc, true)
	if len(problems) > 0 {
		t.Fatal(lines(problems))
	}
	var b strings.Builder
	for _, change := range plan.Changes {
		b.WriteString(string(change.Action) + " " + schema.Ref(change.Kind, change.Name) + "\n")
		for _, field := range change.Fields {
			b.WriteString("  " + field.String() + "\n")
		}
	}
	golden(t, "diff.golden", b.String())

	// hv1 is not in the document: it loses its value of the key that its cluster declares no longer, and nothing else.
	plan.Assign(epoch, counted())
	after := plan.Apply(now)
	if hv1, _ := after.Node("hv1"); hv1.Keys != nil || hv1.Settings.RAMRatio == nil {
		t.Errorf("hv1 is %+v, want it without keys", hv1)
	}
	if made, _ := after.VM("new"); made.ID != "vm-4" || made.Desired != model.Stopped || !made.CreatedAt.Equal(epoch) ||
		made.VDC != "vdc-2" {
		t.Errorf("the new VM is %+v, want it stopped with its IDs", made)
	}
	if web, _ := after.VM("web-1"); web.Desired != model.Running || web.Holder != "n1" {
		t.Errorf("web-1 is %+v, want it running", web)
	}
	for _, change := range plan.Changes {
		if change.Kind == model.KindNode && change.Revision != change.Node.Revision || change.Action == Create && change.Revision != 0 {
			t.Errorf("%s/%s expects revision %d", change.Kind, change.Name, change.Revision)
		}
	}
}

// A document within another one has lines of the whole.
func TestParseNode(t *testing.T) {
	var whole yaml.Node
	if err := yaml.Unmarshal([]byte("seed: 7\nestate:\n  offers:\n  - {name: a, for: x}\n"), &whole); err != nil {
		t.Fatal(err)
	}
	_, problems := document.ParseNode("scenario.yaml", whole.Content[0].Content[3])
	if got, want := lines(problems), "scenario.yaml:4: offer/a: for \"x\" is not valid: want customer, image, vdc, vm, disk, "+
		"network or nic\n"; got != want {
		t.Errorf("got %s want %s", got, want)
	}
}

func TestTheDefaultClusterNeedsNoRecord(t *testing.T) {
	now := carriedOut(t, State{}, head+"customers: [{name: c}]\nvdcs: [{name: v, customer: c, cluster: default}]", false)
	if v, _ := now.ResourceByName(model.KindVDC, "v"); v.Links[schema.LinkCluster] != "" {
		t.Errorf("links %v, want none to what everything is in", v.Links)
	}
	// Declared later, it takes what is there already.
	now = carriedOut(t, now, head+"clusters: [{name: default, msav_steps: 1}]", false)
	record, _ := now.ResourceByName(model.KindCluster, "default")
	if record.ID != model.DefaultCluster || !cmp.Equal(record.Keys, model.SpecialKeyDefaults()) || !cmp.Equal(
		InUse(now, model.KindCluster, "default"), []string{"vdc/v"},
	) {
		t.Errorf("%+v, used by %v", record, InUse(now, model.KindCluster, "default"))
	}
	// With keys of its own it has the special keys too, but for those that it gives the weight 0.
	const keys = `[{name: "#CPU", value: 0, weight: 0}, {name: TIER, value: 1, weight: 5}]`
	now = carriedOut(t, now, head+"clusters: [{name: default, keys: "+keys+"}]", false)
	record, _ = now.ResourceByName(model.KindCluster, "default")
	weights := map[string]float64{}
	for _, key := range record.Keys {
		weights[key.Name] = key.Weight
	}
	if diff := cmp.Diff(map[string]float64{"#CPU": 0, "#LOAD": 30, "#RAM": 40, "TIER": 5}, weights); diff != "" || len(record.Settings) != 0 {
		t.Errorf("%+v: %s", record, diff)
	}
}

func TestInUse(t *testing.T) {
	now := site(t)
	run("tiny", "n1")(&now)
	for what, want := range map[[2]string][]string{
		{"policy", "spread"}:           {"cluster/default"},
		{"cluster", "default"}:         {"group/web-apart", "node/hv1", "vdc/acme-prod", "vm/by-hand", "vm/tiny"},
		{"cluster", "edge"}:            {"node/hv2", "vdc/acme-edge"},
		{"billing-entity", "mbe"}:      nil,
		{"billing-entity", "reseller"}: {"customer/acme"},
		{"offer", "gold"}:              {"customer/acme"},
		{"offer", "small"}:             {"vm/web-1"},
		{"customer", "acme"}:           {"vdc/acme-edge", "vdc/acme-prod"},
		{"vdc", "acme-prod"}:           {"vm/web-1"},
		{"image", "debian"}:            {"vm/web-1"},
		{"network", "lan"}:             {"nic/web-1-nic"},
		{"disk", "web-1-root"}:         {"vm/web-1"},
		{"nic", "web-1-nic"}:           {"vm/web-1"},
	} {
		kind := model.Kind(what[0])
		if got := InUse(now, kind, idOf(&now, kind, what[1])); !cmp.Equal(got, want) {
			t.Errorf("%v is used by %v, want %v", what, got, want)
		}
	}
	if got := InUse(now, model.KindNode, "n1"); !cmp.Equal(got, []string{"vm/tiny"}) {
		t.Errorf("hv1 is used by %v", got)
	}
}

func TestProblemsInWords(t *testing.T) {
	if schema.Problems(nil) != nil {
		t.Error("no problems are an error")
	}
	for want, problem := range map[string]schema.Problem{
		"f:3: vm/a: wrong: do": {File: "f", Line: 3, Subject: "vm/a", Message: "wrong", Next: "do"},
		"f: wrong":             {File: "f", Message: "wrong"},
		"vm/a: wrong":          {Line: 3, Subject: "vm/a", Message: "wrong"},
	} {
		if got := problem.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := schema.Several([]string{"a", "b", "c", "d", "e", "f", "g"}); got != "a, b, c, d, e, and 2 more" {
		t.Error(got)
	}
}
