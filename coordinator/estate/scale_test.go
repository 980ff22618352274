package estate

import (
	"fmt"
	"testing"

	"berth/coordinator/document"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	"berth/shared/units"
)

// large is an estate of so many VMs, each with a disk and a NIC, in a VDC for ten.
func large(vms int) State {
	now := State{Resources: []model.Resource{
		{ID: "net", Kind: model.KindNetwork, Name: "lan", Settings: map[string]string{schema.SettingSource: "default"}},
		{ID: "c", Kind: model.KindCustomer, Name: "acme"},
	}}
	for i := range vms {
		if i%10 == 0 {
			now.Resources = append(now.Resources, model.Resource{
				ID: fmt.Sprint("v", i/10), Kind: model.KindVDC, Name: fmt.Sprint("vdc-", i/10), Links: map[string]string{schema.LinkCustomer: "c"},
			})
		}
		disk, nic := fmt.Sprint("d", i), fmt.Sprint("n", i)
		now.Resources = append(now.Resources,
			model.Resource{
				ID: disk, Kind: model.KindDisk, Name: disk,
				Settings: map[string]string{schema.SettingPath: "/srv/" + disk, schema.SettingFormat: "raw"},
			},
			model.Resource{ID: nic, Kind: model.KindNIC, Name: nic, Links: map[string]string{schema.LinkNetwork: "net"}})
		now.VMs = append(now.VMs, model.VM{
			ID: fmt.Sprint("vm", i), Name: fmt.Sprint("vm-", i), Desired: model.Stopped, VDC: fmt.Sprint("v", i/10),
			Disks: []string{disk}, NICs: []string{nic}, Spec: model.VMSpec{Memory: units.GiB, VCPUs: 1},
		})
	}
	return now
}

// grouped is a large estate with a group for ten VMs, every second of them by a label.
func grouped(vms int) State {
	now := large(vms)
	for i := range vms {
		if i%10 > 0 {
			continue
		}
		group := model.Resource{
			ID: fmt.Sprint("g", i), Kind: model.KindGroup, Name: fmt.Sprint("group-", i),
			Settings: map[string]string{model.SettingVMsRule: string(model.Negative), model.SettingVMsEnforcing: "true"},
		}
		if label := fmt.Sprint("label-", i); i%20 == 0 {
			group.Lists = map[string][]string{model.ListVMLabels: {label}}
			for n := range 10 {
				now.VMs[i+n].Labels = []string{label}
			}
		} else {
			group.Members = map[string][]string{model.MembersVMs: {}}
			for n := range 10 {
				group.Members[model.MembersVMs] = append(group.Members[model.MembersVMs], now.VMs[i+n].ID)
			}
		}
		now.Resources = append(now.Resources, group)
	}
	return now
}

func BenchmarkEditWithGroups(b *testing.B) {
	now := grouped(10_000)
	for b.Loop() {
		if _, err := Edit(now, now.Resources[0], Wanted{Settings: map[string]string{schema.SettingSource: "bridge:br0"}}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkApplyWithGroups(b *testing.B) {
	now := grouped(10_000)
	text, err := Export(now, false)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		doc, problems := document.Parse("estate.yaml", text)
		if len(problems) > 0 {
			b.Fatal(lines(problems))
		}
		if plan, problems := Diff(now, doc, true); len(problems) > 0 || len(plan.Changes) != 0 {
			b.Fatal(len(plan.Changes), lines(problems))
		}
	}
}

// One edit is checked against the whole estate.
func BenchmarkEdit(b *testing.B) {
	now := large(10_000)
	for b.Loop() {
		if _, err := Edit(now, now.Resources[0], Wanted{Settings: map[string]string{schema.SettingSource: "bridge:br0"}}); err != nil {
			b.Fatal(err)
		}
	}
}

// A whole estate is read, compared and pruned.
func BenchmarkApply(b *testing.B) {
	now := large(10_000)
	text, err := Export(large(1000), false)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		doc, problems := document.Parse("estate.yaml", text)
		if len(problems) > 0 {
			b.Fatal(lines(problems))
		}
		if plan, problems := Diff(now, doc, true); len(problems) > 0 || len(plan.Changes) != 9000*3+900 {
			b.Fatal(len(plan.Changes), lines(problems))
		}
	}
}
