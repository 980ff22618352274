package main

import (
	"bytes"
	"strings"
	"testing"

	"berth/coordinator/placement"
	"berth/coordinator/scenario"
	"berth/shared/units"
)

func TestSitesAreTheSameEachTime(t *testing.T) {
	var first, second bytes.Buffer
	newSite(20).htools(&first)
	newSite(20).htools(&second)
	if first.String() != second.String() {
		t.Error("two sites of one size differ")
	}
}

// Both files have to describe one cluster, or P4 compares apples with pears.
func TestBothFilesHaveTheSameHostsAndGuests(t *testing.T) {
	s := newSite(20)
	var theirs, ours bytes.Buffer
	s.htools(&theirs)
	s.scenario(&ours)
	sections := strings.Split(theirs.String(), "\n\n")
	if hosts, vms := lines(sections[1]), lines(sections[2]); hosts != 20 || vms != len(s.vms) || vms != 20*siteVMs {
		t.Errorf("htools: %d hosts and %d VMs of %d", hosts, vms, len(s.vms))
	}
	if got := strings.Count(ours.String(), "available:"); got != 20 {
		t.Errorf("the scenario has figures of %d hosts", got)
	}
	if got := strings.Count(ours.String(), "foreign:"); got != len(s.vms) {
		t.Errorf("the scenario has %d guests, want %d", got, len(s.vms))
	}
	free := 0
	for _, used := range s.used {
		if free += siteMemory - siteOwn - used; siteMemory-siteOwn-used < siteSpare {
			t.Errorf("a host has %d MiB free, want at least %d", siteMemory-siteOwn-used, siteSpare)
		}
	}
	if share := 1 - float64(free)/float64(20*(siteMemory-siteOwn)); share < 0.25 || share > 0.45 {
		t.Errorf("%.2f of the memory is promised, want about a third", share)
	}
}

// hail and Berth are asked for the same VM, and Berth has to find a node for it.
func TestTheScenarioIsOneThatBerthPlaces(t *testing.T) {
	var ours bytes.Buffer
	newSite(20).scenario(&ours)
	scenario, problems := scenario.Parse("site.yaml", ours.Bytes())
	if scenario == nil {
		t.Fatal(problems)
	}
	report, err := scenario.Run()
	if err != nil || len(report.Steps) != 1 || len(report.Steps[0].Decisions) != 1 {
		t.Fatalf("%v: %+v", err, report)
	}
	decision := report.Steps[0].Decisions[0]
	if decision.Outcome != placement.Placed || decision.Request.Memory != wantedMemory*units.MiB || len(decision.Nodes) != 20 {
		t.Errorf("of %d nodes for %s: %s", len(decision.Nodes), decision.Request.Memory, decision.Reason)
	}
}

func lines(text string) int { return len(strings.Split(strings.TrimSpace(text), "\n")) }
