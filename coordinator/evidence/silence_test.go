package evidence

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
)

// site is so many nodes that are up, the first silent of them unreachable for ten minutes, each with a device and one VM that is
// to be highly available.
func site(all, silent int) []Silence {
	nodes := make([]Silence, all)
	for i := range nodes {
		nodes[i] = Silence{
			Node: model.Node{
				ID: fmt.Sprintf("n%d", i), Name: fmt.Sprintf("node%d", i),
				Fence: model.FenceDevice{Method: model.FenceCommand, Program: "fence_x"},
			},
			Liveness: model.Up, After: time.Minute, Leased: time.Hour,
		}
		if i < silent {
			nodes[i].Liveness, nodes[i].Silent, nodes[i].HA = model.Unreachable, 10*time.Minute, []string{"web"}
		}
	}
	return nodes
}

func asked(verdicts []FenceVerdict) (n int) {
	for _, v := range verdicts {
		if v.Act == FenceAsk || v.Act == FenceProven {
			n++
		}
	}
	return n
}

func TestWhatHoldsAFencingBack(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*Silence)
		leading time.Duration
		act     FenceAct
		says    string
	}{
		"nothing":                   {act: FenceAsk, says: "VM web is to be highly available"},
		"it is only suspect":        {change: func(s *Silence) { s.Liveness = model.Suspect }},
		"it is up":                  {change: func(s *Silence) { s.Liveness = model.Up }},
		"it is not silent for long": {change: func(s *Silence) { s.Silent = 59 * time.Second }},
		"nothing waits for it":      {change: func(s *Silence) { s.HA = nil }},
		"an operation waits for it": {
			change: func(s *Silence) { s.HA, s.Waiting = nil, 2 }, act: FenceAsk, says: "2 operations wait for it",
		},
		"it is fenced":      {change: func(s *Silence) { s.Node.Fencing.Phase = model.FencingProven }},
		"it is being asked": {change: func(s *Silence) { s.Asking = true }, act: FenceWait, says: "being asked"},
		"maintenance":       {change: func(s *Silence) { s.Node.Maintenance = true }, act: FenceHeld, says: "maintenance"},
		"no device": {
			change: func(s *Silence) { s.Node.Fence = model.FenceDevice{} }, act: FenceHeld, says: "nothing can prove",
		},
		"by hand only": {
			change: func(s *Silence) { s.Node.Fence = model.FenceDevice{Method: model.FenceManual} }, act: FenceHeld,
			says: "somebody's word",
		},
		"a leadership has just begun":    {leading: 59 * time.Second, act: FenceWait, says: "for another 1s"},
		"an earlier leader may be at it": {change: func(s *Silence) { s.Left = 30 * time.Second }, act: FenceWait, says: "for another 30s"},
		"its device gave no proof": {
			change: func(s *Silence) { s.Rest, s.Node.Fencing.Message = 20*time.Second, "no route" }, act: FenceWait, says: "no route",
		},
		"its device has perhaps struck another machine": {
			change: func(s *Silence) { s.Struck = "node7" }, act: FenceHeld, says: "perhaps switched off node7 in its place",
		},
		"its watchdog was not armed": {
			change: func(s *Silence) { s.Node.Fence = model.FenceDevice{Method: model.FenceWatchdog} }, act: FenceHeld, says: "not armed",
		},
		"its watchdog has time still": {
			change: func(s *Silence) {
				s.Node.Fence, s.Node.Watchdog = model.FenceDevice{Method: model.FenceWatchdog}, 30*time.Second
				s.Leased = LeaseDuration + 30*time.Second + WatchdogMargin - time.Second
			},
			act: FenceWait, says: "for another 1s",
		},
		"its watchdog has fired": {
			change: func(s *Silence) {
				s.Node.Fence, s.Node.Watchdog = model.FenceDevice{Method: model.FenceWatchdog}, 30*time.Second
				s.Leased = LeaseDuration + 30*time.Second + WatchdogMargin
			},
			act: FenceProven, says: "its last lease ended 40s ago",
		},
	} {
		nodes := site(10, 1)
		if c.change != nil {
			c.change(&nodes[0])
		}
		if c.leading == 0 {
			c.leading = time.Hour
		}
		verdicts := Fencing(c.leading, nodes)
		if c.act == FenceNothing {
			if len(verdicts) != 0 {
				t.Errorf("%s: %+v, want nothing", name, verdicts)
			}
			continue
		}
		if len(verdicts) != 1 || verdicts[0].Act != c.act || !strings.Contains(verdicts[0].Why, c.says) {
			t.Errorf("%s: %+v, want %s that says %q", name, verdicts, c.act, c.says)
		} else if v := verdicts[0]; v.Act == FenceHeld && !strings.Contains(v.Next, "berth node fence node0") {
			t.Errorf("%s: nobody is told what to do: %q", name, v.Next)
		}
	}
}

func TestMostNodesSilentAtOnceIsTheNetworksFault(t *testing.T) {
	for _, c := range []struct {
		all, silent int
		fenced      bool
	}{
		{1, 1, true},
		{2, 1, true},
		{3, 1, true},
		{2, 2, false},
		{3, 2, false},
		{6, 2, false},
		{7, 2, true},
		{10, 3, true},
		{10, 4, false},
		{100, 10, true},
		{100, 11, false},
		{200, 11, false},
		{400, 20, true},
		{400, 21, false},
		{1000, 50, true},
		{1000, 51, false},
		{1000, 1000, false},
	} {
		nodes := site(c.all, c.silent)
		n := asked(Fencing(time.Hour, nodes))
		if want := map[bool]int{true: c.silent}[c.fenced]; n != want {
			t.Errorf("%d of %d silent: %d are fenced, want %d", c.silent, c.all, n, want)
		}
		if c.silent < 2 {
			continue
		}
		nodes[1].Liveness = model.Suspect // it has only just fallen silent: that counts
		if n := asked(Fencing(time.Hour, nodes)); !c.fenced && n != 0 {
			t.Errorf("%d of %d silent, one of them suspect: %d are fenced", c.silent, c.all, n)
		}
	}
	// What falls silent one after the other is no other thing than what does at once.
	nodes := site(10, 4)
	for i := range 3 {
		nodes[i].Node.Fencing.Phase = model.FencingProven
	}
	if n := asked(Fencing(time.Hour, nodes)); n != 0 {
		t.Errorf("after three of ten were fenced, %d more are", n)
	}
	for i := range 3 {
		nodes[i].Node.Fencing.Method = model.FenceManual // somebody has seen what is wrong with them
	}
	if n := asked(Fencing(time.Hour, nodes)); n != 1 {
		t.Errorf("after three of ten were seen to be off, %d are fenced, want the fourth", n)
	}
	for i := range 3 {
		nodes[i].Node.Fencing.Method = model.FenceCommand
	}
	nodes[0].Node.Maintenance = true // somebody knows that this one is off
	nodes[1].Node.Maintenance = true
	if n := asked(Fencing(time.Hour, nodes)); n != 1 {
		t.Errorf("with two of them in maintenance %d are fenced, want 1", n)
	}
}

// Whatever is known: no node is fenced that is heard, that nobody has given a device, while many are silent, or before
// it has been silent and this leader has led for long enough.
func TestFencingNeverActsOnDoubt(t *testing.T) {
	acted := 0
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 7))
		span := func(most time.Duration) time.Duration { return time.Duration(r.Int64N(int64(most))) }
		nodes := make([]Silence, 1+r.IntN(40))
		silent, all := 0, 0
		for i := range nodes {
			one := &nodes[i]
			one.Node = model.Node{
				ID: fmt.Sprint(i), Name: fmt.Sprint(i), Maintenance: r.IntN(10) == 0, Watchdog: time.Duration(r.IntN(3)) * 30 * time.Second,
				Fence: model.FenceDevice{Method: []model.FenceMethod{
					model.FenceNone, model.FenceCommand, model.FenceManual, model.FenceWatchdog,
				}[r.IntN(4)]},
				Fencing: model.Fencing{
					Phase:  []model.FencingPhase{"", model.FencingAsked, model.FencingFailed, model.FencingProven}[r.IntN(4)],
					Method: []model.FenceMethod{model.FenceCommand, model.FenceManual}[r.IntN(2)],
				},
			}
			one.Liveness = []model.Liveness{
				model.Up, model.Up, model.Up, model.Up, model.Up, model.Up, model.Suspect, model.Degraded, model.Unreachable, model.Unreachable,
			}[r.IntN(10)]
			one.Silent, one.After = span(3*time.Minute), model.MinFenceAfter+span(time.Minute)
			one.Leased, one.Rest, one.Left = span(4*time.Minute), span(time.Minute)-30*time.Second, span(time.Minute)-30*time.Second
			one.Asking, one.Waiting = r.IntN(4) == 0, r.IntN(2)
			if r.IntN(2) == 0 {
				one.HA = []string{"vm"}
			}
			seen := one.Node.Fenced() && one.Node.Fencing.Method == model.FenceManual
			if !one.Node.Maintenance && !seen {
				all++
				if one.Liveness == model.Unreachable || one.Liveness == model.Suspect {
					silent++
				}
			}
		}
		leading := span(2 * time.Minute)
		for _, v := range Fencing(leading, nodes) {
			if v.Act != FenceAsk && v.Act != FenceProven {
				continue
			}
			acted++
			var one *Silence
			for i := range nodes {
				if nodes[i].Node.ID == v.Node {
					one = &nodes[i]
				}
			}
			method := one.Node.Fence.Method
			for what, bad := range map[string]bool{
				"it is heard":                    one.Liveness != model.Unreachable,
				"it is not silent for long":      one.Silent < one.After || one.Silent < model.UnreachableAfter,
				"nothing waits for it":           len(one.HA) == 0 && one.Waiting == 0,
				"a leadership has just begun":    leading < FenceGrace,
				"it is in maintenance":           one.Node.Maintenance,
				"many are silent":                silent > model.MaxSilentNodes || silent > 1 && 100*silent > model.MaxSilentPercent*all,
				"it is fenced":                   one.Node.Fenced(),
				"its device is being asked":      one.Asking || method == model.FenceCommand && one.Left > 0,
				"its device rests":               method == model.FenceCommand && one.Rest > 0,
				"it has no device":               method != model.FenceCommand && method != model.FenceWatchdog,
				"a watchdog is asked":            method == model.FenceWatchdog && v.Act == FenceAsk,
				"a device proves without a call": method == model.FenceCommand && v.Act == FenceProven,
				"its watchdog may not have fired": method == model.FenceWatchdog &&
					(one.Node.Watchdog == 0 || one.Leased < LeaseDuration+one.Node.Watchdog+WatchdogMargin),
			} {
				if bad {
					t.Fatalf("seed %d: node %+v is fenced, though %s", seed, one, what)
				}
			}
		}
	}
	if acted < 300 {
		t.Fatalf("only %d nodes were fenced: the sites are too bleak to show anything", acted)
	}
	t.Logf("GOAL row 20, 22, 23: 20000 sites with silent nodes, %d fencings, 0 on doubt | wanted 0 on doubt | met", acted)
}

// A node that answers and says that it is of no use is fenced only where that is wanted, after its time, for VMs that are to be highly
// available, and not where many say so at once.
func TestWhatHoldsTheFencingOfASickNodeBack(t *testing.T) {
	sick := func(s *Silence) {
		s.Liveness, s.Silent, s.HA = model.Degraded, time.Second, []string{"web"}
		s.Sick, s.SickAfter, s.SickWhy = 6*time.Minute, 5*time.Minute, "libvirt does not answer"
	}
	for name, c := range map[string]struct {
		change func([]Silence)
		act    FenceAct
		says   string
	}{
		"nothing":            {func([]Silence) {}, FenceAsk, "it is sick for 6m0s (libvirt does not answer), and VM web"},
		"it is not wanted":   {func(all []Silence) { all[0].SickAfter = 0 }, FenceNothing, ""},
		"it is not for long": {func(all []Silence) { all[0].Sick = 4 * time.Minute }, FenceNothing, ""},
		"it has no such VMs": {func(all []Silence) { all[0].HA, all[0].Waiting = nil, 1 }, FenceNothing, ""},
		"it is up again":     {func(all []Silence) { all[0].Liveness, all[0].Sick = model.Up, 0 }, FenceNothing, ""},
		"many are sick": {func(all []Silence) {
			for i := range 4 {
				sick(&all[i])
				all[i].Sick = time.Minute
			}
			all[0].Sick = 6 * time.Minute
		}, FenceHeld, "4 of 10"},
		"maintenance":     {func(all []Silence) { all[0].Node.Maintenance = true }, FenceHeld, "maintenance"},
		"two machines":    {func(all []Silence) { all[0].Node.Twin.Why = "two" }, FenceHeld, "two machines"},
		"its watchdog":    {func(all []Silence) { all[0].Node.Fence.Method = model.FenceWatchdog }, FenceHeld, "only when its agent ends"},
		"somebody's word": {func(all []Silence) { all[0].Node.Fence.Method = model.FenceManual }, FenceHeld, "only somebody's word"},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := site(10, 0)
			sick(&nodes[0])
			c.change(nodes)
			verdicts := Fencing(time.Hour, nodes)
			switch {
			case c.act == FenceNothing && len(verdicts) > 0:
				t.Errorf("said %+v", verdicts)
			case c.act != FenceNothing && (len(verdicts) == 0 || verdicts[0].Act != c.act || !strings.Contains(verdicts[0].Why, c.says)):
				t.Errorf("said %+v", verdicts)
			}
		})
	}
}
