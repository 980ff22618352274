package estate

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/coordinator/model"
	"berth/coordinator/schema"
	"berth/shared/units"
)

func TestNewResource(t *testing.T) {
	now := site(t)
	made, err := NewResource(
		now, model.KindCustomer, "umbrella", Wanted{Links: map[string]string{"billing-entity": "mbe", "offer": "gold"}}, "id", epoch,
	)
	want := model.Resource{
		ID: "id", Kind: model.KindCustomer, Name: "umbrella", CreatedAt: epoch, Links: map[string]string{
			schema.LinkBillingEntity: idOf(&now, model.KindBillingEntity, "mbe"), schema.LinkOffer: idOf(&now, model.KindOffer, "gold"),
		},
	}
	if diff := cmp.Diff(want, made); err != nil || diff != "" {
		t.Error(err, diff)
	}
	made, err = NewResource(
		State{}, model.KindCluster, "default", Wanted{Settings: map[string]string{"ram-ratio": "1.50", "overhead": "2G"}}, "id", epoch,
	)
	if err != nil || made.ID != "default" || len(made.Keys) != 3 || made.Settings["ram_ratio"] != "1.5" ||
		made.Settings["overhead"] != "2147483648" {
		t.Errorf("%+v, %v", made, err)
	}
	for want, try := range map[string]func() (model.Resource, error){
		`rack/a: "rack" is no kind of resource: want one of policy, zone, pod, cluster, billing-entity, offer, customer, vdc, pool, image, ` +
			`network, disk, nic, group`: func() (model.Resource, error) {
			return NewResource(now, "rack", "a", Wanted{}, "id", epoch)
		},
		"offer/gold: it exists already: change it, or choose another name": func() (model.Resource, error) {
			return NewResource(now, model.KindOffer, "gold", Wanted{Settings: map[string]string{"for": "vm"}}, "id", epoch)
		},
		`vdc/a: the customer "x" does not exist: add it first, or choose one of 'berth customer list'` + "\n" +
			"vdc/a: a vdc links to no disk: it has customer, zone, pod, cluster and offer\n" +
			"vdc/a: a vdc has no setting size: it has customer, zone, pod, cluster and offer": func() (model.Resource, error) {
			return NewResource(
				now, model.KindVDC, "a",
				Wanted{Links: map[string]string{"customer": "x", "disk": "y"}, Settings: map[string]string{"size": "1"}}, "id", epoch,
			)
		},
		"vdc/a: without a customer: name one: whose it is": func() (model.Resource, error) {
			return NewResource(now, model.KindVDC, "a", Wanted{Links: map[string]string{"cluster": "default"}}, "id", epoch)
		},
		`disk/a b: disk name "a b" is not valid: want 1 to 64 letters, digits, dots, underscores or dashes, ` +
			`the first one a letter or a digit`: func() (model.Resource, error) {
			return NewResource(now, model.KindDisk, "a b", Wanted{Settings: map[string]string{"path": "/a", "format": "raw"}}, "id", epoch)
		},
		`disk/a: format "vmdk" is not valid: want raw or qcow2`: func() (model.Resource, error) {
			return NewResource(now, model.KindDisk, "a", Wanted{Settings: map[string]string{"path": "/a", "format": "vmdk"}}, "id", epoch)
		},
		"billing-entity/b: billing-entity/mbe is the master billing entity already, there is at most one: " +
			"leave out master, or delete the other one": func() (model.Resource, error) {
			return NewResource(now, model.KindBillingEntity, "b", Wanted{Settings: map[string]string{"master": "true"}}, "id", epoch)
		},
	} {
		_, err := try()
		var refused *schema.RefusedError
		if err == nil || err.Error() != want || !errors.As(err, &refused) || !errors.Is(err, model.ErrInvalid) {
			t.Errorf("got\n%v\nwant\n%s", err, want)
		}
	}
}

// What an edit changes can be told without a document.
func TestFieldsOfRecords(t *testing.T) {
	now := site(t)
	acme, _ := now.ResourceByName(model.KindCustomer, "acme")
	changed, err := Edit(now, acme, Wanted{Links: map[string]string{"billing_entity": "mbe"}})
	if want := []FieldChange{{
		Field: schema.LinkBillingEntity, From: "reseller", To: "mbe",
	}}; err != nil || !cmp.Equal(ResourceFields(now, acme, changed), want) {
		t.Errorf("%v, %v", ResourceFields(now, acme, changed), err)
	}
	run("tiny", "n1")(&now)
	before, _ := now.VM("tiny")
	after, vdc := before, "acme-prod"
	after.Spec.Memory = units.GiB
	if after, err = EditVM(now, after, WantedVM{[]string{"vdc"}, model.VM{VDC: vdc}}); err != nil {
		t.Fatal(err)
	}
	want := []FieldChange{
		{Field: schema.LinkVDC, To: "acme-prod", Note: atNextStart, Waits: true},
		{Field: "memory", From: "512M", To: "1G", Note: atNextStart, Waits: true},
	}
	if diff := cmp.Diff(want, VMFields(now, before, after)); diff != "" {
		t.Error(diff)
	}
}

func TestEdit(t *testing.T) {
	now := site(t)
	acme, _ := now.ResourceByName(model.KindCustomer, "acme")
	before := export(t, now, false)
	changed, err := Edit(now, acme, Wanted{Links: map[string]string{"billing_entity": "mbe"}, Unset: []string{"offer"}})
	if err != nil || !cmp.Equal(changed.Links, map[string]string{schema.LinkBillingEntity: idOf(&now, model.KindBillingEntity, "mbe")}) {
		t.Errorf("%+v, %v", changed, err)
	}
	edge, _ := now.ResourceByName(model.KindCluster, "edge")
	changed, err = Edit(now, edge, Wanted{Settings: map[string]string{"msav-steps": "3"}, Unset: []string{"initial-msav", "final_msav"}})
	if err != nil || !cmp.Equal(changed.Settings, map[string]string{"storage": "local", "msav_steps": "3"}) {
		t.Errorf("%+v, %v", changed, err)
	}
	if after := export(t, now, false); after != before {
		t.Errorf("the state itself has changed:\n%s", cmp.Diff(before, after))
	}
	small, _ := now.ResourceByName(model.KindOffer, "small")
	for want, try := range map[string]func() (model.Resource, error){
		"offer/small: for cannot change from vm to nic once the offer is there: delete it and make another one": func() (model.Resource, error) {
			return Edit(now, small, Wanted{Settings: map[string]string{"for": "nic"}})
		},
		"offer/small: without a for: give one": func() (model.Resource, error) { return Edit(now, small, Wanted{Unset: []string{"for"}}) },
		"offer/small: an offer has no price: it has for": func() (model.Resource, error) {
			return Edit(now, small, Wanted{Unset: []string{"price"}})
		},
		"cluster/edge: final_msav 200 is above initial_msav 100": func() (model.Resource, error) {
			return Edit(now, edge, Wanted{Settings: map[string]string{"final_msav": "200"}})
		},
	} {
		if _, err := try(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	err = deletable(now, acme)
	if err == nil || err.Error() != "customer/acme: it is in use by vdc/acme-edge and vdc/acme-prod and cannot be deleted: "+
		"delete or relink what uses it first" {
		t.Errorf("got %v", err)
	}
	if mbe, _ := now.ResourceByName(model.KindBillingEntity, "mbe"); deletable(now, mbe) != nil {
		t.Errorf("the master billing entity, which nothing links to: %v", deletable(now, mbe))
	}
}

// What is broken already does not keep anybody from changing something else.
func TestOldProblemsDoNotBlockOtherChanges(t *testing.T) {
	now := site(t)
	now.Nodes[1].Cluster = "gone"
	acme, _ := now.ResourceByName(model.KindCustomer, "acme")
	if _, err := Edit(now, acme, Wanted{Unset: []string{"offer"}}); err != nil {
		t.Error(err)
	}
}

func TestEditVMAndNode(t *testing.T) {
	now := site(t)
	tiny, _ := now.VM("tiny")
	nics := []string{"web-1-nic"}
	linked, err := EditVM(now, tiny, WantedVM{[]string{"vdc", "image", "disks"}, model.VM{VDC: "acme-prod"}})
	if err != nil || linked.VDC != idOf(&now, model.KindVDC, "acme-prod") || linked.Image != "" || linked.Disks != nil {
		t.Errorf("%+v, %v", linked, err)
	}
	_, err = EditVM(now, tiny, WantedVM{[]string{"nics"}, model.VM{NICs: nics}})
	if err == nil || !strings.Contains(err.Error(), "nic/web-1-nic is attached to vm/") {
		t.Errorf("a NIC that another VM has: %v", err)
	}
	vdc := "nowhere"
	if _, err = EditVM(
		now, tiny, WantedVM{[]string{"vdc"}, model.VM{VDC: vdc}},
	); err == nil || err.Error() != `vm/tiny: the vdc "nowhere" does not exist: add it first, or choose one of 'berth vdc list'` {
		t.Errorf("a VDC that is not there: %v", err)
	}
	tiny.Spec.Memory = 1
	if _, err = EditVM(now, tiny, WantedVM{}); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("one byte of memory: %v", err)
	}
	if _, err = EditVM(now, model.VM{ID: "new", Name: "tiny", Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1}}, WantedVM{}); err == nil {
		t.Error("a name that is taken is not refused")
	}

	node := now.Nodes[0]
	node.Cluster = "gone"
	if err := EditNode(now, node); err == nil || !strings.Contains(err.Error(), "node/hv1: its cluster gone does not exist") {
		t.Errorf("a cluster that is not there: %v", err)
	}
	if err := EditNode(now, now.Nodes[0]); err != nil {
		t.Error(err)
	}
}

// deletable says why a resource cannot be deleted: a *schema.RefusedError names what uses it.
func deletable(now State, r model.Resource) error {
	after := now
	after.Resources = slices.DeleteFunc(slices.Clone(now.Resources), func(other model.Resource) bool { return other.ID == r.ID })
	return schema.Problems(CheckChange(now, after))
}
