package disksizes

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
)

var disk = domxml.Device{Kind: domxml.DiskDevice, Key: "vda", Source: domxml.Source{Pool: "p", Volume: "v"}}

// runs is a guest of Berth's with a disk, an interface, a drive with a medium and an empty one.
func runs(uuid string) hypervisor.Domain {
	return hypervisor.Domain{UUID: uuid, Name: "n" + uuid, State: hypervisor.Running, Managed: true, Epoch: 3, Devices: []domxml.Device{
		disk,
		{Kind: domxml.InterfaceDevice, Key: "52:54:00:00:00:01", Network: "default"},
		{Kind: domxml.DiskDevice, Key: "sda", Media: true, Source: domxml.Source{Path: "/iso"}},
		{Kind: domxml.DiskDevice, Key: "sdb"},
	}}
}

func TestWhoIsAskedAndHowOften(t *testing.T) {
	var kept Kept
	stranger, off, bare, arriving := runs("b"), runs("c"), runs("d"), runs("e")
	stranger.Managed, off.State, bare.Devices, arriving.State = false, hypervisor.Shutoff, nil, hypervisor.PausedMigration
	kept.Take([]hypervisor.Domain{runs("a"), stranger, off, bare, arriving})
	at := time.Unix(1e9, 0)
	one, due := kept.Due(at)
	if !due || one.UUID != "a" || len(one.Disks) != 1 || one.Disks[0] != "vda" {
		t.Fatalf("asked is %+v, %v", one, due)
	}
	for _, wait := range []time.Duration{0, Fresh - 1} {
		if one, due := kept.Due(at.Add(wait)); due {
			t.Errorf("%+v is asked again after %v", one, wait)
		}
	}
	if _, due := kept.Due(at.Add(Fresh)); !due {
		t.Error("it is not asked again")
	}
}

func TestWhatIsToldIsShownUntilItIsAnotherGuest(t *testing.T) {
	var kept Kept
	shown := func(change func(*hypervisor.Domain)) map[string]int64 {
		all := []hypervisor.Domain{runs("a")}
		change(&all[0])
		kept.Take(all)
		one := runs("a")
		change(&one)
		kept.Fill(&one)
		if one.DiskSizes["vda"] != all[0].DiskSizes["vda"] {
			t.Errorf("the listing shows %v, and a look %v", all[0].DiskSizes, one.DiskSizes)
		}
		return all[0].DiskSizes
	}
	same := func(*hypervisor.Domain) {}
	if sizes := shown(same); sizes != nil {
		t.Errorf("before it was asked it shows %v", sizes)
	}
	kept.Told("a", map[string]int64{"vda": 10})
	before := shown(same)
	kept.Told("a", map[string]int64{"vda": 20})
	if now := shown(same); before["vda"] != 10 || now["vda"] != 20 {
		t.Errorf("it shows %v, and showed %v", now, before)
	}
	if sizes := shown(func(d *hypervisor.Domain) { d.State = hypervisor.Paused }); sizes["vda"] != 20 {
		t.Errorf("paused it shows %v", sizes)
	}
	for what, change := range map[string]func(*hypervisor.Domain){
		"started anew": func(d *hypervisor.Domain) { d.Epoch++ },
		"with another disk there": func(d *hypervisor.Domain) {
			d.Devices = []domxml.Device{{Kind: disk.Kind, Key: "vda", Network: "rbd:a/b"}}
		},
	} {
		kept.Take([]hypervisor.Domain{runs("a")})
		kept.Told("a", map[string]int64{"vda": 20})
		if sizes := shown(change); sizes != nil {
			t.Errorf("%s it shows %v", what, sizes)
		}
		if _, due := kept.Due(time.Unix(1e9, 0)); !due {
			t.Errorf("%s it is not asked", what)
		}
	}
	kept.Take(nil)
	if kept.Told("a", map[string]int64{"vda": 30}); len(kept.guests) > 0 {
		t.Error("what is gone is kept")
	}
}

func TestAResizedDiskIsPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept Kept
		kept.Take([]hypervisor.Domain{runs("a"), runs("b")})
		var mu sync.Mutex // of what follows
		size, asked := int64(10), 0
		var published []hypervisor.Event
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			kept.Watch(ctx, func(_ context.Context, uuid string, targets []string) (map[string]int64, error) {
				mu.Lock()
				defer mu.Unlock()
				asked++
				if uuid == "b" {
					return nil, errors.New("it does not answer")
				}
				return map[string]int64{targets[0]: size}, nil
			}, func(event hypervisor.Event) {
				mu.Lock()
				defer mu.Unlock()
				published = append(published, event)
			})
		}()
		time.Sleep(Fresh / 2)
		synctest.Wait()
		mu.Lock()
		if asked != 2 || len(published) > 0 {
			t.Errorf("after %v two guests were asked %d times, and told of are %v", Fresh/2, asked, published)
		}
		size = 20
		mu.Unlock()
		time.Sleep(Fresh)
		cancel()
		<-ended
		want := hypervisor.Event{UUID: "a", Name: "na", Kind: hypervisor.EventDevices}
		if asked != 4 || len(published) != 1 || published[0] != want {
			t.Errorf("after %d questions told of are %v", asked, published)
		}
		kept.Told("a", map[string]int64{"vda": 20})
		kept.Told("a", map[string]int64{"vda": 30}) // somebody has asked beside
		if len(published) != 2 {
			t.Errorf("told of are %v", published)
		}
	})
}
