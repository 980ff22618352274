package schema

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"berth/coordinator/model"
	"berth/shared/units"
)

// What Berth itself keeps of a VM and a node: nobody declares it.
var kept = map[string][]string{
	"VM": {
		"ID", "Name", "Spec", "Desired", "Holder", "Epoch", "LastEpoch", "Operation", "LastNode", "Decision", "Condition", "CreatedAt",
		"StartedAt", "Sticky", "Resident", "Owner", "Home", "Revision", "MovedAt", "CPU", "PassedCPU", "Restarts", "RestartedAt",
		"Adopted", "Copies", "Discards", "Persistent", "Whereabouts", "Kept", "Losses", "Drift", "Bound", "Needs", "Ran", "Settled", "Unwatched",
		"RanSize", "Pending", "Paused", "Ballooned", "Snapshots", "Reverting",
	},
	"VMSpec": nil,
	"Node": {
		"ID", "Name", "HostUUID", "MachineID", "Settings", "Maintenance", "MaintenanceReason", "EnrolledAt", "Revision", "Fence",
		"Fencing", "Boot", "Watchdog", "Hardware", "HardwareSource", "LastBoot", "Twin", "Peers", "Unanswered",
	},
	"NodeSettings": nil,
}

// described are the addresses of what fields describe of a record.
func described[R any](fields []Field[R], r *R) map[uintptr]string {
	found := make(map[uintptr]string)
	for i := range fields {
		at := fields[i].At(r)
		if disks, is := at.(Disks); is {
			found[reflect.ValueOf(disks.Linked).Pointer()] = fields[i].Name
			found[reflect.ValueOf(disks.Files).Pointer()] = fields[i].Name
			continue
		}
		found[reflect.ValueOf(at).Pointer()] = fields[i].Name
	}
	return found
}

func TestEveryFieldIsDescribedOrKeptByBerth(t *testing.T) {
	var (
		vm   model.VM
		node model.Node
	)
	check := func(record any, found map[uintptr]string) {
		at := reflect.ValueOf(record).Elem()
		for i := range at.NumField() {
			name := at.Type().Field(i).Name
			_, is := found[at.Field(i).Addr().Pointer()]
			if owned := slices.Contains(kept[at.Type().Name()], name); !is && !owned {
				t.Errorf("%s.%s is neither in this package's table nor kept by Berth itself", at.Type().Name(), name)
			} else if is && owned && at.Field(i).Kind() != reflect.Struct { // a struct begins where its first field does
				t.Errorf("%s.%s is in the table and is said to be kept by Berth itself", at.Type().Name(), name)
			}
		}
	}
	check(&vm, described(VM, &vm))
	check(&vm.Spec, described(VM, &vm))
	check(&node, described(Node, &node))
	check(&node.Settings, described(Node, &node))
}

func TestAFieldIsComparedCopiedAndTold(t *testing.T) {
	full := model.VM{
		Description: "front", RestartPriority: model.RestartHigh, Restart: model.RestartNever, RestartAfter: []string{"db"},
		VDC: "v", Offer: "o", Image: "i", Within: "z", Disks: []string{"d"}, NICs: []string{"n"}, Keys: []model.Key{{Name: "K", Value: 1}},
		Labels: []string{"l"}, Migration: model.MigrateNever, HA: true, Preferred: []string{"n1"},
		Spec: model.VMSpec{
			Memory: units.GiB, VCPUs: 2, Kernel: "/k", Initrd: "/i", Cmdline: "c", Disks: []model.Disk{{Path: "/d", Format: "raw", Bus: "scsi"}},
			Networks: []string{"lan"}, XML: "<x/>", Machine: "q35", Firmware: "efi", CPU: "Haswell", UserData: "u",
			MaxMemory: 2 * units.GiB, MaxVCPUs: 4,
		},
	}
	for i := range VM {
		f := &VM[i]
		var empty model.VM
		if f.Same(&full, &empty) {
			t.Errorf("%s: a value is the same as none", f.Name)
		}
		_, Several := f.Parts(&full)
		if from, to := f.Text(&empty, nil), f.Text(&full, nil); from == to && !Several {
			t.Errorf("%s: a value is told as none is, %q", f.Name, from)
		}
		f.Copy(&empty, &full)
		if !f.Same(&full, &empty) {
			t.Errorf("%s: a copy is not the same", f.Name)
		}
	}
	ratio := 2.0
	node := model.Node{Cluster: "c", Keys: map[string]float64{"K": 1}, Labels: []string{"l"}, Management: true, Unbalanced: true}
	node.Settings = model.NodeSettings{RAMRatio: &ratio, CPURatio: &ratio, Overhead: new(units.GiB)}
	for i := range Node {
		var bare model.Node
		if f := &Node[i]; f.Same(&node, &bare) {
			t.Errorf("%s: a value is the same as none", f.Name)
		} else if f.Copy(&bare, &node); !f.Same(&node, &bare) {
			t.Errorf("%s: a copy is not the same", f.Name)
		}
	}
}

func TestATextIsOneLineThatIsNotTooLong(t *testing.T) {
	f := Field[model.VM]{Name: "note", Most: 5, At: func(v *model.VM) any { return &v.Name }}
	for _, text := range []string{"", "a b", "üüüüü"} {
		if taken, err := f.Take(text); err != nil || taken != text {
			t.Errorf("%q is taken as %q, %v", text, taken, err)
		}
	}
	for text, says := range map[string]string{
		"sixsix": "note of 6 characters is not valid: want one line of at most 5 printable characters",
		"a\nb":   `note "a\nb" is not valid`, "a\x00": `note "a\x00" is not valid`, "\xff": `note "\xff" is not valid`,
	} {
		if _, err := f.Take(text); !errors.Is(err, model.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %s", text, err, says)
		}
	}
}

func TestLinksAreReplacedInACopy(t *testing.T) {
	before := model.VM{VDC: "v", Within: "zone/z", Disks: []string{"d"}, NICs: []string{"n"}, Preferred: []string{"hv1"}}
	after := before
	for i := range VM {
		VM[i].Relink(&after, func(kind model.Kind, name string) string { return string(kind) + ":" + name })
	}
	want := model.VM{
		VDC: "vdc:v", Within: ":zone/z", Disks: []string{"disk:d"}, NICs: []string{"nic:n"}, Preferred: []string{"node:hv1"},
	}
	if !Same(VM, &after, &want) || before.Disks[0] != "d" {
		t.Errorf("%+v of %+v, want %+v", after, before, want)
	}
}
