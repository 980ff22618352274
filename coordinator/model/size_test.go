package model

import (
	"strings"
	"testing"

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

// What waits for the next start keeps what the VM was started with, however often it is changed, and stays short.
func TestWhatWaitsForTheNextStart(t *testing.T) {
	vm := VM{Holder: "n1"}
	vm.Defer([]PendingChange{{Field: "disks", Next: strings.Repeat("ä", 2*MaxPendingText)}})
	if next := vm.Pending[0].Next; len([]rune(next)) != MaxPendingText || !strings.HasSuffix(next, "ä...") {
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
