package inventory

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// ChangedDevices are the domains whose devices or number of vCPUs have changed, or were first told, since it was asked last, with what was
// told last; by UUID. A domain may have ended since.
func (s *Store) ChangedDevices() []model.ToldDevices {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.devices) == 0 {
		return nil
	}
	changed := make([]model.ToldDevices, 0, len(s.devices))
	for _, uuid := range slices.Sorted(maps.Keys(s.devices)) {
		changed = append(changed, s.devices[uuid])
	}
	clear(s.devices)
	return changed
}

// noteDevices takes note of a domain whose devices a node tells, if they or its vCPUs are not those that were told before. The caller
// holds the lock.
func (s *Store) noteDevices(node string, before, now *berthv1.Domain) {
	told := now.GetDevices()
	if before == nil && told == nil || before != nil && before.GetEpoch() == now.GetEpoch() && before.GetVcpus() == now.GetVcpus() &&
		(told == nil || proto.Equal(before.GetDevices(), told)) {
		return
	}
	s.lookAt(node, now.GetUuid(), EpochOf(now.GetEpoch()))
	if state := stateOf(now); now.GetManaged() && state.Lives() && state != model.DomainPausedMigration {
		one := s.devices[now.GetUuid()]
		one.Devices = DevicesFrom(told)
		s.devices[one.VM] = one
	}
}

// lookAt has somebody look at a domain whose devices may have changed. The caller holds the lock.
func (s *Store) lookAt(node, vm string, epoch uint64) {
	if s.devices == nil {
		s.devices = map[string]model.ToldDevices{}
	}
	s.devices[vm] = model.ToldDevices{VM: vm, Node: node, Epoch: epoch}
}

// DevicesFrom reads what an agent tells of a domain's devices; nil: it does not tell.
func DevicesFrom(wire *berthv1.Devices) []model.Device {
	if wire == nil {
		return nil
	}
	devices := make([]model.Device, 0, len(wire.GetDevices()))
	for _, one := range wire.GetDevices() {
		devices = append(devices, model.Device{
			Kind: one.GetKind(), Key: one.GetKey(), Format: one.GetFormat(), Network: one.GetNetwork(), Media: one.GetMedia(), XML: one.GetXml(),
			Source: diskSource(one.GetSource()), Capacity: units.Bytes(max(one.GetCapacityBytes(), 0)),
		})
	}
	return devices
}

func diskSource(source *berthv1.DiskSource) model.DiskSource {
	return model.DiskSource{Path: source.GetPath(), Pool: source.GetPool(), Volume: source.GetVolume()}
}
