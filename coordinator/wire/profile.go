package wire

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/profile"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// Profile puts the hours of a profile on the wire.
func Profile(hours []profile.Hour) []*berthv1.ProfileHour {
	told := make([]*berthv1.ProfileHour, 0, len(hours))
	for _, hour := range hours {
		one := &berthv1.ProfileHour{BeganAt: timestamppb.New(hour.Began), CpuRatio: hour.CPU, VcpuDelayRatio: hour.Delay, Node: hour.Node}
		if hour.Memory != nil {
			one.MemoryBytes = new(int64(*hour.Memory))
		}
		told = append(told, one)
	}
	return told
}

// ProfileFrom reads the hours of a profile.
func ProfileFrom(told []*berthv1.ProfileHour) []profile.Hour {
	var hours []profile.Hour
	for _, one := range told {
		hour := profile.Hour{Began: one.GetBeganAt().AsTime(), CPU: one.CpuRatio, Delay: one.VcpuDelayRatio, Node: one.GetNode()}
		if one.MemoryBytes != nil {
			hour.Memory = new(units.Bytes(*one.MemoryBytes))
		}
		hours = append(hours, hour)
	}
	return hours
}
