package inventory

import (
	"testing"

	berthv1 "berth/shared/gen/berth/v1"
)

func TestChangedDevicesAreToldOnce(t *testing.T) {
	var s Store
	domain := func(epoch uint64, path string) *berthv1.Domain {
		devices := []*berthv1.Device{{Kind: "disk", Key: "vda", Source: &berthv1.DiskSource{Path: path}}}
		return &berthv1.Domain{
			Uuid: "u1", Epoch: epoch, Managed: true, State: berthv1.DomainState_DOMAIN_STATE_RUNNING, Devices: &berthv1.Devices{Devices: devices},
		}
	}
	arriving := domain(1, "/b")
	arriving.State = berthv1.DomainState_DOMAIN_STATE_PAUSED_MIGRATION
	wider := domain(1, "/a")
	wider.Vcpus = 2
	for _, tc := range []struct {
		name        string
		before, now *berthv1.Domain
		told        bool
		devices     int
	}{
		{"first heard", nil, domain(1, "/a"), true, 1},
		{"as before", domain(1, "/a"), domain(1, "/a"), false, 0},
		{"another file", domain(1, "/a"), domain(1, "/b"), true, 1},
		{"another number of vCPUs", domain(1, "/a"), wider, true, 1},
		{"started anew", domain(1, "/a"), domain(2, "/a"), true, 1},
		{"on its way to another node", domain(1, "/a"), arriving, true, 0},
		{"an agent that does not tell", domain(1, "/a"), &berthv1.Domain{Uuid: "u1", Epoch: 1}, false, 0},
	} {
		s.noteDevices("n1", tc.before, tc.now)
		got := s.ChangedDevices()
		if (len(got) == 1) != tc.told {
			t.Errorf("%s: %v", tc.name, got)
		}
		if tc.told && (got[0].VM != "u1" || got[0].Node != "n1" || got[0].Epoch != tc.now.GetEpoch() || len(got[0].Devices) != tc.devices) {
			t.Errorf("%s: %+v", tc.name, got)
		}
		if again := s.ChangedDevices(); len(again) > 0 {
			t.Errorf("%s: it is told again: %v", tc.name, again)
		}
	}
}
