package evidence

import (
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
)

// The backup says that a VM's disk is where it ran then. It runs elsewhere now, so its disk is there: what is left of it at its old place
// is older, and it would be started from that.
func TestAfterARestoreADiskIsWhereItsVMRuns(t *testing.T) {
	s := running()
	s.vm.Disks, s.vm.Home = []string{"d1", "d2", "d3"}, "n1"
	volume := func(id string, nodes ...string) model.Resource {
		return model.Resource{ID: id, Kind: model.KindDisk, Volume: &model.Volume{Pool: "p1", Name: id + ".qcow2", Nodes: nodes}}
	}
	s.resources = []model.Resource{volume("d1", "n1"), volume("d2"), volume("d3", "n1"), {ID: "p1", Name: "fast", Kind: model.KindPool}}
	here := Copy{Node: "n2", Name: "node2", Domain: model.Domain{UUID: vmID, State: model.DomainRunning, Managed: true, Epoch: 5}}
	here.Domain.Sources = []model.DiskSource{{Path: "/srv/fast/d1.qcow2"}, {Pool: "fast", Volume: "d2.qcow2"}}
	s.change("n2", func(f *model.NodeFacts) { f.Pools = []model.PoolFacts{{Name: "fast", Path: "/srv/fast"}} })

	after, why := agreed(s.vm, []Copy{here})
	if after.Holder != "n2" || after.Home != "n2" || why == "" {
		t.Errorf("its record is %+v (%s)", after, why)
	}
	moved := s.survey().agreedDisks(&s.vm, []Copy{here})
	if len(moved) != 1 || moved[0].ID != "d1" || len(moved[0].Volume.Nodes) != 1 || moved[0].Volume.Nodes[0] != "n2" {
		t.Errorf("its disks are %+v", moved)
	}
	if s.resources[0].Volume.Nodes[0] != "n1" {
		t.Error("the record is changed in its place")
	}
	if two := s.survey().agreedDisks(&s.vm, []Copy{here, here}); two != nil {
		t.Errorf("two copies: %+v", two)
	}
	arriving := here
	arriving.Domain.State = model.DomainPausedMigration
	after, _ = agreed(s.vm, []Copy{arriving})
	if disks := s.survey().agreedDisks(&s.vm, []Copy{arriving}); disks != nil || after.Home != "n1" {
		t.Errorf("its disks are still being copied: %+v, home %s", disks, after.Home)
	}
	standing := here
	standing.Domain.State, standing.Domain.Epoch = model.DomainPaused, s.vm.Epoch+1
	after, why = agreed(s.vm, []Copy{standing})
	if disks := s.survey().agreedDisks(&s.vm, []Copy{standing}); disks != nil || after.Home != "n1" || after.Holder != s.vm.Holder {
		t.Errorf("a migration may have left it: its disks are %+v, its record %+v", disks, after)
	}
	if !IsOutOfBand(after.Condition) || !strings.Contains(why, "a migration may have left this copy") {
		t.Errorf("people are told %q", why)
	}
	starved := standing
	starved.Domain.Reason = model.ReasonIOError
	if after, _ = agreed(s.vm, []Copy{starved}); after.Home != "n2" {
		t.Errorf("it has run there, and stands still for want of space: its record is %+v", after)
	}
	there := here
	there.Node = "n1"
	if same := s.survey().agreedDisks(&s.vm, []Copy{there}); same != nil {
		t.Errorf("it is where it was: %+v", same)
	}
}

// After a restore no node shows the VM: what it ran with last is not known, so its next start looks for snapshots that somebody took.
func TestAfterARestoreAVMThatIsGoneIsCheckedBeforeItStarts(t *testing.T) {
	s := running()
	if after, _ := agreed(s.vm, nil); after.Holder != "" || !after.EndUnwatched() {
		t.Errorf("its record is %+v", after)
	}
	here := Copy{Node: "n1", Name: "node1", Domain: model.Domain{UUID: vmID, State: model.DomainRunning, Managed: true, Epoch: 3}}
	if after, _ := agreed(s.vm, []Copy{here}); after.Unwatched != 0 {
		t.Errorf("of one that runs on it is %+v", after)
	}
}

// Whoever was on a node that is proven to be off has ended there unseen, unless the node has told that end before.
func TestAVMOfANodeThatIsOffIsCheckedBeforeItStarts(t *testing.T) {
	for name, tc := range map[string]struct {
		is        func(*estate)
		unwatched bool
	}{
		"it ran when its node fell":          {func(*estate) {}, true},
		"its node had told its end":          {func(s *estate) { s.ended(time.Hour, true) }, false},
		"its node had not shown it any more": {(*estate).gone, true},
	} {
		s := running()
		tc.is(s)
		s.fenced("n1")
		for _, node := range []string{"n2", "n3", "n4"} {
			s.lists(node)
		}
		after, can := s.survey().Released(s.vm)
		if !can || after.Holder != "" || after.EndUnwatched() != tc.unwatched {
			t.Errorf("%s: released %t, %+v", name, can, after)
		}
	}
}
