package state

import (
	"slices"
	"strings"
	"testing"

	"berth/coordinator/model"
)

// estate is a state with links: a customer's VDC in a cluster of its own, with a node and a VM that has a disk and a NIC.
func estate(t *testing.T) *member {
	m := newMember(t)
	m.stored(putResource(0, resource("c1", model.KindCluster, "gold", nil)))
	m.stored(putResource(0, resource("c2", model.KindCustomer, "acme", nil)))
	m.stored(putResource(0, resource("d1", model.KindVDC, "prod", map[string]string{"customer": "c2", "cluster": "c1"})))
	m.stored(putResource(0, resource("k1", model.KindDisk, "root", nil)))
	m.stored(putResource(0, resource("k2", model.KindDisk, "spare", nil)))
	member := node("n1", "alpha")
	member.Cluster = "gold"
	m.stored(putNode(0, member))
	guest := vm("v1", "web", 0)
	guest.VDC, guest.Disks = "d1", []string{"k1"}
	m.stored(putVM(0, guest))
	return m
}

func TestWhatIsNamedExistsAndStays(t *testing.T) {
	linked := func(change func(*model.VM)) Command {
		other := vm("v2", "db", 0)
		change(&other)
		return putVM(0, other)
	}
	stray := node("n2", "beta")
	stray.Cluster = "silver"
	tests := map[string]struct {
		code    RefusalCode
		command Command
		says    string
	}{
		"a resource linked to nothing": {
			Stale, putResource(0, resource("d2", model.KindVDC, "test", map[string]string{"customer": "c9"})),
			`vdc "test" names resource "c9"`,
		},
		"a VM in no VDC":         {Stale, linked(func(v *model.VM) { v.VDC = "d9" }), `VM "db" names resource "d9"`},
		"a VM without its offer": {Stale, linked(func(v *model.VM) { v.Offer = "o9" }), "o9"},
		"a VM without its image": {Stale, linked(func(v *model.VM) { v.Image = "i9" }), "i9"},
		"a VM without its disk":  {Stale, linked(func(v *model.VM) { v.Disks = []string{"k2", "k9"} }), "k9"},
		"a VM without its NIC":   {Stale, linked(func(v *model.VM) { v.NICs = []string{"e9"} }), "e9"},
		"a disk in two VMs":      {InUse, linked(func(v *model.VM) { v.Disks = []string{"k1"} }), `disk "root" is in use by VM "web"`},
		"a node in no cluster":   {Stale, putNode(0, stray), `node "beta" is in cluster "silver"`},
		"a cluster with a VDC":   {InUse, remove(Resources, "c1", 1), `cluster "gold" is in use by vdc "prod"`},
		"a customer with a VDC":  {InUse, remove(Resources, "c2", 2), `customer "acme" is in use by vdc "prod"`},
		"a VDC with a VM":        {InUse, remove(Resources, "d1", 3), `vdc "prod" is in use by VM "web"`},
		"a VM's disk":            {InUse, remove(Resources, "k1", 4), `disk "root" is in use by VM "web"`},
		"a cluster's name": {
			InUse, putResource(1, resource("c1", model.KindCluster, "silver", nil)),
			`cluster "gold" is in use by node "alpha"`,
		},
		"another kind":   {Invalid, putResource(2, resource("c2", model.KindVDC, "acme", nil)), `customer "acme" cannot become a vdc`},
		"a name that is": {NameTaken, putResource(0, resource("k3", model.KindDisk, "root", nil)), "k1"},
		"a link of nothing": {
			Invalid, putResource(0, resource("d2", model.KindVDC, "test", map[string]string{"customer": ""})), "empty link",
		},
		"a link with a zero byte": {Invalid, linked(func(v *model.VM) { v.Disks = []string{"a\x00b"} }), "zero byte"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if refusal := estate(t).refused(tt.code, tt.command); !strings.Contains(refusal.Message, tt.says) {
				t.Errorf("refused with %q, want it to say %q", refusal.Message, tt.says)
			}
		})
	}
}

// Whoever deletes a cluster has read that no VDC and no node is in it. One that came meanwhile changes no record that
// such a command expects.
func TestAClusterWithoutVDCsIsStillKeptByItsNodes(t *testing.T) {
	m := estate(t)
	m.stored(remove(VMs, "v1", 7))
	m.stored(remove(Resources, "d1", 3))
	if refusal := m.refused(InUse, remove(Resources, "c1", 1)); !strings.Contains(refusal.Message, `node "alpha"`) {
		t.Errorf("refused with %q, want it to name the node", refusal.Message)
	}
	m.stored(putNode(6, node("n1", "alpha"))) // back to the default cluster, which needs no record
	m.stored(remove(Resources, "c1", 1))
}

func TestOneCommandMayTakeALinkAndItsEndTogether(t *testing.T) {
	m := estate(t)
	m.stored(Command{
		Expect: []Expectation{expect(VMs, "v1", 7), expect(Resources, "k1", 4), expect(Resources, "k3", 0), expect(VMs, "v2", 0)},
		Delete: []Record{{VMs, "v1"}, {Resources, "k1"}},
		Resources: []model.Resource{
			resource("k3", model.KindDisk, "root", nil), // the freed name
		},
		VMs: []model.VM{func() model.VM {
			other := vm("v2", "web", 0)
			other.VDC, other.Disks = "d1", []string{"k3"}
			return other
		}()},
	})
	x := m.store.Snapshot()
	if disk, found := x.ResourceByName(model.KindDisk, "root"); !found || disk.ID != "k3" {
		t.Errorf("disk root is %+v", disk)
	}
	if got := x.Resources(model.KindDisk); len(got) != 2 || got[0].Name != "root" || got[1].Name != "spare" {
		t.Errorf("the disks are %+v", got)
	}
	if err := x.verify(); err != nil {
		t.Error(err)
	}
}

func TestTheDefaultClusterNeedsNoRecord(t *testing.T) {
	m := newMember(t)
	m.stored(putResource(0, resource("d1", model.KindVDC, "prod", map[string]string{"cluster": model.DefaultCluster})))
	m.stored(putNode(0, node("n1", "alpha")))
	if err := m.store.Snapshot().verify(); err != nil {
		t.Error(err)
	}
}

// A link that is taken back frees its end, also in the index.
func TestALinkThatIsTakenBackFreesItsEnd(t *testing.T) {
	m := estate(t)
	guest := vm("v1", "web", 0)
	guest.VDC, guest.Disks = "d1", []string{"k2", "k1"}
	m.stored(putVM(7, guest))
	guest.Disks = []string{"k2"}
	m.stored(putVM(8, guest))
	m.stored(remove(Resources, "k1", 4))
	m.refused(InUse, remove(Resources, "k2", 5))
}

func TestVMsAreFoundByWhatTheyLinkTo(t *testing.T) {
	m := newMember(t)
	m.stored(putResource(0, resource("d1", model.KindDisk, "root", nil)))
	m.stored(putResource(0, resource("o1", model.KindOffer, "small", nil)))
	web, db := vm("v1", "web", 0), vm("v2", "db", 0)
	web.Disks, web.Offer, db.Offer = []string{"d1"}, "o1", "o1"
	m.stored(putVM(0, web))
	m.stored(putVM(0, db))
	x := m.store.Snapshot()
	name := func(v model.VM) string { return v.Name }
	check(t, "VMs of the disk", names(x.VMsLinkedTo("d1"), name), "web")
	check(t, "VMs of the offer", names(x.VMsLinkedTo("o1"), name), "web", "db")
	for _, id := range []string{"", "d", "d1\x00"} {
		check(t, "VMs of "+id, names(x.VMsLinkedTo(id), name))
	}
}

func TestVMsAreFoundByTheDisksThatTheyName(t *testing.T) {
	m := newMember(t)
	web, db, old := vm("v1", "web", 0), vm("v2", "db", 0), vm("v3", "old", 0)
	web.Spec.Disks = []model.Disk{{Path: "/srv/x/../web.qcow2"}, {Path: "/srv/setup.iso", ReadOnly: true}}
	db.Spec.Disks = []model.Disk{{Pool: "vms", Volume: "db.qcow2"}}
	db.Drift = &model.Drift{Edits: []model.DeviceEdit{{Kind: "disk", Key: "vdb", Source: model.DiskSource{Path: "/srv/web.qcow2"}}}}
	old.Spec.XML = "<domain><devices><disk><source file='/srv/old.img'/><target dev='vda'/></disk></devices></domain>"
	for _, one := range []model.VM{web, db, old} {
		m.stored(putVM(0, one))
	}
	at := func(disk string) (found []string) {
		for one := range m.store.Snapshot().SharedVMsWithDisk(disk) {
			found = append(found, one.Name)
		}
		return found
	}
	for disk, want := range map[string][]string{
		"/srv/web.qcow2": {"web", "db"}, "vms/db.qcow2": {"db"}, "/srv/old.img": {"old"}, "/srv/setup.iso": nil, "": nil, "/srv/web": nil,
	} {
		if found := at(disk); !slices.Equal(found, want) {
			t.Errorf("%s: %v, want %v", disk, found, want)
		}
	}
	db.Drift = nil
	m.stored(putVM(2, db))
	if found := at("/srv/web.qcow2"); !slices.Equal(found, []string{"web"}) {
		t.Errorf("after it was given back: %v", found)
	}
}
