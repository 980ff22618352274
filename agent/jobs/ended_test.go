package jobs

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"berth/agent/hypervisor"
	"berth/agent/telemetry"
)

// What events tell of a guest that is gone: only one that ran, and did not leave by a migration, has ended here.
func TestHowAGuestEnded(t *testing.T) {
	const vm = "u"
	on := func(kind, detail string) hypervisor.Event {
		return hypervisor.Event{UUID: vm, Kind: kind, Detail: detail}
	}
	started, resumed := on(hypervisor.EventStarted, "booted"), on(hypervisor.EventResumed, "")
	arrives, suspended := on(hypervisor.EventStarted, hypervisor.DetailMigrated), on(hypervisor.EventSuspended, "")
	left, crashed := on(hypervisor.EventStopped, hypervisor.DetailMigrated), on(hypervisor.EventStopped, "crashed")
	gap, saved := hypervisor.Event{Kind: hypervisor.EventDisconnected}, on(hypervisor.EventStopped, hypervisor.DetailSaved)
	type answer struct{ ended, sure bool }
	unseen := map[string]bool{"nothing was told": true, "events were missed": true, "its memory is kept": true}
	for name, tc := range map[string]struct {
		events []hypervisor.Event
		listed hypervisor.State // before them; empty: nothing was listed
		wants  answer
		later  answer // when no event has come for long
	}{
		"nothing was told": {wants: answer{false, true}, later: answer{false, true}},
		"it was handed over": {
			events: []hypervisor.Event{started, suspended, left}, wants: answer{false, true}, later: answer{false, true},
		},
		"it ran on and crashed": {
			events: []hypervisor.Event{started, suspended, resumed, crashed}, wants: answer{true, true}, later: answer{true, true},
		},
		"its memory is kept": {
			events: []hypervisor.Event{started, saved}, wants: answer{false, true}, later: answer{false, true},
		},
		"it stood still and its process died": {
			events: []hypervisor.Event{started, suspended, crashed}, wants: answer{false, true}, later: answer{false, true},
		},
		"a copy that arrived and never ran": {
			events: []hypervisor.Event{arrives, crashed}, wants: answer{false, true}, later: answer{false, true},
		},
		"it was listed as running, and crashed": {
			listed: hypervisor.Running, events: []hypervisor.Event{crashed}, wants: answer{true, true}, later: answer{true, true},
		},
		"it was listed as paused, and went": {
			listed: hypervisor.PausedMigration, events: []hypervisor.Event{crashed}, wants: answer{false, true}, later: answer{false, true},
		},
		"it ran, and no event tells":         {events: []hypervisor.Event{started}, wants: answer{false, false}, later: answer{true, true}},
		"it stood still, and no event tells": {events: []hypervisor.Event{suspended}, wants: answer{false, false}, later: answer{false, true}},
		"events were missed": {
			events: []hypervisor.Event{started, crashed, gap}, wants: answer{false, true}, later: answer{false, true},
		},
	} {
		e, now := &endings{}, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		if tc.listed != "" {
			e.listed([]hypervisor.Domain{{UUID: vm, State: tc.listed}}, e.missed(), now)
		}
		for _, event := range tc.events {
			e.saw(event, now)
		}
		gone := sight{domain: hypervisor.Domain{UUID: vm, State: hypervisor.Absent}}
		var got answer
		if e.unseen(vm, gone) != unseen[name] {
			t.Errorf("%s: unseen %t", name, !unseen[name])
		}
		if got.ended, got.sure = e.how(vm, gone, now); got != tc.wants {
			t.Errorf("%s: %+v, want %+v", name, got, tc.wants)
		}
		if got.ended, got.sure = e.how(vm, gone, now.Add(surelyAbsent)); got != tc.later {
			t.Errorf("%s, later: %+v, want %+v", name, got, tc.later)
		}
	}
}

// How long a guest was watched that has ended: from when it ran on without a pause, because it leaves for another node only after one.
func TestHowLongAGuestWasWatchedThatHasEnded(t *testing.T) {
	const vm = "u"
	on := func(kind, detail string) hypervisor.Event {
		return hypervisor.Event{UUID: vm, Kind: kind, Detail: detail}
	}
	started, resumed := on(hypervisor.EventStarted, "booted"), on(hypervisor.EventResumed, "")
	arrives, suspended := on(hypervisor.EventStarted, hypervisor.DetailMigrated), on(hypervisor.EventSuspended, "")
	left, crashed := on(hypervisor.EventStopped, hypervisor.DetailMigrated), on(hypervisor.EventStopped, "crashed")
	panicked, gap := on(hypervisor.EventCrashed, ""), hypervisor.Event{Kind: hypervisor.EventReconnected}
	for name, tc := range map[string]struct {
		events  []hypervisor.Event // a minute apart
		listed  bool               // as running, before them
		watched int                // minutes ago, at the last event; -1: no end was seen
		whole   bool
	}{
		"started here":                {[]hypervisor.Event{started, crashed}, false, 1, true},
		"a start is told twice":       {[]hypervisor.Event{started, resumed, crashed}, false, 2, true},
		"in either order":             {[]hypervisor.Event{resumed, started, crashed}, false, 1, true},
		"it came here":                {[]hypervisor.Event{arrives, resumed, crashed}, false, 1, true},
		"it came here, paused":        {[]hypervisor.Event{arrives, suspended, resumed, crashed}, false, 1, true},
		"it was paused since":         {[]hypervisor.Event{started, suspended, resumed, crashed}, false, 1, false},
		"it came here and was paused": {[]hypervisor.Event{arrives, resumed, suspended, resumed, crashed}, false, 1, false},
		"it ran when the agent came":  {[]hypervisor.Event{crashed}, true, 1, false},
		"a migration that came back":  {[]hypervisor.Event{suspended, resumed, crashed}, true, 1, false},
		"it panicked":                 {[]hypervisor.Event{started, suspended, panicked, crashed}, false, 3, true},
		"it panicked, told first":     {[]hypervisor.Event{started, panicked, suspended, crashed}, false, 3, true},
		"it panicked, and stood":      {[]hypervisor.Event{started, suspended, resumed, panicked, suspended, crashed}, false, 3, false},
		"it left as it panicked":      {[]hypervisor.Event{started, suspended, panicked, left}, false, -1, false},
		"it panicked after a gap":     {[]hypervisor.Event{started, gap, suspended, panicked, crashed}, false, -1, false},
		"it left":                     {[]hypervisor.Event{started, suspended, left}, false, -1, false},
		"it was started again":        {[]hypervisor.Event{started, crashed, started}, false, -1, false},
		"it ended in a gap":           {[]hypervisor.Event{started, gap, crashed}, false, -1, false},
		"events were missed after it": {[]hypervisor.Event{started, crashed, gap}, false, -1, false},
		"it stood still, and died":    {[]hypervisor.Event{started, suspended, crashed}, false, -1, false},
	} {
		e, now := &endings{}, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		if tc.listed {
			e.listed([]hypervisor.Domain{{UUID: vm, State: hypervisor.Running}}, e.missed(), now)
		}
		for _, event := range tc.events {
			now = now.Add(time.Minute)
			e.saw(event, now)
		}
		all := e.lately(now)
		if (len(all) == 0) != (tc.watched < 0) {
			t.Errorf("%s: %+v", name, all)
			continue
		}
		want := telemetry.Ending{UUID: vm, Watched: time.Duration(tc.watched) * time.Minute, Whole: tc.whole, Detail: crashed.Detail}
		if len(all) == 1 && all[0] != want {
			t.Errorf("%s: %+v, want %+v", name, all[0], want)
		}
		if len(all) == 1 && len(e.lately(now.Add(endingsTold))) != 1 || len(e.lately(now.Add(endingsTold+1))) != 0 {
			t.Errorf("%s: told for another time than %s", name, endingsTold)
		}
	}
}

func TestAListingFromBeforeAGapSaysNothing(t *testing.T) {
	e, now := &endings{}, time.Now()
	before := e.missed()
	e.saw(hypervisor.Event{Kind: hypervisor.EventReconnected}, now)
	e.listed([]hypervisor.Domain{{UUID: "u", State: hypervisor.Running}}, before, now)
	e.saw(hypervisor.Event{UUID: "u", Kind: hypervisor.EventStopped, Detail: "crashed"}, now)
	if ended, _ := e.how("u", sight{domain: hypervisor.Domain{State: hypervisor.Absent}}, now); ended {
		t.Error("took a listing for what came after it")
	}
}

func TestWhatEndedLongAgoIsForgotten(t *testing.T) {
	e, now := &endings{}, time.Now()
	for _, kind := range []string{hypervisor.EventStarted, hypervisor.EventStopped} {
		e.saw(hypervisor.Event{UUID: "u", Kind: kind, Detail: "crashed"}, now)
	}
	e.saw(hypervisor.Event{UUID: "v", Kind: hypervisor.EventStarted}, now)
	if e.forget(now.Add(keepAnswers)); len(e.guests) != 2 {
		t.Errorf("kept %v", e.guests)
	}
	if e.forget(now.Add(keepAnswers + 1)); len(e.guests) != 1 {
		t.Errorf("kept %v, want what runs", e.guests)
	}
}

// The answer to a look says it, and only of what is gone.
func TestALookTellsThatTheGuestEndedHere(t *testing.T) {
	inBubble(t, func(b *bench) {
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		go func() { _ = b.node.Subscribe(ctx, b.jobs.Saw) }()
		synctest.Wait()
		b.start(5)
		if r := b.do(command("op1", 1, 5, inspectOrder)); r.GetDomain().GetEndedHere() {
			b.Errorf("it runs: %+v", r)
		}
		if err := b.node.Destroy(b.Context(), vmID, 5); err != nil { // beside Berth
			b.Fatal(err)
		}
		synctest.Wait()
		b.want(b.do(command("op1", 2, 5, inspectOrder)), done_, "", absentState)
		if r := b.do(command("op1", 3, 5, inspectOrder)); !r.GetDomain().GetEndedHere() {
			b.Errorf("it was destroyed here: %+v", r)
		}
	})
}
