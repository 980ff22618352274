package estate

import (
	"fmt"
	"testing"

	"berth/coordinator/cluster"
	"berth/shared/units"
)

// large is an estate of so many VMs, each with a disk and a NIC, in a VDC for ten.
func large(vms int) State {
	now := State{Resources: []cluster.Resource{
		{ID: "net", Kind: cluster.KindNetwork, Name: "lan", Settings: map[string]string{SettingSource: "default"}},
		{ID: "c", Kind: cluster.KindCustomer, Name: "acme"},
	}}
	for i := range vms {
		if i%10 == 0 {
			now.Resources = append(now.Resources, cluster.Resource{
				ID: fmt.Sprint("v", i/10), Kind: cluster.KindVDC, Name: fmt.Sprint("vdc-", i/10), Links: map[string]string{LinkCustomer: "c"},
			})
		}
		disk, nic := fmt.Sprint("d", i), fmt.Sprint("n", i)
		now.Resources = append(now.Resources,
			cluster.Resource{
				ID: disk, Kind: cluster.KindDisk, Name: disk, Settings: map[string]string{SettingPath: "/srv/" + disk, SettingFormat: "raw"},
			},
			cluster.Resource{ID: nic, Kind: cluster.KindNIC, Name: nic, Links: map[string]string{LinkNetwork: "net"}})
		now.VMs = append(now.VMs, cluster.VM{
			ID: fmt.Sprint("vm", i), Name: fmt.Sprint("vm-", i), Desired: cluster.Stopped, VDC: fmt.Sprint("v", i/10),
			Disks: []string{disk}, NICs: []string{nic}, Spec: cluster.VMSpec{Memory: units.GiB, VCPUs: 1},
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
		group := cluster.Resource{
			ID: fmt.Sprint("g", i), Kind: cluster.KindGroup, Name: fmt.Sprint("group-", i),
			Settings: map[string]string{cluster.SettingVMsRule: string(cluster.Negative), cluster.SettingVMsEnforcing: "true"},
		}
		if label := fmt.Sprint("label-", i); i%20 == 0 {
			group.Lists = map[string][]string{cluster.ListVMLabels: {label}}
			for n := range 10 {
				now.VMs[i+n].Labels = []string{label}
			}
		} else {
			group.Members = map[string][]string{cluster.MembersVMs: {}}
			for n := range 10 {
				group.Members[cluster.MembersVMs] = append(group.Members[cluster.MembersVMs], now.VMs[i+n].ID)
			}
		}
		now.Resources = append(now.Resources, group)
	}
	return now
}

func BenchmarkEditWithGroups(b *testing.B) {
	now := grouped(10_000)
	for b.Loop() {
		if _, err := Edit(now, now.Resources[0], Wanted{Settings: map[string]string{SettingSource: "bridge:br0"}}); err != nil {
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
		doc, problems := Parse("estate.yaml", text)
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
		if _, err := Edit(now, now.Resources[0], Wanted{Settings: map[string]string{SettingSource: "bridge:br0"}}); err != nil {
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
		doc, problems := Parse("estate.yaml", text)
		if len(problems) > 0 {
			b.Fatal(lines(problems))
		}
		if plan, problems := Diff(now, doc, true); len(problems) > 0 || len(plan.Changes) != 9000*3+900 {
			b.Fatal(len(plan.Changes), lines(problems))
		}
	}
}
