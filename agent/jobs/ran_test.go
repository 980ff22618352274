package jobs

import (
	"testing"
	"testing/synctest"
	"time"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
)

func ranWith(vm string, epoch uint64, path string) hypervisor.Event {
	return hypervisor.Event{UUID: vm, Kind: hypervisor.EventRan, Ran: &hypervisor.Ran{
		Epoch: epoch, Devices: []domxml.Device{{Kind: domxml.DiskDevice, Key: "vda", Source: domxml.Source{Path: path}, XML: "<disk/>"}},
	}}
}

// The agent ends right after a disk was changed, and the guest before it is back.
func TestWhatAGuestRanWithOutlivesTheAgent(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.jobs.Saw(ranWith(vmID, 5, "/a"))
		b.jobs.Saw(ranWith(vmID, 5, "/b"))
		b.crash()
		runs := b.jobs.LastRuns()
		if len(runs) != 1 || runs[0].Epoch != 5 || runs[0].Devices.GetDevices()[0].GetSource().GetPath() != "/b" {
			b.Errorf("it tells %v", runs)
		}
		b.jobs.Saw(hypervisor.Event{UUID: vmID, Kind: hypervisor.EventStopped, Detail: hypervisor.DetailMigrated})
		b.crash()
		if runs := b.jobs.LastRuns(); len(runs) > 0 {
			b.Errorf("of a guest that has left it tells %v", runs)
		}
	})
}

// What stands in the journal of the time before would be told by the next life of the agent.
func TestWhatAGuestRanWithIsJournalledOnceThereIsRoom(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.jobs.Saw(ranWith(vmID, 5, "/a"))
		b.jobs.Saw(ranWith(vmID, 5, "/b"))
		synctest.Wait()
		b.full.Store(true)
		b.jobs.Saw(ranWith(vmID, 5, "/c"))
		time.Sleep(time.Minute)
		b.full.Store(false)
		time.Sleep(time.Minute)
		b.crash()
		if runs := b.jobs.LastRuns(); len(runs) != 1 || runs[0].Devices.GetDevices()[0].GetSource().GetPath() != "/c" {
			b.Errorf("it tells %v", runs)
		}
	})
}
