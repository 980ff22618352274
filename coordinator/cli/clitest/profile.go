package clitest

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/week"
)

// CannedProfile is the week of somebody who works by day: of a VM that has moved on Wednesday, and of a node. What was used on
// Sunday before noon is not known, and of Saturday the delay is not.
func CannedProfile(r *berthv1.ProfileRequest) (*berthv1.ProfileResponse, error) {
	answer := &berthv1.ProfileResponse{SchemaVersion: "1", Vm: r.GetVm(), Node: r.GetNode()}
	number, now := week.Of(noon)
	for hour := range week.Hours {
		day, of := hour/week.Day, hour%week.Day
		if day == 6 && of < 12 {
			continue
		}
		in := number
		if hour >= now {
			in-- // it has not been yet in this week
		}
		one := &berthv1.ProfileHour{
			BeganAt: timestamppb.New(week.Began(in, hour)), CpuRatio: new(0.0), MemoryBytes: new(2 * Gib), VcpuDelayRatio: new(0.001), Node: "node1",
		}
		if day < 5 && of >= 8 && of < 18 {
			busy := 1 + float64(day)/4
			if of == 14 {
				busy += 2
			}
			one.CpuRatio, one.MemoryBytes, one.VcpuDelayRatio = new(busy), new(2*Gib+int64(of)*Gib/4), new(busy/100)
		}
		if day == 5 {
			one.VcpuDelayRatio = nil
		}
		if answer.GetNode() != "" {
			one.CpuRatio, one.Node = new(one.GetCpuRatio()/16), answer.GetNode()
		} else if hour > 2*week.Day+10 {
			one.Node = "node2"
		}
		answer.Hours = append(answer.Hours, one)
	}
	for back := 60; back > 0; back-- {
		if back == 17 {
			continue // a minute that nobody has measured
		}
		one := &berthv1.ProfileHour{
			BeganAt: timestamppb.New(noon.Add(-time.Duration(back) * time.Minute)), CpuRatio: new(float64(60-back) / 20),
			MemoryBytes: new(2*Gib + int64(60-back)*Gib/60), Node: "node2",
		}
		if answer.GetNode() != "" {
			one.CpuRatio, one.Node = new(one.GetCpuRatio()/16), answer.GetNode()
		}
		answer.Minutes = append(answer.GetMinutes(), one)
	}
	if answer.GetVm() != "" {
		answer.Warnings = []string{"node node3 does not tell what it has measured: its agent is not connected"}
	}
	return answer, nil
}
