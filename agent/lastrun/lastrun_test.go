package lastrun

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"berth/agent/hypervisor"
	"berth/agent/telemetry"
	"berth/shared/domxml"
)

func ranWith(vm string, epoch uint64, path string) hypervisor.Event {
	return hypervisor.Event{UUID: vm, Kind: hypervisor.EventRan, Ran: &hypervisor.Ran{
		Epoch: epoch, Devices: []domxml.Device{{Kind: domxml.DiskDevice, Key: "vda", Source: domxml.Source{Path: path}, XML: "<disk/>"}},
	}}
}

const keep, tell = 7 * 24 * time.Hour, 24 * time.Hour

// What is told of guests that may have ended, and what is kept on disk of them.
func TestWhatAGuestRanWithIsKeptIfItWasChanged(t *testing.T) {
	const vm = "u"
	found := ranWith(vm, 1, "/a")
	found.Ran.Found = true
	kept := ranWith(vm, 1, "/k")
	kept.Ran.Ended = true
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
		"ended before this agent began":       {[]hypervisor.Event{kept}, "/k", 1},
		"ended, by an older run":              {[]hypervisor.Event{ranWith(vm, 2, "/b"), ranWith(vm, 2, "/c"), stopped, kept}, "/c", 1},
		"ended, and found again":              {[]hypervisor.Event{kept, found, stopped}, "/a", 2},
		"another guest, of which nobody told": {[]hypervisor.Event{stopped}, "", 0},
	} {
		var runs Runs
		now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
		writes := 0
		for _, event := range tc.events {
			if runs.Saw(event, now) {
				for next, _ := runs.Next(); next != ""; next, _ = runs.Next() {
					writes++
				}
			}
		}
		got := ""
		for _, run := range runs.Told(now, keep, tell) {
			got = run.Devices.GetDevices()[0].GetSource().GetPath()
			if run.UUID != vm || run.Devices.GetDevices()[0].GetXml() == "" {
				t.Errorf("%s: %+v", name, run)
			}
		}
		if got != tc.told || writes != tc.writes {
			t.Errorf("%s: it tells %q and writes %d times, want %q and %d", name, got, writes, tc.told, tc.writes)
		}
		if late := runs.Told(now.Add(keep+time.Hour), keep, tell); len(late) > 0 {
			t.Errorf("%s: after a week it tells %v", name, late)
		}
		if runs.Forget(now.Add(keep+time.Hour), keep); tc.told != "" && len(runs.guests) > 0 {
			t.Errorf("%s: after a week it keeps %v", name, runs.guests)
		}
	}
}

// The news of a guest's last change may be missed. What the coordinator asked for afterwards is what is told once the guest has ended, and
// never what was heard before; but what was heard while it was being read is newer.
func TestWhatWasReadOfAGuestIsNotTakenBack(t *testing.T) {
	const vm = "u"
	devices := func(path string) []byte {
		text, err := proto.MarshalOptions{Deterministic: true}.Marshal(telemetry.Devices(ranWith(vm, 1, path).Ran.Devices, nil, true))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	left := hypervisor.Event{UUID: vm, Kind: hypervisor.EventStopped, Detail: hypervisor.DetailMigrated}
	for name, tc := range map[string]struct {
		meanwhile []hypervisor.Event
		told      string
		writes    bool
	}{
		"nothing is heard meanwhile":          {nil, "/pivoted", true},
		"a change is heard meanwhile":         {[]hypervisor.Event{ranWith(vm, 1, "/newer")}, "/newer", false},
		"it is started anew meanwhile":        {[]hypervisor.Event{ranWith(vm, 2, "/anew")}, "", false},
		"it goes to another node in the time": {[]hypervisor.Event{left}, "", false},
	} {
		var runs Runs
		now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
		runs.Saw(ranWith(vm, 1, "/a"), now)
		runs.Saw(ranWith(vm, 1, "/attached"), now)
		for next, _ := runs.Next(); next != ""; next, _ = runs.Next() {
		}
		before := runs.Of(vm)
		for _, event := range tc.meanwhile {
			runs.Saw(event, now)
		}
		for next, _ := runs.Next(); next != ""; next, _ = runs.Next() {
		}
		if writes := runs.Read(vm, before, devices("/pivoted"), now); writes != tc.writes {
			t.Errorf("%s: it is to be written: %t", name, writes)
		}
		runs.Saw(hypervisor.Event{UUID: vm, Kind: hypervisor.EventStopped, Detail: "destroyed"}, now)
		told := ""
		for _, one := range runs.Told(now, keep, tell) {
			told = one.Devices.GetDevices()[0].GetSource().GetPath()
		}
		if told != tc.told {
			t.Errorf("%s: told is %q, want %q", name, told, tc.told)
		}
	}
}

// What was kept of an end is told for a while. That of a guest which was found to run as it did before is told for as long as it runs.
func TestWhatWasKeptOfAnEndIsOldOnceTheGuestRuns(t *testing.T) {
	const vm = "u"
	noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	kept, found := ranWith(vm, 1, "/a"), ranWith(vm, 1, "/a")
	kept.Ran.Ended, found.Ran.Found = true, true
	var runs Runs
	runs.Saw(kept, noon)
	if told := runs.Told(noon.Add(tell+time.Second), keep, tell); len(told) > 0 {
		t.Errorf("a day later it tells %+v", told)
	}
	runs.Saw(found, noon)
	if told := runs.Told(noon.Add(tell+time.Second), keep, tell); len(told) != 1 {
		t.Errorf("of one that runs again it tells %+v", told)
	}
}
