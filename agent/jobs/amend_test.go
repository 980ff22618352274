package jobs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/fake"
	"berth/shared/domxml"
	berthv1 "berth/shared/gen/berth/v1"
)

const (
	aNIC     = "<interface type='network'><mac address='52:54:00:00:00:01'/><source network='default'/><model type='virtio'/></interface>"
	otherNIC = "<interface type='network'><mac address='52:54:00:00:00:01'/><source network='other'/><model type='virtio'/></interface>"
	aDrive   = "<disk type='file' device='cdrom'><target dev='sda' bus='sata'/><readonly/></disk>"
	anISO    = "<disk type='file' device='cdrom'><driver name='qemu' type='raw'/><source file='/iso'/><target dev='sda' bus='sata'/>" +
		"<readonly/></disk>"
)

// amendOrder gives a guest a device, or takes it away without an element.
func amendOrder(kind, key, element string) func(*berthv1.Command) {
	return func(c *berthv1.Command) {
		c.Action = &berthv1.Command_Amend{Amend: &berthv1.AmendCommand{Edits: []*berthv1.DeviceEdit{{Kind: kind, Key: key, Xml: element}}}}
	}
}

// give puts a device into the guest before the test.
func (b *bench) give(element string) {
	b.Helper()
	if err := b.node.ChangeDevice(b.Context(), vmID, 5, hypervisor.Attach, element); err != nil {
		b.Fatal(err)
	}
}

func TestAmend(t *testing.T) {
	const mac = "52:54:00:00:00:01"
	stands := func(b *bench) { b.set(hypervisor.Paused) }
	nic, drive := func(b *bench) { b.give(aNIC) }, func(b *bench) { b.give(aDrive) }
	for name, c := range map[string]struct {
		prepare func(b *bench)
		order   func(*berthv1.Command)
		outcome berthv1.CommandOutcome
		code    string
		says    string
		has     string // the network of the interface, or what is in the drive
		calls   int
	}{
		"attach":                    {func(*bench) {}, amendOrder("interface", mac, aNIC), done_, "", "", "default", 1},
		"attach what is there":      {nic, amendOrder("interface", mac, aNIC), done_, "", "", "default", 0},
		"attach where another is":   {nic, amendOrder("interface", mac, otherNIC), refused_, "exists", "another device", "default", 0},
		"detach":                    {nic, amendOrder("interface", strings.ToUpper(mac), ""), done_, "", "", "", 1},
		"detach what is gone":       {func(*bench) {}, amendOrder("interface", mac, ""), done_, "", "", "", 0},
		"insert":                    {drive, amendOrder("disk", "sda", anISO), done_, "", "", "/iso", 1},
		"insert what is there":      {func(b *bench) { b.give(anISO) }, amendOrder("disk", "sda", anISO), done_, "", "", "/iso", 0},
		"eject":                     {func(b *bench) { b.give(anISO) }, amendOrder("disk", "sda", aDrive), done_, "", "", "", 1},
		"of a guest that is paused": {stands, amendOrder("interface", mac, aNIC), done_, "", "", "default", 1},
		"of a guest with a migration": {
			func(b *bench) { b.node.Edit(vmID, func(d *hypervisor.Domain) { d.JobActive = true }) }, amendOrder("interface", mac, aNIC), refused_,
			"busy", "a job of it runs", "", 0,
		},
		"of another epoch": {
			func(b *bench) { b.node.Edit(vmID, func(d *hypervisor.Domain) { d.Epoch = 9 }) }, amendOrder("interface", mac, aNIC), refused_,
			"other_epoch", "under epoch 9", "", 0,
		},
		"what libvirt refuses": {
			func(b *bench) { b.node.Inject("attach", fake.Fault{Err: hypervisor.ErrNoVolume}) }, amendOrder("interface", mac, aNIC), refused_,
			"no_volume", "interface 52:54:00:00:00:01", "", 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.start(5)
				c.prepare(b)
				before := b.calls("attach") + b.calls("detach") + b.calls("update")
				r := b.do(command("op1", 1, 5, c.order))
				if r.GetOutcome() != c.outcome || r.GetErrorCode() != c.code || !strings.Contains(r.GetError(), c.says) {
					b.Errorf("answered %v", r)
				}
				if calls := b.calls("attach") + b.calls("detach") + b.calls("update") - before; calls != c.calls {
					b.Errorf("%d calls: %v", calls, b.node.Calls())
				}
				has := ""
				for _, one := range b.shows(b.node).Devices {
					if one.Kind == domxml.InterfaceDevice || one.Media {
						has = one.Network + one.Source.Path
					}
				}
				if has != c.has {
					b.Errorf("it has %q, want %q", has, c.has)
				}
			})
		})
	}
}

// A guest that does not let go of a device has it still, and that is said. What nobody could see is tried again.
func TestAGuestThatKeepsADevice(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.start(5)
		b.give(aNIC)
		b.node.SetGuest(vmID, fake.Guest{IgnoresShutdown: true})
		begun := time.Now()
		r := b.do(command("op1", 1, 5, amendOrder("interface", "52:54:00:00:00:01", "")))
		b.want(r, refused_, "invalid_state", running)
		if took := time.Since(begun); !strings.Contains(r.GetError(), "has not let go of it within 30s") || took < letGoLimit {
			b.Errorf("after %s: %q", took, r.GetError())
		}
		b.node.SetGuest(vmID, fake.Guest{})
		b.node.Inject("detach", fake.Fault{Err: hypervisor.ErrAmbiguous, Times: 1})
		b.want(b.do(command("op2", 1, 5, amendOrder("interface", "52:54:00:00:00:01", ""))), ambiguous, "ambiguous", running)
		b.want(b.do(command("op2", 1, 5, amendOrder("interface", "52:54:00:00:00:01", ""))), done_, "", running)
	})
}

func attachOrder(c *berthv1.Command) { amendOrder("interface", "52:54:00:00:00:01", aNIC)(c) }

// newDisk gives a guest a disk whose volume is made for it.
func newDisk(pool string) func(*berthv1.Command) {
	return func(c *berthv1.Command) {
		amendOrder("disk", "vdb", "<disk type='volume' device='disk'><driver name='qemu' type='qcow2'/><source pool='"+pool+
			"' volume='"+dataName+"'/><target dev='vdb' bus='virtio'/></disk>")(c)
		c.GetAmend().Volumes = []*berthv1.Volume{volumeOf(pool, dataName)}
	}
}

// A disk that is made for a guest is there when the guest has it, and leaves nothing behind when the guest does not get it.
func TestANewDisk(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(b *bench)
		pool    string
		outcome berthv1.CommandOutcome
		code    string
		has     bool
	}{
		"is made and attached": {func(*bench) {}, "local", done_, "", true},
		"of a full pool":       {func(b *bench) { b.node.AddPool("small", 1) }, "small", failed, "no_space", false},
		"of no pool":           {func(*bench) {}, "gone", failed, "no_pool", false},
		"that libvirt refuses": {
			func(b *bench) { b.node.Inject("attach", fake.Fault{Err: hypervisor.ErrInvalidState}) }, "local", failed, "invalid_state", false,
		},
		"of a guest that is gone": {
			func(b *bench) {
				if err := b.node.Destroy(b.Context(), vmID, 5); err != nil {
					b.Fatal(err)
				}
			}, "local", failed, "not_found", false,
		},
		"in doubt": {
			func(b *bench) { b.node.Inject("attach", fake.Fault{Err: hypervisor.ErrAmbiguous, Times: 1}) }, "local", ambiguous, "ambiguous", true,
		},
		"that cannot be removed again": {
			func(b *bench) {
				b.node.Inject("attach", fake.Fault{Err: hypervisor.ErrInvalidState})
				b.node.Inject("delete-volume", fake.Fault{Err: hypervisor.ErrUnavailable, Times: 1})
				if err := b.node.CreateVolume(b.Context(), hypervisor.NewVolume{
					Pool: "local", Name: dataName, Format: "qcow2", CapacityBytes: 1 << 30,
				}); err != nil {
					b.Fatal(err)
				}
			}, "local", ambiguous, "unavailable", true,
		},
		"that was left half made": {
			func(b *bench) {
				if err := b.node.UploadVolume(b.Context(), "local", dataName, 4, strings.NewReader("half")); err != nil {
					b.Fatal(err)
				}
			}, "local", done_, "", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.addPools()
				b.start(5)
				c.prepare(b)
				r := b.do(command("op1", 1, 5, newDisk(c.pool)))
				if r.GetOutcome() != c.outcome || r.GetErrorCode() != c.code {
					b.Errorf("answered %v", r)
				}
				if c.has {
					b.holds(b.node, "local", dataName)
				} else {
					b.holds(b.node, "local")
				}
				if shows := b.node.Content("local", dataName); len(shows) != 0 {
					b.Errorf("the new disk shows %q", shows)
				}
				if c.outcome == ambiguous { // asked again, it comes to an end
					b.node.Heal("attach")
					b.want(b.do(command("op1", 1, 5, newDisk(c.pool))), done_, "", running)
					b.holds(b.node, "local", dataName)
				}
			})
		})
	}
}

// The agent is killed at each step of making and attaching a disk, and the order comes again: the guest has one disk, or none is left.
func TestCrashWithANewDisk(t *testing.T) {
	for _, call := range []string{"lookup", "lookup-volume", "create-volume", "attach"} {
		for _, effect := range []bool{false, true} {
			for _, gone := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/effect %t/guest gone %t", call, effect, gone), func(t *testing.T) {
					inBubble(t, func(b *bench) {
						b.addPools()
						b.start(5)
						order := command("op1", 1, 5, newDisk("local"))
						b.node.Inject(call, fake.Fault{Hang: true, Effect: effect})
						b.jobs.Do(b.Context(), order)
						time.Sleep(4 * time.Second)
						b.crash()
						b.node.Heal(call)
						if gone {
							if err := b.node.Destroy(b.Context(), vmID, 5); err != nil {
								b.Fatal(err)
							}
							b.want(b.do(order), failed, "not_found", absentState)
							b.holds(b.node, "local")
							return
						}
						b.want(b.do(order), done_, "", running)
						b.holds(b.node, "local", dataName)
						if n := len(b.shows(b.node).Devices); n != 1 {
							b.Errorf("it has %d devices", n)
						}
					})
				})
			}
		}
	}
}
