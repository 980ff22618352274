package simagent

import (
	"context"
	"testing"
	"time"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/week"
)

// A node tells of all hours of the week before but one, each once, of itself and of the guests that it has.
func TestANodeTellsOfItsWeek(t *testing.T) {
	orders, _ := twoNodes()
	n := orders.node
	orders.do(start("op1", 3, 7))
	for guest, cpus := range map[string]float64{"": 1, vm: 2} {
		told := work{n}.Do(context.Background(), &berthv1.Task{
			Id: "t", Action: &berthv1.Task_Profile{Profile: &berthv1.ProfileTask{VmId: guest}},
		}, nil)
		seen := map[int]bool{}
		for _, hour := range told.GetProfile() {
			number, at := week.Of(hour.GetBeganAt().AsTime())
			if seen[at] || at == missed || !hour.GetBeganAt().AsTime().Equal(week.Began(number, at)) || hour.GetCpuRatio() > cpus {
				t.Errorf("guest %q: %v", guest, hour)
			}
			seen[at] = true
			if time.Since(hour.GetBeganAt().AsTime()) < time.Hour {
				t.Errorf("guest %q: hour %s has not ended", guest, hour.GetBeganAt().AsTime())
			}
		}
		for _, minute := range told.GetMinutes() {
			began := minute.GetBeganAt().AsTime()
			if !began.Equal(began.Truncate(time.Minute)) || minute.GetCpuRatio() > cpus || minute.MemoryBytes == nil {
				t.Errorf("guest %q: %v", guest, minute)
			}
		}
		if minutes := len(told.GetMinutes()); minutes != 59 {
			t.Errorf("guest %q: %d minutes are known", guest, minutes)
		}
		if len(seen) != week.Hours-1 {
			t.Errorf("guest %q: %d hours are known", guest, len(seen))
		}
	}
	if hours := n.weekOf(uuidOf("another"), time.Now()); len(hours) > 0 {
		t.Errorf("%d hours of a guest that is not there", len(hours))
	}
}
