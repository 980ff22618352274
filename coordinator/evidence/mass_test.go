package evidence

import (
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
)

// rack puts some nodes into a failure domain.
func rack(nodes []Silence, label string) {
	for i := range nodes {
		nodes[i].Node.Labels, nodes[i].Domain = []string{label, "x"}, label
	}
}

// FAULTS.md, W12. A rack of 40 % that is dark waits for a word, which is said, and keeps nobody else from being proven off.
func TestADarkRackIsOneFailure(t *testing.T) {
	nodes := site(10, 5)
	if n := asked(Fencing(time.Hour, nodes)); n != 0 {
		t.Fatalf("half of the nodes are silent, and no rack is declared: %d are fenced", n)
	}
	rack(nodes[:4], "rack-1")
	rack(nodes[4:], "rack-2")
	verdicts := Fencing(time.Hour, nodes)
	for i, v := range verdicts {
		const next = "look at its power and its network first; " +
			"if its machines are off, say so with 'berth node fence --label rack-1 --confirmed-off'"
		switch {
		case i == 4 && v.Act != FenceAsk:
			t.Errorf("the node of the other rack: %+v", v)
		case i < 4 && (v.Act != FenceHeld || v.Why != "all 4 nodes of rack-1 are silent at once" || v.Next != next):
			t.Errorf("a node of the rack: %+v", v)
		}
	}
	if len(verdicts) != 5 {
		t.Fatalf("%+v", verdicts)
	}
	for i := range 4 {
		nodes[i].Domain = "pod east"
	}
	if v := Fencing(time.Hour, nodes)[0]; !strings.Contains(v.Next, "'berth node fence node0 --confirmed-off', and so for each of its nodes") {
		t.Errorf("of a pod: %q", v.Next)
	}
	rack(nodes[:4], "rack-1")

	nodes[3].Liveness = model.Suspect
	if n := asked(Fencing(time.Hour, nodes)); n != 0 {
		t.Errorf("a node of the rack was heard a moment ago: %d are fenced", n)
	}
	nodes[3].Liveness = model.Up
	if n := asked(Fencing(time.Hour, nodes)); n != 0 {
		t.Errorf("a node of the rack answers, so it is not the rack's fault, and %d are fenced", n)
	}
	nodes[3].Liveness = model.Unreachable
	for i := range 4 {
		nodes[i].Node.Fencing = model.Fencing{Phase: model.FencingProven, Method: model.FenceManual}
	}
	nodes[5].Liveness, nodes[5].Silent, nodes[5].HA = model.Unreachable, time.Hour, []string{"web"}
	if n := asked(Fencing(time.Hour, nodes)); n != 0 {
		t.Errorf("two of the six that are left are silent: %d are fenced", n)
	}
	nodes[5].Liveness = model.Up
	if n := asked(Fencing(time.Hour, nodes)); n != 1 {
		t.Errorf("once the rack was seen to be off, %d are fenced, want the other one", n)
	}

	half := site(8, 4)
	rack(half[:4], "rack-1")
	if n := asked(Fencing(time.Hour, half)); n != 0 {
		t.Errorf("half of the site is no failure domain: %d are fenced", n)
	}
	two := site(20, 8)
	rack(two[:4], "rack-1")
	rack(two[4:8], "rack-2")
	if n := asked(Fencing(time.Hour, two)); n != 0 {
		t.Errorf("two racks are silent at once: %d are fenced", n)
	}
	small := site(20, 2)
	rack(small[:2], "rack-1")
	if n := asked(Fencing(time.Hour, small)); n != 2 {
		t.Errorf("a small rack: %d are fenced", n)
	}
}

// What its device has proven off counts for a while: a fault that spreads does not take the nodes one by one, and machines that nobody
// mends do not end all proof.
func TestWhatIsOffCountsForAWhile(t *testing.T) {
	for off, want := range map[time.Duration]int{FencedCounts - time.Second: 0, FencedCounts: 1} {
		nodes := site(10, 4)
		for i := range 3 {
			nodes[i].Node.Fencing, nodes[i].OffFor = model.Fencing{Phase: model.FencingProven, Method: model.FenceCommand}, off
		}
		if n := asked(Fencing(time.Hour, nodes)); n != want {
			t.Errorf("three of ten are off for %s: %d are fenced, want %d", off, n, want)
		}
	}
}
