package inventory

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

// ChangedDevices are the UUIDs of the domains whose devices have changed, or were first told, since it was asked last; ascending.
func (s *Store) ChangedDevices() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.devices) == 0 {
		return nil
	}
	changed := slices.Sorted(maps.Keys(s.devices))
	clear(s.devices)
	return changed
}

// noteDevices takes note of a domain whose devices are told, if they are not those that were told before. The caller holds the lock.
func (s *Store) noteDevices(before, now *berthv1.Domain) {
	told := now.GetDevices()
	if told == nil || before != nil && before.GetEpoch() == now.GetEpoch() && proto.Equal(before.GetDevices(), told) {
		return
	}
	if s.devices == nil {
		s.devices = map[string]bool{}
	}
	s.devices[now.GetUuid()] = true
}

// DevicesFrom reads what an agent tells of a domain's devices; nil: it does not tell.
func DevicesFrom(wire *berthv1.Devices) []model.Device {
	if wire == nil {
		return nil
	}
	devices := make([]model.Device, 0, len(wire.GetDevices()))
	for _, one := range wire.GetDevices() {
		source := one.GetSource()
		devices = append(devices, model.Device{
			Kind: one.GetKind(), Key: one.GetKey(), Format: one.GetFormat(), Network: one.GetNetwork(), Media: one.GetMedia(), XML: one.GetXml(),
			Source: model.DiskSource{Path: source.GetPath(), Pool: source.GetPool(), Volume: source.GetVolume()},
		})
	}
	return devices
}
