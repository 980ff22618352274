package model

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/shared/units"
)

func TestHowLargeAVMIsWhereItRuns(t *testing.T) {
	spec := VMSpec{Memory: 8 * units.GiB, VCPUs: 8}
	shows := func(state DomainState, memory units.Bytes, vcpus int) *Domain {
		return &Domain{State: state, Memory: memory, VCPUs: vcpus}
	}
	for name, c := range map[string]struct {
		ran    Size
		domain *Domain
		want   Size
	}{
		"as it was started":                          {Size{units.GiB, 1}, nil, Size{units.GiB, 1}},
		"its node shows it so":                       {Size{units.GiB, 1}, shows(DomainRunning, units.GiB, 1), Size{units.GiB, 1}},
		"somebody has given it a vCPU with virsh":    {Size{units.GiB, 1}, shows(DomainRunning, units.GiB, 2), Size{units.GiB, 2}},
		"somebody has taken vCPUs with virsh":        {Size{units.GiB, 4}, shows(DomainRunning, units.GiB, 2), Size{units.GiB, 4}},
		"it is no more than a definition":            {Size{units.GiB, 1}, shows(DomainShutoff, 9*units.GiB, 9), Size{units.GiB, 1}},
		"an earlier release has started it":          {Size{}, shows(DomainPaused, units.GiB, 1), Size{units.GiB, 1}},
		"and its node does not show it":              {Size{}, nil, Size{8 * units.GiB, 8}},
		"and its node can tell neither of the two":   {Size{}, shows(DomainOrphan, 0, 0), Size{8 * units.GiB, 8}},
		"and its node can tell only one of the two":  {Size{}, shows(DomainRunning, units.GiB, 0), Size{units.GiB, 8}},
		"and it is no more than a definition either": {Size{}, shows(DomainShutoff, units.GiB, 1), Size{8 * units.GiB, 8}},
	} {
		t.Run(name, func(t *testing.T) {
			vm := VM{Spec: spec, RanSize: c.ran, Holder: "n1"}
			if is := vm.SizeOn(c.domain); is != c.want {
				t.Errorf("%+v, want %+v", is, c.want)
			}
		})
	}
}

func TestWhatIsOtherwiseAtTheNextStart(t *testing.T) {
	early, late := time.Unix(100, 0), time.Unix(200, 0)
	vm := VM{Holder: "n1", Spec: VMSpec{Memory: units.GiB, VCPUs: 1}, RanSize: Size{units.GiB, 1}}
	want := func(what string, domain *Domain, want ...PendingChange) {
		t.Helper()
		if diff := cmp.Diff(want, vm.AtNextStart(domain)); diff != "" {
			t.Errorf("%s (-want +is):\n%s", what, diff)
		}
	}
	want("nothing was changed", nil)
	want("libvirt rounds up", &Domain{State: DomainRunning, Memory: units.GiB - 5, VCPUs: 1})
	vm.Defer([]PendingChange{
		{Field: "offer", Next: "small", By: "alice", At: early}, {Field: "memory", Was: "1 GiB", Next: "4 GiB", By: "alice", At: early},
	})
	vm.Spec.Memory = 4 * units.GiB
	offer := PendingChange{Field: "offer", Next: "small", By: "alice", At: early}
	want("two fields", nil, PendingChange{Field: "memory", Was: "1 GiB", Next: "4 GiB", By: "alice", At: early}, offer)
	vm.Defer([]PendingChange{{Field: "memory", Was: "4 GiB", Next: "900 GiB", By: "bob", At: late}})
	vm.Spec.Memory = 900 * units.GiB
	want("one of them again, by another", nil, PendingChange{Field: "memory", Was: "1 GiB", Next: "900 GiB", By: "bob", At: late}, offer)
	vm.Defer([]PendingChange{{Field: "offer", Was: "small", By: "bob", At: late}})
	want("the other one as it was", nil, PendingChange{Field: "memory", Was: "1 GiB", Next: "900 GiB", By: "bob", At: late})
	want("virsh has given it a vCPU", &Domain{State: DomainRunning, Memory: units.GiB, VCPUs: 2},
		PendingChange{Field: "memory", Was: "1 GiB", Next: "900 GiB", By: "bob", At: late}, PendingChange{Field: "vcpus", Was: "2", Next: "1"})
	vm.Holder = ""
	want("it does not run", nil)
	vm.Defer([]PendingChange{{Field: "disks", Next: strings.Repeat("ä", 2*MaxPendingText)}})
	if next := vm.Pending[1].Next; len([]rune(next)) != MaxPendingText || !strings.HasSuffix(next, "ä...") {
		t.Errorf("a long text is kept as %q", next)
	}
}

// A guest that does not keep to its balloon counts for the memory that it has.
func TestABalloonThatIsNotKeptTo(t *testing.T) {
	balloon := 2 * units.GiB
	for _, tc := range []struct{ resident, counts units.Bytes }{
		{0, 2 * units.GiB},
		{2*units.GiB + 300*units.MiB, 2 * units.GiB}, // QEMU has some of its own
		{3 * units.GiB, 3 * units.GiB},
		{9 * units.GiB, 8 * units.GiB},
	} {
		vm := VM{Ballooned: true, RanSize: Size{Memory: balloon, VCPUs: 1}}
		domain := &Domain{State: DomainRunning, Memory: 8 * units.GiB, VCPUs: 1, Balloon: &balloon, Resident: &tc.resident}
		if is := vm.SizeOn(domain).Memory; is != tc.counts {
			t.Errorf("with %v in memory it counts %v, not %v", tc.resident, is, tc.counts)
		}
	}
}
