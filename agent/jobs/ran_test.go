package jobs

import (
	"testing"
	"time"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
)

func ranWith(vm string, epoch uint64, path string) hypervisor.Event {
	return hypervisor.Event{UUID: vm, Kind: hypervisor.EventRan, Ran: &hypervisor.Ran{
		Epoch: epoch, Devices: []domxml.Device{{Kind: domxml.DiskDevice, Key: "vda", Source: domxml.Source{Path: path}, XML: "<disk/>"}},
	}}
}

// What is told of guests that may have ended, and what is kept on disk of them.
func TestWhatAGuestRanWithIsKeptIfItWasChanged(t *testing.T) {
	const vm = "u"
	found := ranWith(vm, 1, "/a")
	found.Ran.Found = true
	stopped := hypervisor.Event{UUID: vm, Kind: hypervisor.EventStopped, Detail: "destroyed"}
	left := hypervisor.Event{UUID: vm, Kind: hypervisor.EventStopped, Detail: hypervisor.DetailMigrated}
	for name, tc := range map[string]struct {
		events []hypervisor.Event
		told   string // the disk; empty: nothing
		writes int
	}{
		"as it was started":                 {[]hypervisor.Event{ranWith(vm, 1, "/a"), ranWith(vm, 1, "/a"), stopped}, "", 0},
		"changed while it ran":              {[]hypervisor.Event{ranWith(vm, 1, "/a"), ranWith(vm, 1, "/b"), stopped}, "/b", 1},
		"its end is told before the change": {[]hypervisor.Event{ranWith(vm, 1, "/a"), stopped, ranWith(vm, 1, "/b")}, "/b", 1},
		"found, perhaps after a change":     {[]hypervisor.Event{found, stopped}, "/a", 0},
		"changed, and started anew": {
			[]hypervisor.Event{ranWith(vm, 1, "/a"), ranWith(vm, 1, "/b"), ranWith(vm, 2, "/b"), stopped}, "", 1,
		},
		"changed, and gone to another node": {[]hypervisor.Event{ranWith(vm, 1, "/a"), ranWith(vm, 1, "/b"), left}, "", 2},
		"saved, run on and changed days later": {
			[]hypervisor.Event{
				ranWith(vm, 1, "/a"),
				{UUID: vm, Kind: hypervisor.EventStopped, Detail: hypervisor.DetailSaved},
				{UUID: vm, Kind: hypervisor.EventStarted, Detail: "restored"},
				ranWith(vm, 1, "/b"), stopped,
			}, "/b", 1,
		},
		"changed on another node, perhaps": {
			[]hypervisor.Event{{UUID: vm, Kind: hypervisor.EventStarted, Detail: hypervisor.DetailMigrated}, ranWith(vm, 2, "/a"), stopped}, "/a", 0,
		},
		"changed to what cannot be told": {
			[]hypervisor.Event{
				ranWith(vm, 1, "/a"), ranWith(vm, 1, "/b"), {UUID: vm, Kind: hypervisor.EventRan, Ran: &hypervisor.Ran{Epoch: 1}}, stopped,
			}, "", 2,
		},
		"another guest, of which nobody told": {[]hypervisor.Event{stopped}, "", 0},
	} {
		var runs lastRuns
		now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
		writes := 0
		for _, event := range tc.events {
			if runs.saw(event, now) {
				for next, _ := runs.next(); next != ""; next, _ = runs.next() {
					writes++
				}
			}
		}
		got := ""
		for _, run := range runs.told(now) {
			got = run.Devices.GetDevices()[0].GetSource().GetPath()
			if run.UUID != vm || run.Devices.GetDevices()[0].GetXml() == "" {
				t.Errorf("%s: %+v", name, run)
			}
		}
		if got != tc.told || writes != tc.writes {
			t.Errorf("%s: it tells %q and writes %d times, want %q and %d", name, got, writes, tc.told, tc.writes)
		}
		if late := runs.told(now.Add(keepAnswers + time.Hour)); len(late) > 0 {
			t.Errorf("%s: after a week it tells %v", name, late)
		}
		if runs.forget(now.Add(keepAnswers + time.Hour)); tc.told != "" && len(runs.guests) > 0 {
			t.Errorf("%s: after a week it keeps %v", name, runs.guests)
		}
	}
}

// The agent ends right after a disk was changed, and the guest before it is back.
func TestWhatAGuestRanWithOutlivesTheAgent(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.jobs.Saw(ranWith(vmID, 5, "/a"))
		b.jobs.Saw(ranWith(vmID, 5, "/b"))
		b.crash()
		runs := b.jobs.LastRuns()
		if len(runs) != 1 || runs[0].Epoch != 5 || runs[0].Devices.GetDevices()[0].GetSource().GetPath() != "/b" {
			b.Errorf("it tells %v", runs)
		}
		b.jobs.Saw(hypervisor.Event{UUID: vmID, Kind: hypervisor.EventStopped, Detail: hypervisor.DetailMigrated})
		b.crash()
		if runs := b.jobs.LastRuns(); len(runs) > 0 {
			b.Errorf("of a guest that has left it tells %v", runs)
		}
	})
}
