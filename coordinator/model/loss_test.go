package model

import (
	"testing"
	"time"
)

func TestAVMLosesItsHosts(t *testing.T) {
	noon := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	vm := VM{StartedAt: noon}
	vm.Lose("n1", vm.CameAt(), noon.Add(48*time.Hour)) // it ran there for two days: the first of a new count
	if vm.LostTooMany() || len(vm.Losses) != 1 {
		t.Fatalf("after one loss: %+v", vm.Losses)
	}
	before := vm
	vm.StartedAt = noon.Add(49 * time.Hour)
	vm.Lose("n2", vm.CameAt(), vm.StartedAt.Add(LossSoon))
	if !vm.LostTooMany() || len(before.Losses) != 1 {
		t.Fatalf("after two: %+v, and the record before has %+v", vm.Losses, before.Losses)
	}
	if got, want := vm.LossesText(), "n1 at 2026-03-03 12:00:00 UTC, then n2 at 2026-03-03 13:03:00 UTC"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	later := vm
	later.StartedAt, later.MovedAt = noon, noon.Add(72*time.Hour)
	later.Lose("n3", later.CameAt(), later.MovedAt.Add(LossSoon-time.Second))
	if len(later.Losses) != MaxLosses || later.Losses[1].Node != "n3" {
		t.Errorf("a host that it had just come to: %+v", later.Losses)
	}
	if vm.Lose("n4", vm.CameAt(), vm.StartedAt.Add(LossSoon+time.Second)); vm.LostTooMany() || vm.Losses[0].Node != "n4" {
		t.Errorf("a host that it had for long: %+v", vm.Losses)
	}
}
