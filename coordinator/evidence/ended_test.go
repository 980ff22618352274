package evidence

import (
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
)

// Why a guest has ended is a condition of its own, with what to do: its owner looks into a panic, and whoever runs the host into a process
// that died.
func TestWhyAGuestHasEndedIsTold(t *testing.T) {
	for cause, want := range map[model.EndingCause]struct {
		kind  model.ConditionKind
		parts []string
	}{
		model.CauseUnknown:     {model.OutOfBand, []string{"it stopped on node1, and not by Berth"}},
		model.CauseShutDown:    {model.OutOfBand, []string{"its guest has shut down on node1"}},
		model.CauseDestroyed:   {model.OutOfBand, []string{"somebody has ended it on node1"}},
		model.CausePanicked:    {model.GuestPanicked, []string{"its guest has crashed on node1", "look at its console"}},
		model.CauseProcessDied: {model.ProcessDied, []string{"its QEMU process on node1 has died", "/var/log/libvirt/qemu/db.log"}},
	} {
		s := running()
		s.vm.Name = "db"
		s.gone()
		s.endedOn("n1", time.Second, time.Minute, true)
		s.change("n1", func(f *model.NodeFacts) {
			ending := f.Endings[vmID]
			ending.Cause = cause
			f.Endings = map[string]model.Ending{vmID: ending}
		})
		found := Beside(s.vm, s.survey().sighting(&s.vm))
		if found.Verdict != StoppedHere || found.Condition.Kind != want.kind || !IsOutOfBand(found.Condition) {
			t.Errorf("%q: %+v", cause, found)
		}
		for _, part := range append(want.parts, "'berth vm start db' starts it", "'berth vm stop db' leaves it off") {
			if !strings.Contains(found.Condition.Text, part) {
				t.Errorf("%q: %q does not say %q", cause, found.Condition.Text, part)
			}
		}
	}
}

// A guest that ended with its host is told as that, and only then: what its host has ended is started again by itself, and what somebody
// has ended is not. A host that has the boot ID of before has not booted.
func TestAGuestThatEndedWithItsHostIsToldAsThat(t *testing.T) {
	for boot, want := range map[string]model.ConditionKind{"n1-next": model.HostBooted, "n1-boot": model.OutOfBand} {
		s := running()
		s.vm.Name, s.vm.Desired = "db", model.Running
		s.gone()
		s.change("n1", func(f *model.NodeFacts) { f.Boot = boot })
		if boot == "n1-boot" {
			s.endedOn("n1", time.Second, time.Minute, true)
		}
		found := Beside(s.vm, s.survey().sighting(&s.vm))
		if found.Verdict != StoppedHere || found.Condition.Kind != want || found.Condition.About != "n1" {
			t.Fatalf("%s: %+v", boot, found)
		}
		s.vm.Holder, s.vm.LastNode, s.vm.Condition = "", "n1", found.Condition
		if again := Again(s.survey().Moment)(&s.vm); again != (want == model.HostBooted) {
			t.Errorf("%s: started again by itself: %v", boot, again)
		}
	}
}

// A guest that ends again and again is left alone for longer each time, and in the end for a person. One that ran for long enough begins
// anew, and so does one that somebody starts. One that no node can start is tried on, because that need not be its fault.
func TestAGuestThatKeepsEndingIsLeftAlone(t *testing.T) {
	always := func(*model.VM) bool { return true }
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	vm := model.VM{ID: "v", Name: "db", HA: true, Desired: model.Running}
	// restart waits until the VM is restarted, and says for how long.
	restart := func() (after time.Duration, held bool) {
		for since := now; now.Sub(since) < 24*time.Hour; now = now.Add(time.Minute) {
			ready, resting := Restartable([]model.VM{vm}, now, always)
			if len(ready) == 1 {
				after = now.Sub(since)
				Restarted(&vm, now)
				vm.Condition = model.Condition{}
				return after, false
			}
			vm.Condition = resting[vm.ID]
		}
		return 0, vm.Condition.Is(model.RestartHeld)
	}
	runs := func(length time.Duration) {
		vm.StartedAt = now
		now = now.Add(length)
	}
	for i, want := range []time.Duration{0, 0, 0, 9 * time.Minute, 19 * time.Minute, 39 * time.Minute} {
		if after, held := restart(); after != want || held {
			t.Fatalf("restart %d after %s, want %s", i+1, after, want)
		}
		runs(time.Minute)
	}
	if _, held := restart(); !held || !strings.Contains(vm.Condition.Text, "'berth vm start db' starts it again") {
		t.Fatalf("after the last: %+v", vm.Condition)
	}
	vm.Restarts, vm.Condition = LastRestart, model.Condition{}
	vm.RestartedAt = now
	runs(RestartWindow)
	if after, held := restart(); after != 0 || held || vm.Restarts != 1 {
		t.Errorf("one that ran for long: after %s, %+v", after, vm)
	}
	vm.Restarts, vm.RestartedAt, vm.StartedAt = LastRestart+1, now, now.Add(-time.Hour)
	if after, held := restart(); after != RestartWindow || held {
		t.Errorf("one that no node could start: after %s, %+v", after, vm)
	}
}
