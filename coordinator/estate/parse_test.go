package estate

import (
	"strings"
	"testing"

	"berth/coordinator/document"
)

const head = "format: " + document.Format + "\n"

// What is wrong with a document by itself.
func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":        {"", "e:1: the document is empty: begin with format: berth/estate/v1"},
		"only a comment": {"# nothing", "e:1: the document is empty: begin with format: berth/estate/v1"},
		"no YAML":        {head + "clusters: [", "e:2: not YAML: did not find expected node content: see 'berth apply --help' for an example"},
		"two documents":  {head + "---\n" + head, "e:2: more than one document: declare the estate in one, without ---"},
		"no fields":      {"- a", "e:1: want fields, found a list: begin with format: berth/estate/v1"},
		"no format":      {"clusters: []", "e:1: the format is not berth/estate/v1: begin with format: berth/estate/v1"},
		"another format": {"format: berth/estate/v9", "e:1: the format is not berth/estate/v1: begin with format: berth/estate/v1"},
		"a scenario": {
			"format: berth/scenario/v1\nseed: 1\nnodes: [{name: hv1, memory: 1G}]",
			"e:1: the format is not berth/estate/v1: that is a scenario, which 'berth simulate' reads; what stands under its estate: can be applied",
		},
		"an unknown kind": {
			head + "racks: []",
			`e:2: unknown field "racks": known are format, policies, zones, pods, clusters, billing_entities, offers, customers, vdcs, pools, ` +
				`images, networks, disks, nics, groups, nodes, vms`,
		},
		"a section twice":  {head + "vdcs: []\nvdcs: []", `e:3: "vdcs" is there twice, first in line 2: keep one`},
		"an empty section": {head + "vdcs:", `e:2: "vdcs" is empty: give it a value or leave the line out`},
		"no list":          {head + "vdcs: {}", "e:2: vdcs: want a list, found fields: write [] or one - a line"},
		"an alias": {
			head + "offers: [&o {name: a, for: vm}, *o]",
			"e:2: anchors and aliases are not taken, they may go round in a circle: write the values out",
		},
		"a circle": {
			head + "offers: &o [*o]", "e:2: anchors and aliases are not taken, they may go round in a circle: write the values out",
		},
		"a tag":            {head + "offers: !!seq []", "e:2: the tag !!seq is not taken: leave it out"},
		"a merge":          {head + "offers: [{<<: {for: vm}, name: a}]", "e:2: << is not taken: write the values out"},
		"a nameless entry": {head + "offers: [{for: vm}]", "e:2: an offer without a name: give it a name"},
		"an entry's kind":  {head + "offers: [vm]", `e:2: want fields, found "vm": write name: value, one a line`},
		"a bad name": {
			head + "offers: [{name: a b, for: vm}]",
			`e:2: offer name "a b" is not valid: want 1 to 64 letters, digits, dots, underscores or dashes, the first one a letter or a digit`,
		},
		"a UUID as a name": {
			head + "vms: [{name: 6b4e03f2-8f3a-4f4c-9f0e-2f8a3f0c9b1d}]",
			`e:2: vm name "6b4e03f2-8f3a-4f4c-9f0e-2f8a3f0c9b1d" is not valid: want something else than a UUID, which is kept for IDs`,
		},
		"a name twice": {
			head + "offers: [{name: a, for: vm},\n{name: a, for: nic}]",
			"e:3: offer/a: another offer has the name, in line 2: rename one or leave it out",
		},
		"an unknown field": {
			head + "offers: [{name: a, for: vm, form: nic}]", `e:2: offer/a: unknown field "form": known are name, for, planner, keys`,
		},
		"no link": {head + "vdcs: [{name: a}]", "e:2: vdc/a: without a customer: name one: whose it is"},
		"no setting": {
			head + "offers: [{name: a}]", "e:2: offer/a: without a for: give one: customer, image, vdc, vm, disk, network or nic",
		},
		"a bad setting": {
			head + "clusters: [{name: a, ram_ratio: 150}]", `e:2: cluster/a: ram_ratio "150" is not valid: want a number from 0.1 to 16`,
		},
		"NaN as a setting": {
			head + "clusters: [{name: a, initial_msav: .nan}]",
			`e:2: cluster/a: initial_msav ".nan" is not valid: want a number from -1e+09 to 1e+09`,
		},
		"a list as a value": {
			head + "clusters: [{name: a, ram_ratio: [1]}]",
			"e:2: cluster/a: ram_ratio: want one value, found a list: write it behind the colon",
		},
		"a loop upwards": {
			head + "billing_entities: [{name: a, customer: b}]",
			`e:2: billing-entity/a: unknown field "customer": known are name, master, keys`,
		},

		"a key without a value": {
			head + "offers: [{name: a, for: vm, keys: [{name: K}]}]",
			"e:2: offer/a: a key needs a name and a value: write {name: NAME, value: NUMBER, weight: NUMBER}",
		},
		"a text as a value": {
			head + "offers: [{name: a, for: vm, keys: [{name: K, value: high}]}]",
			`e:2: offer/a: key K value "high" is not valid: want a number, without quotes`,
		},
		"a quoted value": {
			head + `offers: [{name: a, for: vm, keys: [{name: K, value: "1"}]}]`,
			`e:2: offer/a: key K value "1" is not valid: want a number, without quotes`,
		},
		"NaN as a value": {
			head + "offers: [{name: a, for: vm, keys: [{name: K, value: .NaN}]}]",
			"e:2: offer/a: key K value .NaN is not valid: want a finite number from -1e9 to 1e9",
		},
		"an infinite value": {
			head + "offers: [{name: a, for: vm, keys: [{name: K, value: -.inf}]}]",
			"e:2: offer/a: key K value -.inf is not valid: want a finite number from -1e9 to 1e9",
		},
		"too large a weight": {
			head + "offers: [{name: a, for: vm, keys: [{name: K, value: 1, weight: 2e9}]}]",
			"e:2: offer/a: key K weight 2e+09 is not valid: want a finite number from -1e9 to 1e9",
		},
		"a text as a weight": {
			head + "offers: [{name: a, for: vm, keys: [{name: K, value: 1, weight: lots}]}]",
			`e:2: offer/a: key K weight "lots" is not valid: want a number, without quotes`,
		},
		"an unknown class": {
			head + "offers: [{name: a, for: vm, keys: [{name: K, value: 1, class: mine}]}]",
			`e:2: offer/a: key K class "mine" is not valid: want system, billing-entity or customer`,
		},
		"a key twice": {
			head + "offers: [{name: a, for: vm, keys: [{name: K, value: 1}, {name: K, value: 2}]}]",
			"e:2: offer/a: two system keys K: keep one",
		},
		"a reserved system key": {
			head + "vms: [{name: a, memory: 1G, vcpus: 1, keys: [{name: _K, value: 1}]}]",
			"e:2: vm/a: key _K as a system key is not valid: want a name without leading underscore: " +
				"reserved keys are set on nodes, and asked for by billing-entity and customer keys",
		},
		"a fourth special key": {
			head + "clusters: [{name: a, keys: [{name: '#DISK', value: 0}]}]",
			"e:2: cluster/a: key #DISK as a special key is not valid: want one of #RAM, #CPU and #LOAD",
		},
		"a customer's special key": {
			head + "vms: [{name: a, memory: 1G, vcpus: 1, keys: [{name: '#RAM', value: 0, class: customer}]}]",
			"e:2: vm/a: key #RAM as a customer key is not valid: want a name without leading #: #RAM, #CPU and #LOAD are system keys",
		},
		"a customer key on the customer": {
			head + "customers: [{name: a, keys: [{name: K, value: 1, class: customer}]}]",
			"e:2: customer/a: key K as a customer key on a customer is not valid: want customer keys only on images, VMs, disks, networks and NICs",
		},
		"a weight on a plain node key": {
			head + "clusters: [{name: a, node_keys: [{name: K, weight: 5}]}]",
			"e:2: cluster/a: node key K weight 5 is not valid: want none: only a sticky node key has a weight, the VM's own keys weigh the others",
		},
		"a sticky key without a weight": {
			head + "clusters: [{name: a, node_keys: [{name: K, sticky: true}]}]",
			"e:2: cluster/a: node key K weight 0 is not valid: want a weight other than 0, for the copy that VMs take along",
		},
		"a special node key": {
			head + "clusters: [{name: a, node_keys: [{name: '#RAM'}]}]",
			"e:2: cluster/a: node key #RAM with a leading # is not valid: want another name: nodes have #RAM, #CPU and #LOAD by themselves",
		},
		"a node key twice": {
			head + "clusters: [{name: a, node_keys: [{name: K}, {name: K}]}]", "e:2: cluster/a: two node keys K: keep one",
		},
		"a nameless node key": {
			head + "clusters: [{name: a, node_keys: [{default: 1}]}]",
			"e:2: cluster/a: a node key without a name: write {name: NAME, default: NUMBER}",
		},
		"sticky maybe": {
			head + "clusters: [{name: a, node_keys: [{name: K, sticky: maybe}]}]",
			`e:2: cluster/a: node key K sticky "maybe" is not valid: want true or false`,
		},
		"a node's text value": {
			head + "nodes: [{name: a, keys: {K: much}}]", `e:2: node/a: key K "much" is not valid: want a number, without quotes`,
		},
		"a node's key twice": {
			head + "nodes: [{name: a, keys: {K: 1, K: 2}}]", `e:2: node/a: "K" is there twice, first in line 2: keep one`,
		},
		"a node's empty key": {
			head + "nodes: [{name: a, keys: {K: }}]", `e:2: node/a: "K" is empty: give it a value or leave the line out`,
		},
		"a node's ratio": {head + "nodes: [{name: a, ram_ratio: 17}]", "e:2: node/a: ram_ratio 17 is not valid: want 0.1 to 16"},
		"a node's overhead": {
			head + "nodes: [{name: a, overhead: much}]", `e:2: node/a: overhead "much" is not valid: want a size, for instance 512M or 4G`,
		},
		"maintenance is not declared": {
			head + "nodes: [{name: a, maintenance: true}]",
			`e:2: node/a: unknown field "maintenance": known are name, cluster, ram_ratio, cpu_ratio, overhead, keys, labels, management, ` +
				`unbalanced`,
		},

		"a VM without a size": {
			head + "vms: [{name: a, memory: 1G}]",
			"e:2: vm/a: memory and vcpus are missing: say how large it is, for instance memory: 2G and vcpus: 2",
		},
		"half a vCPU": {head + "vms: [{name: a, memory: 1G, vcpus: 0.5}]", `e:2: vm/a: vcpus "0.5" is not valid: want a whole number`},
		"a named disk last": {
			head + "vms: [{name: a, memory: 1G, vcpus: 1, disks: [{path: /d, format: raw}, root]}]",
			"e:2: vm/a: the disk root is written after a plain file, and attached before it: write the names of disks first, then the files",
		},
		"a disk's field": {
			head + "vms: [{name: a, memory: 1G, vcpus: 1, disks: [{path: /d, format: raw, size: 1G}]}]",
			`e:2: vm/a: unknown field "size": known are path, format, bus, read_only`,
		},
		"XML that is none": {
			head + "vms: [{name: a, xml: '<domain'}]",
			"e:2: vm/a: xml: domain XML is not valid: line 1: unexpected EOF: check the document with `virt-xml-validate`",
		},
		"XML of another name": {
			head + "vms: [{name: a, xml: \"<domain type='kvm'><name>b</name><memory>1048576</memory><vcpu>1</vcpu></domain>\"}]",
			`e:2: vm/a: its XML names it "b": make the names equal or leave out <name>`,
		},
		"XML of another size": {
			head + "vms: [{name: a, memory: 2G, xml: \"<domain type='kvm'><memory>1048576</memory><vcpu>1</vcpu></domain>\"}]",
			"e:2: vm/a: its XML gives it 1 GiB of memory, the document 2 GiB: leave out memory",
		},
		"XML with other vCPUs": {
			head + "vms: [{name: a, vcpus: 2, xml: \"<domain type='kvm'><memory>1048576</memory><vcpu>1</vcpu></domain>\"}]",
			"e:2: vm/a: its XML gives it 1 vCPUs, the document 2: leave out vcpus",
		},
		"everything in one run": {
			head + "offers: [{name: a, for: x}]\nvdcs: [{name: b}]",
			"e:2: offer/a: for \"x\" is not valid: want customer, image, vdc, vm, disk, network or nic\n" +
				"e:3: vdc/b: without a customer: name one: whose it is",
		},
	} {
		t.Run(name, func(t *testing.T) {
			doc, problems := document.Parse("e", []byte(c.text))
			if got := strings.TrimSuffix(lines(problems), "\n"); got != c.want || doc != nil {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestParseRefusesWhatIsTooLarge(t *testing.T) {
	_, problems := document.Parse("e", make([]byte, document.MaxDocument+1))
	if len(problems) != 1 || !strings.Contains(problems[0].String(), "at most 16777216 are read") {
		t.Errorf("got %v", problems)
	}
}
