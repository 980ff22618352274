package estate

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/key"
	"berth/coordinator/schema"
	"berth/shared/units"
)

// ladder is an estate in which one key K is set on each of the sixteen levels above the VM "web", with the level's number,
// counted from 1, as its value.
func ladder() (*State, model.VM) {
	k := func(level int) []model.Key {
		return []model.Key{{Class: model.SystemKey, Name: "K", Value: float64(level), Weight: 5}}
	}
	offer := func(level int, what string) model.Resource {
		return model.Resource{
			ID: "o-" + what, Kind: model.KindOffer, Name: "for-" + what, Keys: k(level),
			Settings: map[string]string{schema.SettingFor: what},
		}
	}
	now := &State{Resources: []model.Resource{
		{ID: "c", Kind: model.KindCluster, Name: "east", Keys: k(1)},
		{ID: "be", Kind: model.KindBillingEntity, Name: "reseller", Keys: k(2)},
		offer(3, "customer"), offer(5, "image"), offer(7, "vdc"), offer(9, "vm"), offer(11, "disk"), offer(13, "network"),
		offer(15, "nic"),
		{
			ID: "cu", Kind: model.KindCustomer, Name: "acme", Keys: k(4),
			Links: map[string]string{schema.LinkBillingEntity: "be", schema.LinkOffer: "o-customer"},
		},
		{ID: "im", Kind: model.KindImage, Name: "debian", Keys: k(6), Links: map[string]string{schema.LinkOffer: "o-image"}},
		{
			ID: "vd", Kind: model.KindVDC, Name: "prod", Keys: k(8),
			Links: map[string]string{schema.LinkCustomer: "cu", schema.LinkCluster: "c", schema.LinkOffer: "o-vdc"},
		},
		{
			ID: "d1", Kind: model.KindDisk, Name: "root", Keys: k(12), Links: map[string]string{schema.LinkOffer: "o-disk"},
			Settings: map[string]string{schema.SettingPath: "/srv/root.qcow2", schema.SettingFormat: "qcow2"},
		},
		{
			ID: "d2", Kind: model.KindDisk, Name: "data", Keys: k(99),
			Settings: map[string]string{schema.SettingPath: "/srv/data.raw", schema.SettingFormat: "raw", schema.SettingBus: "scsi"},
		},
		{
			ID: "net", Kind: model.KindNetwork, Name: "lan", Keys: k(14), Links: map[string]string{schema.LinkOffer: "o-network"},
			Settings: map[string]string{schema.SettingSource: "bridge:br0"},
		},
		{
			ID: "n1", Kind: model.KindNIC, Name: "eth0", Keys: k(16),
			Links: map[string]string{schema.LinkNetwork: "net", schema.LinkOffer: "o-nic"},
		},
		{ID: "n2", Kind: model.KindNIC, Name: "eth1", Keys: k(98), Links: map[string]string{schema.LinkNetwork: "net"}},
	}}
	return now, model.VM{
		ID: "v", Name: "web", VDC: "vd", Offer: "o-vm", Image: "im", Disks: []string{"d1", "d2"}, NICs: []string{"n1", "n2"},
		Keys: k(10), Spec: model.VMSpec{Memory: 2 * units.GiB, VCPUs: 2},
	}
}

// Removing the key that wins, again and again, walks the whole hierarchy upwards.
func TestResolveWalksAllSixteenLevels(t *testing.T) {
	now, vm := ladder()
	for want := key.Levels; want >= 1; want-- {
		resolved, err := Resolve(now, vm)
		if err != nil {
			t.Fatal(err)
		}
		if len(resolved.System) != 1 || len(resolved.Customer) != 0 {
			t.Fatalf("level %d: compiled %v and %v, want one system key", want, resolved.System, resolved.Customer)
		}
		won := resolved.System[0]
		if won.Value != float64(want) || won.Level != key.Level(want-1).String() || len(won.Overrode) != want-1 {
			t.Errorf("level %d: %v from %s (%s), which overrode %d", want, won.Value, won.Level, won.From, len(won.Overrode))
		}
		removeKey(now, &vm, float64(want))
	}
	if resolved, err := Resolve(now, vm); err != nil || len(resolved.System) != 0 {
		t.Errorf("without any key: %v, %v", resolved.System, err)
	}
}

func removeKey(now *State, vm *model.VM, value float64) {
	for i := range now.Resources {
		if keys := now.Resources[i].Keys; len(keys) > 0 && keys[0].Value == value {
			now.Resources[i].Keys = nil
		}
	}
	if len(vm.Keys) > 0 && vm.Keys[0].Value == value {
		vm.Keys = nil
	}
}

func TestResolveNamesOwnerAndCluster(t *testing.T) {
	now, vm := ladder()
	resolved, err := Resolve(now, vm)
	if err != nil {
		t.Fatal(err)
	}
	if want := (model.Owner{Customer: "cu", BillingEntity: "be"}); resolved.Owner != want || resolved.Cluster != "east" {
		t.Errorf("owner %+v in %s, want %+v in east", resolved.Owner, resolved.Cluster, want)
	}
	var from []string
	for _, layer := range resolved.Layers {
		from = append(from, layer.Resource)
	}
	if want := []string{
		"cluster/east", "billing-entity/reseller", "offer/for-customer", "customer/acme", "offer/for-image", "image/debian",
		"offer/for-vdc", "vdc/prod", "offer/for-vm", "vm/web", "offer/for-disk", "disk/root", "offer/for-network", "network/lan",
		"offer/for-nic", "nic/eth0",
	}; !cmp.Equal(from, want) {
		t.Error(cmp.Diff(want, from))
	}
}

func TestAVMInNoVDCIsNobodysInTheDefaultCluster(t *testing.T) {
	vm := model.VM{ID: "v", Name: "web"}
	resolved, err := Resolve(&State{}, vm)
	if err != nil || resolved.Cluster != model.DefaultCluster || resolved.Owner != (model.Owner{}) || len(resolved.System) != 3 {
		t.Errorf("undeclared: %+v, %v, want the default cluster with the three special keys", resolved, err)
	}
	declared := model.Resource{
		ID: model.DefaultCluster, Kind: model.KindCluster, Name: model.DefaultCluster,
		Keys: []model.Key{{Class: model.SystemKey, Name: "K", Weight: 1}},
	}
	resolved, err = Resolve(&State{Resources: []model.Resource{declared}}, vm)
	if err != nil || len(resolved.System) != 1 || resolved.System[0].From != "cluster/default" {
		t.Errorf("declared: %+v, %v, want its own key", resolved, err)
	}
}

// What was copied from a node loses against what was set on the VM, and wins over the VM's offer.
func TestStickyCopiesStandBelowTheVMsOwnKeys(t *testing.T) {
	now, vm := ladder()
	vm.Disks, vm.NICs = nil, nil
	vm.Sticky = []model.Key{{Class: model.SystemKey, Name: "K", Value: 0.5, Weight: 30}}
	resolved, err := Resolve(now, vm)
	if err != nil || resolved.System[0].Value != 10 || resolved.System[0].Sticky || !cmp.Equal(resolved.System[0].Overrode[0].Value, 0.5) {
		t.Errorf("own key: %+v, %v", resolved.System, err)
	}
	vm.Keys = nil
	if resolved, err = Resolve(now, vm); err != nil || resolved.System[0].Value != 0.5 || !resolved.System[0].Sticky {
		t.Errorf("copy: %+v, %v", resolved.System, err)
	}
}

func TestResolveNamesADanglingLink(t *testing.T) {
	for want, change := range map[string]func(*State, *model.VM){
		"vm/web: its vdc, the vdc with ID gone, does not exist":             func(_ *State, vm *model.VM) { vm.VDC = "gone" },
		"vm/web: its offer, the offer with ID gone, does not exist":         func(_ *State, vm *model.VM) { vm.Offer = "gone" },
		"vm/web: its image, the image with ID d1, does not exist":           func(_ *State, vm *model.VM) { vm.Image = "d1" },
		"vm/web: its first disk, the disk with ID gone, does not exist":     func(_ *State, vm *model.VM) { vm.Disks[0] = "gone" },
		"vm/web: its first NIC, the nic with ID gone, does not exist":       func(_ *State, vm *model.VM) { vm.NICs[0] = "gone" },
		"vdc/prod: its customer, the customer with ID gone, does not exist": func(s *State, _ *model.VM) { relink(s, "vd", schema.LinkCustomer) },
		"vdc/prod: its cluster, the cluster with ID gone, does not exist":   func(s *State, _ *model.VM) { relink(s, "vd", schema.LinkCluster) },
		"nic/eth0: its network, the network with ID gone, does not exist":   func(s *State, _ *model.VM) { relink(s, "n1", schema.LinkNetwork) },
		"network/lan: its offer, the offer with ID gone, does not exist":    func(s *State, _ *model.VM) { relink(s, "net", schema.LinkOffer) },
	} {
		now, vm := ladder()
		change(now, &vm)
		if _, err := Resolve(now, vm); err == nil || err.Error() != want || !errors.Is(err, ErrDangling) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func relink(now *State, id, link string) {
	for i := range now.Resources {
		if now.Resources[i].ID == id {
			now.Resources[i].Links[link] = "gone"
		}
	}
}

func TestRequestCarriesWhatPlacementNeeds(t *testing.T) {
	now, vm := ladder()
	vm.Holder, vm.Home = "hv1", "hv2"
	vm.NICs, vm.Disks = nil, nil
	vm.Keys = append(vm.Keys, model.Key{Class: model.CustomerKey, Name: "G", Value: 1, Weight: -100})
	resolved, err := Resolve(now, vm)
	if err != nil {
		t.Fatal(err)
	}
	want := placement.Request{
		Purpose: placement.ForMigrate, VM: "v", VMName: "web", Memory: 2 * units.GiB, VCPUs: 2, Cluster: "east", Current: "hv1",
		Owner:        model.Owner{Customer: "cu", BillingEntity: "be"},
		SystemKeys:   []key.Weighted{{Name: "K", Value: 10, Weight: 5, Class: model.SystemKey, Level: "vm"}},
		CustomerKeys: []key.Weighted{{Name: "G", Value: 1, Weight: -100, Class: model.CustomerKey, Level: "vm"}},
	}
	if diff := cmp.Diff(want, Request(resolved, vm, placement.ForMigrate)); diff != "" {
		t.Error(diff)
	}
	want.Purpose, want.Current = placement.ForStart, ""
	if diff := cmp.Diff(want, Request(resolved, vm, placement.ForStart)); diff != "" {
		t.Error(diff)
	}
	resolved.Record.Settings = map[string]string{model.SettingStorage: string(model.LocalStorage)}
	if got := Request(resolved, vm, placement.ForStart); got.Home != "hv2" {
		t.Errorf("local storage: home %q, want hv2", got.Home)
	}
}

func TestSpecOfAttachesWhatTheVMLinksTo(t *testing.T) {
	now, vm := ladder()
	for i := range now.Resources {
		if now.Resources[i].ID == "im" {
			now.Resources[i].Settings = map[string]string{schema.SettingPath: "/srv/debian.iso", schema.SettingFormat: "raw"}
		}
	}
	vm.Spec.Disks = []model.Disk{{Path: "/srv/plain.raw", Format: "raw", Bus: "sata"}}
	vm.Spec.Networks = []string{"default"}
	spec, err := SpecOf(now, vm)
	if err != nil {
		t.Fatal(err)
	}
	want := model.VMSpec{
		Memory: 2 * units.GiB, VCPUs: 2,
		Disks: []model.Disk{
			{Path: "/srv/root.qcow2", Format: "qcow2", Bus: "virtio"},
			{Path: "/srv/data.raw", Format: "raw", Bus: "scsi"},
			{Path: "/srv/plain.raw", Format: "raw", Bus: "sata"},
			{Path: "/srv/debian.iso", Format: "raw", Bus: "virtio", ReadOnly: true},
		},
		Networks: []string{"bridge:br0", "bridge:br0", "default"},
	}
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Error(diff)
	}

	vm.Spec.Disks = []model.Disk{{Path: "/srv/root.qcow2", Format: "qcow2", Bus: "virtio"}}
	if _, err := SpecOf(now, vm); !errors.Is(err, model.ErrInvalid) {
		t.Errorf("one file twice: %v, want ErrInvalid", err)
	}
	vm.Spec.Disks, vm.Disks = nil, []string{"gone"}
	if _, err := SpecOf(now, vm); !errors.Is(err, ErrDangling) {
		t.Errorf("a disk that is not there: %v, want ErrDangling", err)
	}
	vm.Spec = model.VMSpec{Memory: units.GiB, VCPUs: 1, XML: "<domain/>"}
	if spec, err := SpecOf(now, vm); err != nil || !cmp.Equal(spec, vm.Spec) {
		t.Errorf("by XML: %+v, %v, want it as it is", spec, err)
	}
}

// A VM's hierarchy is walked for every decision.
func BenchmarkResolve(b *testing.B) {
	now, vm := ladder()
	source := newIndex(now)
	for b.Loop() {
		if _, err := Resolve(source, vm); err != nil {
			b.Fatal(err)
		}
	}
}
