package view

import (
	"math"
	"strings"
	"testing"

	"berth/coordinator/model"
	"berth/shared/units"
)

func TestRecordsThatContradictEachOtherAreFound(t *testing.T) {
	node := func(id, name string) model.Node { return model.Node{ID: id, Name: name} }
	vm := func(id, name, holder string) model.VM {
		v := held(id, holder, units.GiB, 1, noon)
		v.Name = name
		return v
	}
	if err := CheckRecords(
		[]model.Node{node("n1", "a"), node("n2", "b")},
		[]model.VM{vm("u1", "x", "n1"), vm("u2", "y", "")},
		[]model.Reservation{{Node: "n2", VM: "u1", Operation: "op"}},
	); err != nil {
		t.Errorf("records in order: %v", err)
	}
	broken := vm("u1", "x", "n1")
	broken.Epoch, broken.Desired, broken.Spec.VCPUs = 0, "", 0
	keyed := vm("u1", "x", "")
	keyed.Keys = []model.Key{{Class: model.SystemKey, Name: "_Silver", Weight: 1}}
	keyed.Sticky = []model.Key{{Class: model.CustomerKey, Name: model.SpecialRAM, Weight: 1}}
	with := func(v model.VM, disk string) model.VM {
		v.Disks = []string{disk}
		return v
	}
	for name, tc := range map[string]struct {
		nodes        []model.Node
		vms          []model.VM
		reservations []model.Reservation
		want         []string
	}{
		"twice": {
			nodes: []model.Node{node("n1", "a"), node("n1", "a")},
			vms:   []model.VM{vm("u1", "x", ""), vm("u1", "x", "")},
			want:  []string{"node ID n1 is there twice", "both called a", "VM ID u1 is there twice", "both called x"},
		},
		"dangling": {
			vms:          []model.VM{vm("u1", "x", "n9")},
			reservations: []model.Reservation{{Node: "n9", VM: "u9", Operation: "op"}},
			want: []string{
				"VM u1 is held by node n9, which does not exist", "op reserves on node n9", "op reserves for VM u9",
			},
		},
		"a bad record": {
			nodes: []model.Node{node("n1", "")}, vms: []model.VM{broken},
			want: []string{"node name", "vcpus 0", `wanted ""`, "without an epoch"},
		},
		"keys": {
			nodes: []model.Node{{ID: "n1", Name: "a", Keys: map[string]float64{"Premium": math.NaN()}}},
			vms:   []model.VM{keyed},
			want:  []string{"node n1: key Premium NaN", "VM u1: key _Silver as a system key", "VM u1: key #RAM as a customer key"},
		},
		"one disk": {
			vms: []model.VM{with(vm("u1", "x", ""), "d1"), with(vm("u2", "y", ""), "d1")}, want: []string{"u1 and u2 both have resource d1"},
		},
		"two operations": {
			nodes: []model.Node{node("n1", "a")}, vms: []model.VM{vm("u1", "x", "")},
			reservations: []model.Reservation{{Node: "n1", VM: "u1", Operation: "a"}, {Node: "n1", VM: "u1", Operation: "b"}},
			want:         []string{"operations a and b both reserve for VM u1"},
		},
	} {
		err := CheckRecords(tc.nodes, tc.vms, tc.reservations)
		for _, want := range tc.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v does not say %q", name, err, want)
			}
		}
	}
}
