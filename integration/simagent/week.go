package simagent

import (
	"math"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/week"
)

// Hours of a day at which the people who use a guest come and go, and what they leave of its load at night and at a weekend.
const (
	opens, closes = 8, 18
	quiet         = 0.1
)

// missed is the hour of the week in which no simulated node measured enough, so that there is one that nobody knows.
const missed = 2*week.Day + 3

// weekOf is the week before a time of a guest, or of the whole node if none is named: its load rises and falls with working hours. Of a
// guest that it does not have, the node knows nothing.
func (n *node) weekOf(guest string, now time.Time) (hours []*berthv1.ProfileHour) {
	cpus, memory, there := n.most(guest)
	if !there {
		return nil
	}
	ended := now.Truncate(time.Hour)
	for back := range week.Hours {
		began := ended.Add(-time.Duration(week.Hours-back) * time.Hour)
		_, at := week.Of(began)
		if at == missed {
			continue
		}
		load := loadAt(at)
		hours = append(hours, &berthv1.ProfileHour{
			BeganAt: timestamppb.New(began), CpuRatio: new(cpus * load), MemoryBytes: new(int64(memory * (0.5 + load/2))),
			VcpuDelayRatio: new(max(load-0.5, 0) / 5),
		})
	}
	return hours
}

// minutesOf is the last hour before a time, likewise: its load rises and falls twice, and of one minute nothing is known.
func (n *node) minutesOf(guest string, now time.Time) (minutes []*berthv1.ProfileHour) {
	cpus, memory, there := n.most(guest)
	if !there {
		return nil
	}
	ended := now.Truncate(time.Minute)
	for back := 60; back > 0; back-- {
		began := ended.Add(-time.Duration(back) * time.Minute)
		if began.Minute() == missed%60 {
			continue
		}
		load := 0.5 + 0.4*math.Sin(4*math.Pi*float64(began.Minute())/60)
		minutes = append(minutes, &berthv1.ProfileHour{
			BeganAt: timestamppb.New(began), CpuRatio: new(cpus * load), MemoryBytes: new(int64(memory * (0.5 + load/4))),
			VcpuDelayRatio: new(max(load-0.5, 0) / 5),
		})
	}
	return minutes
}

// most is what a guest can use at most, CPUs and memory, or the whole node if none is named; of one, the busy part of its CPUs.
func (n *node) most(guest string) (cpus, memory float64, there bool) {
	if guest == "" {
		return 1, float64(n.size.Memory), true
	}
	domain, there := n.find(guest)
	if !there {
		return 0, 0, false
	}
	return float64(domain.VCPUs), float64(domain.MemoryBytes), true
}

// loadAt is the part of its CPUs that a guest uses in an hour of the week.
func loadAt(at int) float64 {
	hour := at % week.Day
	if at >= 5*week.Day || hour < opens || hour >= closes {
		return quiet
	}
	return quiet + 0.8*math.Sin(math.Pi*(float64(hour-opens)+0.5)/(closes-opens))
}
