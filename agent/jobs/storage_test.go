package jobs

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/fake"
	"berth/agent/volumes"
	berthv1 "berth/shared/gen/berth/v1"
)

const (
	rootName = "berth-0abc.qcow2"
	dataName = "berth-0abd.qcow2"
	seedName = "berth-" + vmID + "-seed.iso"
	userData = "#cloud-config\n"
)

func volumeOf(pool, name string) *berthv1.Volume {
	return &berthv1.Volume{DiskName: name, Pool: pool, Name: name, Format: "qcow2", CapacityBytes: 1 << 30}
}

// made are the volumes of a start: a thin copy, an empty one and the seed.
func made(pool string) []*berthv1.Volume {
	root := volumeOf(pool, rootName)
	root.BackingPool, root.BackingName, root.BackingFormat = "images", "base", "raw"
	return []*berthv1.Volume{root, volumeOf(pool, dataName), {DiskName: "seed", Pool: pool, Name: seedName, Format: "raw", Seed: true}}
}

// startWith orders a start with volumes. Its disks are in the pool.
func startWith(pool string, volumes ...*berthv1.Volume) func(*berthv1.Command) {
	return func(c *berthv1.Command) {
		startOrder(c)
		start := c.GetStart()
		start.Volumes, start.Spec.UserData = volumes, userData
		for _, name := range []string{rootName, dataName} {
			start.Spec.Disks = append(start.Spec.Disks, &berthv1.Disk{Pool: pool, Volume: name, Format: "qcow2", Bus: "virtio"})
		}
	}
}

func prepareOrder(volumes ...*berthv1.Volume) func(*berthv1.Command) {
	return func(c *berthv1.Command) {
		c.Action = &berthv1.Command_Prepare{Prepare: &berthv1.PrepareCommand{Volumes: volumes, Spec: &berthv1.VMSpec{UserData: userData}}}
	}
}

func clearOrder(volumes ...*berthv1.Volume) func(*berthv1.Command) {
	return func(c *berthv1.Command) {
		c.Action = &berthv1.Command_Clear{Clear: &berthv1.ClearCommand{Volumes: volumes}}
	}
}

// addPools gives both nodes a pool of their own, local, one together, shared, and one with an image that can be copied thinly.
func (b *bench) addPools() {
	b.Helper()
	b.node.AddPool("local", 1<<20)
	b.peer.AddPool("local", 1<<20)
	b.wire.SharePool("shared", 1<<20, b.node, b.peer)
	b.wire.SharePool("images", 1<<20, b.node, b.peer)
	if err := b.node.UploadVolume(b.Context(), "images", "base", 4, strings.NewReader("base")); err != nil {
		b.Fatal(err)
	}
}

// holds compares the volumes of a pool.
func (b *bench) holds(on *fake.Hypervisor, pool string, want ...string) {
	b.Helper()
	slices.Sort(want)
	if got := on.Volumes(pool); !slices.Equal(got, want) {
		b.Errorf("pool %s has %v, want %v", pool, got, want)
	}
}

func TestStartMakesItsVolumes(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.addPools()
		// What an earlier try left is not what the VM gets.
		if err := b.node.UploadVolume(b.Context(), "local", dataName, 4, strings.NewReader("left")); err != nil {
			b.Fatal(err)
		}
		b.want(b.do(command("op1", 1, 5, startWith("local", made("local")...))), done_, "", running)
		b.holds(b.node, "local", rootName, dataName, seedName)
		if root := b.node.Content("local", rootName); string(root) != "base" {
			b.Errorf("the thin copy shows %q", root)
		}
		if data := b.node.Content("local", dataName); len(data) != 0 {
			b.Errorf("the empty one shows %q", data)
		}
		if got := b.node.Content("local", seedName); !bytes.Equal(got, volumes.SeedImage(vmID, vmName, userData)) {
			b.Errorf("the seed has %d bytes", len(got))
		}
		xml, err := b.node.XML(b.Context(), vmID)
		for _, want := range []string{
			`<source pool="local" volume="` + rootName + `">`, "<serial>0abc</serial>",
			`<source pool="local" volume="` + seedName + `"></source>` + "\n      " + `<target dev="vdc" bus="virtio"></target>` +
				"\n      <readonly>",
		} {
			if err != nil || !strings.Contains(xml, want) {
				b.Errorf("%v: no %s in\n%s", err, want, xml)
			}
		}

		// The next start finds its disks and gets another seed.
		b.want(b.do(command("op2", 1, 5, stopOrder(10))), done_, "", absentState)
		b.node.WriteDisk("local", rootName, []byte("written"))
		b.want(b.do(command("op3", 1, 6, startWith("local", made("local")[2]))), done_, "", running)
		if root := b.node.Content("local", rootName); string(root) != "written" {
			b.Errorf("after another start the disk shows %q", root)
		}
	})
}

func TestAStartThatFailsLeavesNoVolume(t *testing.T) {
	full := made("local")
	full[0], full[1] = volumeOf("local", rootName), volumeOf("small", dataName)
	elsewhere := made("local")
	elsewhere[1].Pool = "gone"
	noImage := made("local")
	noImage[0].BackingName = "another"
	for name, c := range map[string]struct {
		prepare func(b *bench)
		order   []*berthv1.Volume
		code    string
	}{
		"the second pool is full": {func(b *bench) { b.node.AddPool("small", 1) }, full, "no_space"},
		"the second pool is gone": {func(*bench) {}, elsewhere, "no_pool"},
		"the pool is not active":  {func(b *bench) { b.node.SetPool("local", false) }, made("local"), "no_pool"},
		"the image is not there":  {func(*bench) {}, noImage, "no_volume"},
		"a disk is not there":     {func(*bench) {}, made("local")[:1], "no_volume"},
		"libvirt says no": {
			func(b *bench) { b.node.Inject("start", fake.Fault{Err: errors.New("qemu did not start")}) }, made("local"), "internal",
		},
		"the guest ends at once":  {func(b *bench) { b.node.Inject("start", fake.Fault{Err: nil}) }, made("local"), "internal"},
		"the start has no effect": {func(b *bench) { b.node.Inject("start", fake.Fault{Hang: true, Times: 1}) }, made("local"), "ambiguous"},
		"a volume cannot be made": {
			func(b *bench) { b.node.Inject("create-volume", fake.Fault{Err: hypervisor.ErrDenied}) }, made("local"), "denied",
		},
		"the seed cannot be made": {
			func(b *bench) { b.node.Inject("upload-volume", fake.Fault{Err: hypervisor.ErrNoSpace}) }, made("local"), "no_space",
		},
		"made, and nobody saw that": {
			func(b *bench) { b.node.Inject("create-volume", fake.Fault{Err: errors.New("lost"), Effect: true}) }, made("local"), "internal",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.addPools()
				c.prepare(b)
				b.want(b.do(command("op1", 1, 5, startWith("local", c.order...))), failed, c.code, absentState)
				b.node.SetPool("local", true)
				b.holds(b.node, "local")
				b.holds(b.node, "images", "base")
				b.want(b.do(command("op2", 1, 5, startOrder)), refused_, "stale_epoch", unseen)
			})
		})
	}
}

// A start that failed and may have left something says so, until it is cleared.
func TestAStartThatCannotCleanUp(t *testing.T) {
	for name, fault := range map[string]string{"the failed start": "start", "the failed making": "upload-volume"} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.addPools()
				b.node.Inject(fault, fake.Fault{Err: hypervisor.ErrDenied})
				volumes := made("local")
				b.jobs.Hypervisor = unremovable{b.node}
				answer := b.do(command("op1", 1, 5, startWith("local", volumes...)))
				b.want(answer, ambiguous, "denied", unknown)
				if !strings.Contains(answer.GetError(), rootName+" in pool local") {
					b.Errorf("it does not name what is left: %s", answer.GetError())
				}
				b.want(b.do(command("op1", 1|1<<16, 5, inspectOrder)), ambiguous, "internal", unknown)
				time.Sleep(surelyAbsent)
				b.want(b.do(command("op1", 1|2<<16, 5, inspectOrder)), done_, "", absentState)
				b.want(b.do(command("op1", 2, 5, clearOrder(volumes...))), ambiguous, "internal", absentState)
				b.jobs.Hypervisor = b.node
				b.want(b.do(command("op1", 2, 5, clearOrder(volumes...))), done_, "", absentState)
				b.holds(b.node, "local")
			})
		})
	}
}

// unremovable keeps its volumes, once there are some.
type unremovable struct{ *fake.Hypervisor }

func (u unremovable) DeleteVolume(ctx context.Context, pool, name string) error {
	if _, err := u.LookupVolume(ctx, pool, name); err != nil {
		return err
	}
	return errors.New("stuck")
}

// What another domain has is never removed, whatever it is called.
func TestAVolumeInUseIsNeverRemoved(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.addPools()
		volume := volumeOf("local", rootName)
		if err := b.node.CreateVolume(
			b.Context(), hypervisor.NewVolume{Pool: "local", Name: rootName, Format: "qcow2", CapacityBytes: 1 << 30},
		); err != nil {
			b.Fatal(err)
		}
		const other = `<domain type="kvm"><name>other</name><uuid>22222222-2222-4333-8444-555555555555</uuid><memory>1024</memory>` +
			`<devices><disk type="volume" device="disk"><source pool="local" volume="` + rootName +
			`"/><target dev="vda"/></disk></devices></domain>`
		if err := b.node.Start(b.Context(), other); err != nil {
			b.Fatal(err)
		}
		b.want(b.do(command("op1", 1, 5, startWith("local", volume))), failed, "in_use", absentState)
		b.want(b.do(command("op2", 1, 6, prepareOrder(volume))), failed, "in_use", absentState)
		b.want(b.do(command("op3", 1, 7, clearOrder(volume))), failed, "in_use", absentState)
		b.want(b.do(command("op4", 1, 8, func(c *berthv1.Command) {
			c.Action = &berthv1.Command_Discard{Discard: &berthv1.DiscardCommand{Volumes: []*berthv1.Volume{volume}}}
		})), ambiguous, "in_use", absentState)
		b.holds(b.node, "local", rootName)
	})
}

// A start with volumes is killed at each of its steps. The next life makes them anew only when the domain cannot come any
// more, and ends with all of them and one guest.
func TestCrashOfAStartWithVolumes(t *testing.T) {
	for name, c := range map[string]struct {
		kind  string
		fault fake.Fault
		made  int // how often a volume is made in all
	}{
		"before the first volume":        {"delete-volume", fake.Fault{Hang: true}, 2},
		"a volume lost on the way":       {"create-volume", fake.Fault{Hang: true}, 3},
		"a volume made and not answered": {"create-volume", fake.Fault{Hang: true, Effect: true}, 3},
		"between volumes and start":      {"host", fake.Fault{Hang: true}, 4},
		"start lost on the way":          {"start", fake.Fault{Hang: true}, 4},
		"start takes effect late":        {"start", fake.Fault{Hang: true, Late: 5 * time.Second}, 2},
		"started and not answered":       {"start", fake.Fault{Hang: true, Effect: true}, 2},
		"looked at and not answered":     {"lookup-volume", fake.Fault{Hang: true}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.addPools()
				order := command("op1", 1, 5, startWith("local", made("local")...))
				b.node.Inject(c.kind, c.fault)
				b.jobs.Do(b.Context(), order)
				time.Sleep(2 * time.Second)
				b.crash()
				b.node.Heal(c.kind)
				b.want(b.do(order), done_, "", running)
				b.holds(b.node, "local", rootName, dataName, seedName)
				if calls := b.calls("create-volume"); calls != c.made {
					b.Errorf("a volume was made %d times, want %d: %v", calls, c.made, b.node.Calls())
				}
			})
		})
	}
}

// What an earlier life made goes too when this one cannot make it anew.
func TestAFailureAfterACrashLeavesNoVolume(t *testing.T) {
	for name, order := range map[string]*berthv1.Command{
		"start":   command("op1", 1, 5, startWith("local", made("local")...)),
		"prepare": command("op1", 1, 5, prepareOrder(made("local")...)),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.addPools()
				b.node.Inject("upload-volume", fake.Fault{Hang: true, Effect: true})
				b.jobs.Do(b.Context(), order)
				time.Sleep(time.Second)
				b.crash()
				b.holds(b.node, "local", rootName, dataName, seedName)
				b.node.Inject("create-volume", fake.Fault{Err: hypervisor.ErrDenied})
				b.want(b.do(order), failed, "denied", absentState)
				b.holds(b.node, "local")
			})
		})
	}
}

func TestPrepare(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.addPools()
		volumes := made("local")[1:]
		order := command("op1", 1, 5, prepareOrder(volumes...))
		b.want(b.do(order), done_, "", absentState)
		b.holds(b.node, "local", dataName, seedName)
		if again := b.do(order); !again.GetRepeated() {
			b.Error("it was done twice")
		}
		// Rolled back: the volumes go with the leftover, also when that never came.
		discard := command("op1", 3, 5, func(c *berthv1.Command) {
			c.Action = &berthv1.Command_Discard{Discard: &berthv1.DiscardCommand{Volumes: volumes}}
		})
		b.node.Inject("delete-volume", fake.Fault{Err: errors.New("stuck"), Times: 2})
		b.want(b.do(discard), ambiguous, "internal", absentState)
		b.want(b.do(discard), done_, "", absentState)
		b.holds(b.node, "local")
		b.want(b.do(command("op1", 4, 5, prepareOrder(volumes...))), refused_, "stale_epoch", unseen)

		b.node.AddPool("small", 1)
		b.want(b.do(command("op2", 1, 6, prepareOrder(append(volumes, volumeOf("small", rootName))...))), failed, "no_space", absentState)
		b.holds(b.node, "local")
		b.start(7)
		b.want(b.do(command("op3", 1, 8, prepareOrder(volumes...))), failed, "exists", running)
		b.holds(b.node, "local")
	})
}

func TestCrashOfAPrepare(t *testing.T) {
	for name, fault := range map[string]fake.Fault{"lost on the way": {Hang: true}, "made and not answered": {Hang: true, Effect: true}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.addPools()
				order := command("op1", 1, 5, prepareOrder(made("local")...))
				b.node.Inject("upload-volume", fault)
				b.jobs.Do(b.Context(), order)
				time.Sleep(time.Second)
				b.crash()
				b.node.Heal("upload-volume")
				b.want(b.do(order), done_, "", absentState)
				b.holds(b.node, "local", rootName, dataName, seedName)
			})
		})
	}
}

// A clear that comes late must not remove what a later epoch has made under the same names.
func TestClearIsForItsEpoch(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.addPools()
		volumes := made("local")
		b.node.Inject("start", fake.Fault{Err: errors.New("no")})
		b.want(b.do(command("op1", 1, 5, startWith("local", volumes...))), failed, "internal", absentState)
		b.node.Heal("start")
		// The start closed its epoch; its own clear is obeyed all the same, also after a restart of the agent.
		b.want(b.do(command("op1", 2, 5, clearOrder(volumes...))), done_, "", absentState)
		b.crash()
		b.want(b.do(command("op1", 3, 5, clearOrder(volumes...))), done_, "", absentState)
		b.want(b.do(command("op1", 4, 5, startWith("local", volumes...))), refused_, "stale_epoch", unseen)

		b.want(b.do(command("op2", 1, 6, startWith("local", volumes...))), done_, "", running)
		b.want(b.do(command("op1", 5, 5, clearOrder(volumes...))), refused_, "stale_epoch", unseen)
		b.want(b.do(command("op2", 2, 6, clearOrder(volumes...))), failed, "in_use", running)
		_ = b.node.Destroy(b.Context(), vmID, 6) // powered off by hand: the node has not let go of its epoch
		b.crash()
		b.want(b.do(command("op1", 5, 5, clearOrder(volumes...))), refused_, "stale_epoch", unseen)
		b.holds(b.node, "local", rootName, dataName, seedName)
		b.want(b.do(command("op3", 1, 6, clearOrder(volumes...))), done_, "", absentState)
		b.holds(b.node, "local")

		// A start that is still on its way when its volumes are cleared makes none.
		b.want(b.do(command("op4", 2, 9, clearOrder(volumes...))), done_, "", absentState)
		b.want(b.do(command("op4", 1, 9, startWith("local", volumes...))), refused_, "stale_epoch", unseen)
		b.want(b.do(command("op3", 2, 6, clearOrder(volumes...))), refused_, "stale_epoch", unseen)
	})
}

// A clear waits until no start can take effect any more.
func TestClearWaitsForAStartInDoubt(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.addPools()
		volumes := made("local")
		b.node.Inject("start", fake.Fault{Hang: true, Late: 5 * time.Second, Times: 1})
		b.jobs.Do(b.Context(), command("op1", 1, 5, startWith("local", volumes...)))
		time.Sleep(time.Second)
		b.crash()
		b.want(b.do(command("op1", 2, 5, clearOrder(volumes...))), failed, "in_use", running)
		b.holds(b.node, "local", rootName, dataName, seedName)
	})
}
