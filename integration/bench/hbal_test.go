package main

import (
	"path/filepath"
	"testing"

	"berth/coordinator/model"
	"berth/shared/units"
)

// What hbal and Berth plan on is one file; a plan leaves as many guests and as much memory as there were.
func TestAPlanIsMadeOfTheFileAndWrittenBack(t *testing.T) {
	s := newSite(20)
	data, _, _, err := s.files(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	plan, _, err := evenOnce(data, "0.1")
	if err != nil {
		t.Fatal(err)
	}
	if plan.Before < 0.5 || plan.Predicted >= 0.1 {
		t.Errorf("from %v to %v, want the score of a skewed cluster and one of an even one", plan.Before, plan.Predicted)
	}
	after, err := s.after(&plan)
	if err != nil {
		t.Fatal(err)
	}
	moved, sum := 0, 0
	for i := range s.vms {
		if s.vms[i].host != after.vms[i].host {
			moved++
		}
	}
	for host := range s.used {
		sum += s.used[host] - after.used[host]
		if after.used[host] > siteMemory-siteOwn {
			t.Errorf("%s has %d MiB of guests", hostName(host), after.used[host])
		}
	}
	if moved != len(plan.Moves) || sum != 0 {
		t.Errorf("%d guests of %d moves are elsewhere, and %d MiB are lost", moved, len(plan.Moves), sum)
	}
	written := filepath.Join(t.TempDir(), "after.data")
	if err := writeFile(written, after.htools); err != nil {
		t.Fatal(err)
	}
	records, facts, err := readHtools(written)
	if err != nil {
		t.Fatal(err)
	}
	if len(records.VMs) != len(s.vms) || len(facts) != len(s.used) {
		t.Errorf("%d guests and %d hosts are read", len(records.VMs), len(facts))
	}
	for i, vm := range records.VMs {
		if vm.Holder != hostName(after.vms[i].host) || vm.Spec.Memory != units.Bytes(after.vms[i].memory)*units.MiB {
			t.Fatalf("%s is read as %+v", vm.Name, vm)
		}
	}
	if _, _, err := evenOnce(written, "0.1"); err == nil {
		t.Error("a cluster that is even enough has a plan")
	}
}

func TestAPlanOfSomethingElseIsNotWrittenBack(t *testing.T) {
	for _, move := range []model.Move{
		{VM: "web", Target: "node00001"}, {VM: "vm000001", Target: "hv1"}, {VM: "vm999999", Target: "node00001"},
	} {
		if _, err := newSite(20).after(&model.Plan{Moves: []model.Move{move}}); err == nil {
			t.Errorf("%+v is written back", move)
		}
	}
}
