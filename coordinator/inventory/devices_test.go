package inventory

import (
	"slices"
	"testing"

	berthv1 "berth/shared/gen/berth/v1"
)

func TestChangedDevicesAreToldOnce(t *testing.T) {
	var s Store
	domain := func(epoch uint64, path string) *berthv1.Domain {
		return &berthv1.Domain{Uuid: "u1", Epoch: epoch, Devices: &berthv1.Devices{Devices: []*berthv1.Device{
			{Kind: "disk", Key: "vda", Source: &berthv1.DiskSource{Path: path}},
		}}}
	}
	for _, tc := range []struct {
		name        string
		before, now *berthv1.Domain
		told        bool
	}{
		{"first heard", nil, domain(1, "/a"), true},
		{"as before", domain(1, "/a"), domain(1, "/a"), false},
		{"another file", domain(1, "/a"), domain(1, "/b"), true},
		{"started anew", domain(1, "/a"), domain(2, "/a"), true},
		{"an agent that does not tell", domain(1, "/a"), &berthv1.Domain{Uuid: "u1", Epoch: 1}, false},
	} {
		s.noteDevices(tc.before, tc.now)
		if got := s.ChangedDevices(); slices.Contains(got, "u1") != tc.told {
			t.Errorf("%s: %v", tc.name, got)
		}
		if again := s.ChangedDevices(); len(again) > 0 {
			t.Errorf("%s: it is told again: %v", tc.name, again)
		}
	}
}
