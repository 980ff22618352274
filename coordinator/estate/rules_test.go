package estate

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/coordinator/document"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	"berth/shared/units"
)

// What is wrong with a document and the estate that it is applied to together.
func TestDiffRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change     func(*State)
		text, want string
		prune      bool
	}{
		"a dangling link": {
			text: "vdcs: [{name: a, customer: nobody}]",
			want: "e:2: vdc/a: the customer nobody does not exist: declare it under customers, or correct the name",
		},
		"a link to the wrong kind": {
			text: "vdcs: [{name: a, customer: reseller}]",
			want: "e:2: vdc/a: the customer reseller does not exist, billing-entity/reseller is none: " +
				"declare it under customers, or correct the name",
		},
		"an offer for another kind": {
			text: "customers: [{name: a, offer: small}]",
			want: "e:2: customer/a: offer/small is an offer for vms, not for customers: name an offer with for: customer",
		},
		"a VM's dangling links": {
			text: "vms:\n- name: a\n  memory: 1G\n  vcpus: 1\n  vdc: x\n  image: y\n  disks: [d]\n  nics: [n]",
			want: "e:6: vm/a: the vdc x does not exist: declare it under vdcs, or correct the name\n" +
				"e:7: vm/a: the image y does not exist: declare it under images, or correct the name\n" +
				"e:8: vm/a: the disk d does not exist: declare it under disks, or correct the name\n" +
				"e:9: vm/a: the nic n does not exist: declare it under nics, or correct the name",
		},
		"a disk of two VMs": {
			text: "vms: [{name: z, memory: 1G, vcpus: 1, disks: [web-1-root]}]",
			want: "e:2: vm/z: disk/web-1-root is attached to vm/web-1 already, to one VM at a time and once: leave it out of one of them",
		},
		"a NIC twice": {
			text: "nics: [{name: n, network: lan}]\nvms: [{name: z, memory: 1G, vcpus: 1, nics: [n, n]}]",
			want: "e:3: vm/z: nic/n is attached to vm/z already, to one VM at a time and once: leave it out of one of them",
		},
		"one file as two disks": {
			text: "disks: [{name: d, path: /srv/x, format: raw}]\nvms: [{name: z, memory: 1G, vcpus: 1, disks: [d, {path: /srv/x, format: raw}]}]",
			want: `e:3: vm/z: disks[1].path "/srv/x" is not valid: want another file than disks[0]`,
		},
		"a VM's impossible size": {
			text: "vms: [{name: z, memory: 1K, vcpus: 0}]",
			want: "e:2: vm/z: memory 1 KiB is not valid: want 1 MiB to 24 TiB",
		},
		"two master billing entities": {
			text: "billing_entities: [{name: other, master: true}]",
			want: "e:2: billing-entity/other: billing-entity/mbe is the master billing entity already, there is at most one: " +
				"leave out master, or delete the other one",
		},
		"a threshold that rises": {
			text: "clusters: [{name: new, final_msav: 90}]",
			want: "e:2: cluster/new: final_msav 90 is above initial_msav 80: the threshold falls from round to round: " +
				"give final_msav at most initial_msav",
		},
		"an image's format without a file": {
			text: "images: [{name: i, format: raw}]",
			want: "e:2: image/i: path and format say together what its file is, one is missing: give both or none",
		},
		"a fixed setting": {
			text: "offers: [{name: small, for: nic}]",
			want: "e:2: offer/small: for cannot change from vm to nic once the offer is there: delete it and make another one\n" +
				"vm/web-1: offer/small is an offer for nics, not for vms: name an offer with for: vm",
		},
		"a node that has not joined": {
			text: "nodes: [{name: hv9}]",
			want: "e:2: node/hv9: no node of that name has joined: a document does not create nodes: " +
				"'berth token add --for agent' makes the token that one joins with; or remove the entry",
		},
		"a node in no cluster": {
			text: "nodes: [{name: hv2, cluster: moon}]",
			want: "e:2: node/hv2: its cluster moon does not exist: declare the cluster, or correct its name",
		},
		"a node key that is not declared": {
			text: "nodes:\n- name: hv1\n  keys:\n    Premium: 1\n    Rack: 3",
			want: "e:6: node/hv1: cluster/default does not declare the node key Rack: declare it under the cluster's node_keys, " +
				"then all its nodes have it; or remove it here",
		},
		"a node that moves with its VMs": {
			change: run("web-1", "n1"),
			text:   "nodes: [{name: hv1, cluster: edge}]",
			want: "e:2: node/hv1: it cannot move from cluster default to edge with VMs or volumes: vm/web-1: " +
				"drain it, and delete or move what has its volume there\n" +
				"vm/web-1: it runs on node/hv1 in cluster edge, and belongs into cluster default: stop it first, " +
				"or leave it in a VDC of cluster edge\n" +
				"vm/web-1: it prefers node/hv1, which is in cluster edge, and belongs into cluster default: " +
				"take the node from those that it prefers first\n" +
				"group/web-apart: its member node/hv1 is in cluster edge, and the group is of cluster default: " +
				"take it out of the group first, or leave it in cluster default",
		},
		"a running VM that moves to another cluster": {
			change: run("web-1", "n1"),
			text:   "vdcs: [{name: acme-prod, customer: acme, cluster: edge}]",
			want: "vm/web-1: it runs on node/hv1 in cluster default, and belongs into cluster edge: stop it first, " +
				"or leave it in a VDC of cluster default\n" +
				"vm/web-1: it prefers node/hv1, which is in cluster default, and belongs into cluster edge: " +
				"take the node from those that it prefers first",
		},
		"a VM that leaves its disk": {
			change: func(now *State) {
				vm := &now.VMs[indexOf(now, "web-1")]
				vm.VDC, vm.Home, vm.Preferred = idOf(now, model.KindVDC, "acme-edge"), "n2", nil
			},
			text: "clusters: [{name: far, storage: local}]\nvdcs: [{name: acme-edge, customer: acme, cluster: far}]",
			want: "vm/web-1: its disk is on node/hv2 in cluster edge, and it belongs into cluster far: leave it in a VDC of cluster edge",
		},
		"storage under VMs": {
			text: "clusters: [{name: default, storage: local, node_keys: [{name: Premium}]}]",
			want: "e:2: cluster/default: storage cannot change from shared to local while the cluster has VMs: vm/by-hand, vm/tiny and vm/web-1: " +
				"move them to a VDC of another cluster first",
		},
		"what is in use": {
			prune: true,
			text: "vms: [{name: web-1, memory: 2G, vcpus: 2, nics: [web-1-nic]}, {name: tiny, memory: 1G, vcpus: 1}]\n" +
				"nodes: [{name: hv1}]",
			want: "cluster/default: it is in use by node/hv1, vm/tiny and vm/web-1 and cannot be deleted: " +
				"name it in the document, it is there for what is in no other cluster\n" +
				"cluster/edge: it is in use by node/hv2 and cannot be deleted: delete or relink what uses it first\n" +
				"policy/spread: it is in use by cluster/default and cannot be deleted: delete or relink what uses it first\n" +
				"network/lan: it is in use by nic/web-1-nic and cannot be deleted: delete or relink what uses it first\n" +
				"nic/web-1-nic: it is in use by vm/web-1 and cannot be deleted: delete or relink what uses it first",
		},
		"a running VM": {
			change: run("by-hand", "n1"), prune: true,
			text: "clusters: [{name: default}, {name: edge, storage: local}]\nnodes: [{name: hv1}]",
			want: "vm/by-hand: it runs, or an operation works on it, and cannot be deleted: stop it first",
		},
		"XML with another UUID": {
			text: "vms: [{name: tiny, xml: \"<domain type='kvm'><uuid>6b4e03f2-8f3a-4f4c-9f0e-2f8a3f0c9b1d</uuid>" +
				"<memory>1048576</memory><vcpu>1</vcpu></domain>\"}]",
			want: "e:2: vm/tiny: its XML says <uuid> 6b4e03f2-8f3a-4f4c-9f0e-2f8a3f0c9b1d, it has vm-15: correct or leave out <uuid>",
		},
		"XML with a VM's UUID": {
			change: func(now *State) { now.VMs[0].ID = "6b4e03f2-8f3a-4f4c-9f0e-2f8a3f0c9b1d" },
			text: "vms: [{name: z, xml: \"<domain type='kvm'><uuid>6B4E03F2-8f3a-4f4c-9f0e-2f8a3f0c9b1d</uuid>" +
				"<memory>1048576</memory><vcpu>1</vcpu></domain>\"}]",
			want: "e:2: vm/z: its XML says <uuid> 6b4e03f2-8f3a-4f4c-9f0e-2f8a3f0c9b1d, which vm/web-1 has: leave out <uuid>",
		},
		"XML beside networks": {
			text: "vms: [{name: z, networks: [default], xml: \"<domain type='kvm'><memory>1048576</memory><vcpu>1</vcpu></domain>\"}]",
			want: "e:2: vm/z: networks together with xml is not valid: want one or the other: the XML says it all",
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := site(t)
			if c.change != nil {
				c.change(&now)
			}
			doc, problems := document.Parse("e", []byte(head+c.text))
			if len(problems) > 0 {
				t.Fatalf("does not parse:\n%s", lines(problems))
			}
			plan, problems := Diff(now, doc, c.prune)
			got := strings.TrimSuffix(strings.ReplaceAll("\n"+lines(problems), "\ne: ", "\n")[1:], "\n")
			if !sameLines(got, c.want) || len(plan.Changes) > 0 {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// sameLines compares without regard to the order of what has no line of the document.
func sameLines(a, b string) bool {
	left, right := strings.Split(a, "\n"), strings.Split(b, "\n")
	slices.Sort(left)
	slices.Sort(right)
	return cmp.Equal(left, right)
}

// run is a VM that a node holds.
func run(name, node string) func(*State) {
	return func(now *State) {
		vm := &now.VMs[indexOf(now, name)]
		vm.Desired, vm.Holder, vm.Epoch = model.Running, node, 1
	}
}

func indexOf(now *State, name string) int {
	for i := range now.VMs {
		if now.VMs[i].Name == name {
			return i
		}
	}
	return -1
}

func idOf(now *State, kind model.Kind, name string) string {
	r, _ := now.ResourceByName(kind, name)
	return r.ID
}

// Everything that is wrong is told at once, by line.
func TestProblemsOfAWholeDocument(t *testing.T) {
	text, err := os.ReadFile("testdata/bad.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, problems := document.Parse("bad.yaml", text)
	golden(t, "bad.golden", lines(problems))

	text, err = os.ReadFile("testdata/misfit.yaml")
	if err != nil {
		t.Fatal(err)
	}
	now := site(t)
	run("web-1", "n1")(&now)
	_, problems = Diff(now, read(t, string(text)), true)
	golden(t, "misfit.golden", lines(problems))
}

// Rules that no document and no edit can break hold for what is stored as well.
func TestCheckRefusesBrokenRecords(t *testing.T) {
	for want, change := range map[string]func(*State){
		`rack/a: no kind of resource is called "rack": delete it`: func(s *State) {
			s.Resources = append(s.Resources, model.Resource{ID: "r", Kind: "rack", Name: "a"})
		},
		"offer/small: two offers have the name: rename one": func(s *State) {
			r, _ := s.ResourceByName(model.KindOffer, "small")
			r.ID = "twin"
			s.Resources = append(s.Resources, r)
		},
		"offer/copy: another resource has its ID gold-id: delete one": func(s *State) {
			s.Resources = append(s.Resources,
				model.Resource{ID: "gold-id", Kind: model.KindOffer, Name: "copy", Settings: map[string]string{schema.SettingFor: "vm"}},
				model.Resource{ID: "gold-id", Kind: model.KindOffer, Name: "copy2", Settings: map[string]string{schema.SettingFor: "vm"}})
		},
		"cluster/second: the cluster default, and only it, has the ID default: delete it": func(s *State) {
			edit(s, model.KindCluster, model.DefaultCluster, func(r *model.Resource) { r.Name = "second" })
		},
		"billing-entity/mbe: a billing-entity links to no customer: links lead up the hierarchy, so that they cannot go round: " +
			"remove the link": func(s *State) {
			edit(s, model.KindBillingEntity, "mbe", func(r *model.Resource) {
				r.Links = map[string]string{schema.LinkCustomer: idOf(s, model.KindCustomer, "acme")}
			})
		},
		"vdc/acme-prod: its customer is offer/gold, want a customer: link it to a customer": func(s *State) {
			edit(s, model.KindVDC, "acme-prod", func(r *model.Resource) {
				r.Links = map[string]string{schema.LinkCustomer: idOf(s, model.KindOffer, "gold")}
			})
		},
		"vdc/acme-prod: its customer, the customer with ID gone, does not exist: link it to one that does": func(s *State) {
			edit(s, model.KindVDC, "acme-prod", func(r *model.Resource) { r.Links = map[string]string{schema.LinkCustomer: "gone"} })
		},
		"vdc/acme-prod: without a customer: name one: whose it is": func(s *State) {
			edit(s, model.KindVDC, "acme-prod", func(r *model.Resource) { r.Links = nil })
		},
		`cluster/edge: ram_ratio is kept as "1.0", want "1": set it again`: func(s *State) {
			edit(s, model.KindCluster, "edge", func(r *model.Resource) { r.Settings[model.SettingRAMRatio] = "1.0" })
		},
		`cluster/edge: ram_ratio "x" is not valid: want a number from 0.1 to 16`: func(s *State) {
			edit(s, model.KindCluster, "edge", func(r *model.Resource) { r.Settings[model.SettingRAMRatio] = "x" })
		},
		"cluster/edge: a cluster has no setting colour: remove it": func(s *State) {
			edit(s, model.KindCluster, "edge", func(r *model.Resource) { r.Settings["colour"] = "red" })
		},
		"offer/gold: without a for: give one: customer, image, vdc, vm, disk, network or nic": func(s *State) {
			edit(s, model.KindOffer, "gold", func(r *model.Resource) { r.Settings = nil })
		},
		"offer/gold: an offer declares keys of nodes: declare them on a cluster": func(s *State) {
			edit(s, model.KindOffer, "gold", func(r *model.Resource) { r.NodeKeys = []model.NodeKey{{Name: "K"}} })
		},
		"cluster/edge: 65 node keys, at most 64 are kept: declare fewer": func(s *State) {
			edit(s, model.KindCluster, "edge", func(r *model.Resource) {
				for i := range model.MaxKeys + 1 {
					r.NodeKeys = append(r.NodeKeys, model.NodeKey{Name: "K" + schema.Figure(float64(i))})
				}
			})
		},
		"cluster/edge: two node keys K: keep one": func(s *State) {
			edit(s, model.KindCluster, "edge", func(r *model.Resource) { r.NodeKeys = []model.NodeKey{{Name: "K"}, {Name: "K"}} })
		},
		"offer/gold: 65 keys, at most 64 are kept on one resource: set fewer": func(s *State) {
			edit(s, model.KindOffer, "gold", func(r *model.Resource) {
				r.Keys = nil
				for i := range model.MaxKeys + 1 {
					r.Keys = append(r.Keys, model.Key{Class: model.SystemKey, Name: "K" + schema.Figure(float64(i))})
				}
			})
		},
		"group/web-apart: its member, the vm with ID gone, does not exist: leave it out": func(s *State) {
			edit(s, model.KindGroup, "web-apart", func(r *model.Resource) { r.Members[model.MembersVMs] = []string{"gone"} })
		},
		"group/web-apart: vms lists tiny twice: keep one": func(s *State) {
			edit(s, model.KindGroup, "web-apart", func(r *model.Resource) {
				r.Members[model.MembersVMs] = append(r.Members[model.MembersVMs], r.Members[model.MembersVMs]...)
			})
		},
		"group/web-apart: nodes are not kept in the order of their IDs: set them again": func(s *State) {
			edit(s, model.KindGroup, "web-apart", func(r *model.Resource) { r.Members[model.MembersNodes] = []string{"n2", "n1"} })
		},
		"group/web-apart: its member, the node with ID vm-15, does not exist: leave it out": func(s *State) {
			edit(s, model.KindGroup, "web-apart", func(r *model.Resource) { r.Members[model.MembersNodes] = []string{"vm-15"} })
		},
		"offer/gold: an offer has no members vms: remove them": func(s *State) {
			edit(s, model.KindOffer, "gold", func(r *model.Resource) { r.Members = map[string][]string{"vms": {"vm-15"}} })
		},
		"offer/gold: an offer has no list words: remove it": func(s *State) {
			edit(s, model.KindOffer, "gold", func(r *model.Resource) { r.Lists = map[string][]string{"words": {"x"}} })
		},
		`policy/spread: weighers is kept as ["customer-keys=2.0"], want ["customer-keys=2"]: set it again`: func(s *State) {
			edit(s, model.KindPolicy, "spread", func(r *model.Resource) { r.Lists[schema.ListWeighers] = []string{"customer-keys=2.0"} })
		},
		`policy/spread: weighers "customer-keys" is not valid: want NAME=NUMBER, a finite number from -1e+09 to 1e+09`: func(s *State) {
			edit(s, model.KindPolicy, "spread", func(r *model.Resource) { r.Lists[schema.ListWeighers] = []string{"customer-keys"} })
		},
		"policy/spread: key K on a policy is not valid: want keys only on VMs and what is above them: a policy is not": func(s *State) {
			edit(s, model.KindPolicy, "spread", func(r *model.Resource) { r.Keys = []model.Key{{Class: model.SystemKey, Name: "K"}} })
		},
		"vm/web-1: what it prefers, the node with ID gone, does not exist: " +
			"leave it out": func(s *State) { s.VMs[0].Preferred = []string{"gone"} },
		"vm/web-1: two customer keys Group1: keep one": func(s *State) { s.VMs[0].Keys = append(s.VMs[0].Keys, s.VMs[0].Keys[0]) },
		"node/hv1: ram_ratio 99 is not valid: want 0.1 to 16": func(s *State) {
			ratio := 99.0
			s.Nodes[0].Settings.RAMRatio = &ratio
		},
		"node/hv2: two nodes have the name: rename one": func(s *State) {
			s.Nodes = append(s.Nodes, model.Node{ID: "n3", Name: "hv2", Cluster: "default"})
		},
		"vm/tiny: two vms have the name: rename one": func(s *State) {
			s.VMs = append(s.VMs, model.VM{ID: "twin", Name: "tiny", Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1}})
		},
		`vm/a b: vm name "a b" is not valid: want 1 to 64 letters, digits, dots, underscores or dashes, ` +
			`the first one a letter or a digit`: func(s *State) {
			s.VMs = append(s.VMs, model.VM{ID: "odd", Name: "a b", Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1}})
		},
	} {
		now := site(t)
		change(&now)
		if got := lines(Check(now)); !strings.Contains("\n"+got, "\n"+want+"\n") {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func edit(s *State, kind model.Kind, name string, do func(*model.Resource)) {
	for i := range s.Resources {
		if r := &s.Resources[i]; r.Kind == kind && r.Name == name {
			do(r)
		}
	}
}

// What a kind links to stands before it, so that links cannot go round.
func TestLinksLeadUpTheTable(t *testing.T) {
	before := make(map[model.Kind]bool)
	for _, form := range schema.Forms() {
		for _, link := range form.Links {
			if !before[link.To] {
				t.Errorf("%s links to %s, which does not stand before it", form.Kind, link.To)
			}
		}
		before[form.Kind] = true
	}
}
