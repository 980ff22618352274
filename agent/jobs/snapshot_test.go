package jobs

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/fake"
	berthv1 "berth/shared/gen/berth/v1"
)

// snapshotOf is an order about the snapshot "tag1" of volumes of the pool "default", which are vda, vdb ...
func snapshotOf(volumes ...string) *berthv1.SnapshotCommand {
	order := &berthv1.SnapshotCommand{Tag: "tag1", Freeze: freezeAuto}
	for i, name := range volumes {
		order.Files = append(order.Files, &berthv1.SnapshotFile{Target: "vd" + string(rune('a'+i)), Pool: "default", Volume: name})
	}
	return order
}

func takeOrder(order *berthv1.SnapshotCommand) func(*berthv1.Command) {
	return func(c *berthv1.Command) { c.Action = &berthv1.Command_Snapshot{Snapshot: order} }
}

func forgetOrder(order *berthv1.SnapshotCommand) func(*berthv1.Command) {
	return func(c *berthv1.Command) { c.Action = &berthv1.Command_Forget{Forget: order} }
}

func restoreOrder(order *berthv1.SnapshotCommand) func(*berthv1.Command) {
	order.Off = true
	return func(c *berthv1.Command) { c.Action = &berthv1.Command_Restore{Restore: order} }
}

// withDisks starts the VM with two disks, a and b.
func (b *bench) withDisks() {
	b.Helper()
	for _, name := range []string{"a", "b", "other"} {
		err := b.node.CreateVolume(b.Context(), hypervisor.NewVolume{
			Pool: "default", Name: name, Format: hypervisor.FormatQCOW2, CapacityBytes: 1 << 20,
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.want(b.do(command("op-start", 1, 5, func(c *berthv1.Command) {
		startOrder(c)
		c.GetStart().Spec.Disks = []*berthv1.Disk{
			{Pool: "default", Volume: "a", Format: "qcow2", Bus: "virtio"}, {Pool: "default", Volume: "b", Format: "qcow2", Bus: "virtio"},
		}
	})), done_, "", running)
}

func (b *bench) tags() string {
	return fmt.Sprint(b.node.Tags("default", "a"), b.node.Tags("default", "b"), b.node.Tags("default", "other"))
}

func TestSnapshotsOfAGuestThatRuns(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.withDisks()
		b.node.SetGuest(vmID, fake.Guest{Agent: true})
		r := b.do(command("op1", 1, 5, takeOrder(snapshotOf("a", "b"))))
		if b.want(r, done_, "", running); !r.GetFrozen() || b.node.Frozen(vmID) || b.tags() != "1 1 0" {
			b.Errorf("frozen %t, left so %t, tags %s", r.GetFrozen(), b.node.Frozen(vmID), b.tags())
		}
		b.want(b.do(command("op2", 1, 5, forgetOrder(snapshotOf("a", "b")))), done_, "", running)
		b.want(b.do(command("op3", 1, 5, forgetOrder(snapshotOf("a", "b")))), done_, "", running)
		if b.tags() != "0 0 0" {
			b.Errorf("tags %s", b.tags())
		}
		for name, c := range map[string]struct {
			order *berthv1.SnapshotCommand
			says  string
		}{
			"another file":       {snapshotOf("a", "other"), "is another file than the record has"},
			"a disk less":        {snapshotOf("a"), "disk vdb is none of those"},
			"a disk more":        {snapshotOf("a", "b", "other"), "2 of the 3 disks"},
			"a file that is not": {snapshotOf("a", "none"), "none"},
		} {
			r := b.do(command("op-"+strings.ReplaceAll(name, " ", "-"), 1, 5, takeOrder(c.order)))
			if r.GetOutcome() != refused_ || !strings.Contains(r.GetError(), c.says) || b.tags() != "0 0 0" {
				b.Errorf("%s: %v, tags %s", name, r, b.tags())
			}
		}
		if calls := b.calls("freeze"); calls != 1 {
			b.Errorf("frozen %d times", calls)
		}
		r = b.do(command("op4", 1, 5, restoreOrder(snapshotOf("a", "b"))))
		b.want(r, refused_, "invalid_state", running)
	})
}

// Without an agent in the guest the answer says what that means, and an order that insists takes nothing.
func TestASnapshotWithoutAnAgent(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.withDisks()
		r := b.do(command("op1", 1, 5, takeOrder(snapshotOf("a", "b"))))
		if b.want(r, done_, "", running); r.GetFrozen() || !strings.Contains(r.GetNote(), "power cut") {
			b.Errorf("it says %v", r)
		}
		b.want(b.do(command("op2", 1, 5, forgetOrder(snapshotOf("a", "b")))), done_, "", running)
		always := snapshotOf("a", "b")
		always.Freeze = freezeAlways
		r = b.do(command("op3", 1, 5, takeOrder(always)))
		if b.want(r, refused_, "unsupported", running); b.tags() != "0 0 0" {
			b.Errorf("tags %s", b.tags())
		}
		never := snapshotOf("a", "b")
		never.Freeze = "never"
		before := b.calls("freeze")
		if b.want(b.do(command("op4", 1, 5, takeOrder(never))), done_, "", running); b.calls("freeze") != before || b.calls("thaw") > before+1 {
			b.Errorf("calls %v", b.node.Calls())
		}
	})
}

// A guest writes again whatever becomes of its snapshot: when it fails, when nobody knows, and when the agent dies in the middle and no
// leader asks again.
func TestAGuestIsAlwaysThawed(t *testing.T) {
	for name, fault := range map[string]fake.Fault{
		"fails": {Err: hypervisor.ErrNoSpace}, "in doubt": {Err: hypervisor.ErrAmbiguous}, "is not answered": {Hang: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.withDisks()
				b.node.SetGuest(vmID, fake.Guest{Agent: true})
				b.node.Inject("take", fault)
				r := b.do(command("op1", 1, 5, takeOrder(snapshotOf("a", "b"))))
				if b.node.Frozen(vmID) || r.GetOutcome() == done_ {
					b.Errorf("frozen %t after %v", b.node.Frozen(vmID), r)
				}
				b.node.Heal("take")
				if errors.Is(fault.Err, hypervisor.ErrNoSpace) {
					b.want(r, refused_, "no_space", running)
					return
				}
				r = b.do(command("op1", 1, 5, takeOrder(snapshotOf("a", "b"))))
				if b.want(r, done_, "", running); b.tags() != "1 1 0" || b.node.Frozen(vmID) {
					b.Errorf("tags %s, frozen %t", b.tags(), b.node.Frozen(vmID))
				}
			})
		})
	}
	t.Run("the agent dies", func(t *testing.T) {
		inBubble(t, func(b *bench) {
			b.withDisks()
			b.node.SetGuest(vmID, fake.Guest{Agent: true})
			b.node.Inject("take", fake.Fault{Hang: true, Effect: true})
			b.jobs.Do(b.Context(), command("op1", 1, 5, takeOrder(snapshotOf("a", "b"))))
			time.Sleep(time.Second)
			b.node.Inject("thaw", fake.Fault{Err: hypervisor.ErrUnavailable})
			b.crash()
			b.node.Heal("take")
			time.Sleep(10 * time.Second)
			if !b.node.Frozen(vmID) {
				b.Error("it was thawed by nobody")
			}
			b.node.Heal("thaw")
			time.Sleep(10 * time.Second)
			if b.node.Frozen(vmID) {
				b.Error("it stands still, and nobody asks for its snapshot")
			}
			r := b.do(command("op1", 1, 5, takeOrder(snapshotOf("a", "b"))))
			if b.want(r, done_, "", running); b.tags() != "1 1 0" {
				b.Errorf("tags %s", b.tags())
			}
		})
	})
	t.Run("it cannot be thawed at once", func(t *testing.T) {
		inBubble(t, func(b *bench) {
			b.withDisks()
			b.node.SetGuest(vmID, fake.Guest{Agent: true})
			b.node.Inject("thaw", fake.Fault{Err: hypervisor.ErrUnsupported, Times: 3})
			r := b.do(command("op1", 1, 5, takeOrder(snapshotOf("a", "b"))))
			if r.GetOutcome() != ambiguous || !b.node.Frozen(vmID) {
				b.Errorf("frozen %t, %v", b.node.Frozen(vmID), r)
			}
			time.Sleep(10 * time.Second)
			if b.node.Frozen(vmID) {
				b.Error("it stands still")
			}
		})
	})
}

func TestSnapshotsOfAVMThatIsOff(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.withDisks()
		off := func() *berthv1.SnapshotCommand {
			order := snapshotOf("a", "b")
			order.Off = true
			return order
		}
		r := b.do(command("op0", 1, 5, takeOrder(off())))
		if b.want(r, refused_, "invalid_state", running); !strings.Contains(r.GetError(), "was to be off") {
			b.Errorf("it says %q", r.GetError())
		}
		b.want(b.do(command("op1", 1, 5, stopOrder(2))), done_, "", absentState)
		b.node.WriteDisk("default", "a", []byte("before"))
		b.want(b.do(command("op2", 1, 5, takeOrder(off()))), done_, "", absentState)
		b.node.WriteDisk("default", "a", []byte("after"))
		b.want(b.do(command("op3", 1, 5, restoreOrder(off()))), done_, "", absentState)
		if is := string(b.node.Content("default", "a")); is != "before" {
			b.Errorf("restored it has %q", is)
		}
		b.node.Inject("restore", fake.Fault{Err: hypervisor.ErrAmbiguous, Times: 1})
		b.want(b.do(command("op4", 1, 5, restoreOrder(off()))), ambiguous, "ambiguous", absentState)
		b.want(b.do(command("op4", 1, 5, restoreOrder(off()))), done_, "", absentState)
		b.want(b.do(command("op5", 1, 5, forgetOrder(off()))), done_, "", absentState)
		b.want(b.do(command("op6", 1, 5, restoreOrder(off()))), refused_, "no_volume", absentState)
		if r = b.do(command("op7", 1, 4, restoreOrder(off()))); r.GetErrorCode() != "stale_epoch" {
			b.Errorf("of an earlier run: %v", r)
		}
	})
}

// An order that was begun counts as begun also after a repetition that could not see the VM: it may have done some of its work.
func TestASnapshotOrderStaysBegunWhileNothingIsSeen(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.withDisks()
		take := command("op1", 1, 5, takeOrder(snapshotOf("a", "b")))
		b.node.Inject("take", fake.Fault{Err: hypervisor.ErrAmbiguous, Times: 1})
		b.want(b.do(take), ambiguous, "ambiguous", running)
		b.node.Inject("lookup", fake.Fault{Err: hypervisor.ErrUnavailable})
		if r := b.do(take); r.GetOutcome() != ambiguous {
			b.Errorf("unseen: %v", r)
		}
		b.node.Heal("lookup")
		b.node.Edit(vmID, func(d *hypervisor.Domain) { d.State = hypervisor.Crashed })
		b.want(b.do(take), failed, "invalid_state", crashedState)
	})
}

// A restore that could not begin is refused, so nobody has to take the disks for half restored. After one in doubt that says nothing.
func TestARestoreThatCouldNotBegin(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.withDisks()
		b.want(b.do(command("op1", 1, 5, takeOrder(snapshotOf("a", "b")))), done_, "", running)
		b.want(b.do(command("op2", 1, 5, stopOrder(2))), done_, "", absentState)
		untouched := fake.Fault{Err: fmt.Errorf("%w: no such emulator", hypervisor.ErrUntouched), Times: 1}
		b.node.Inject("restore", untouched)
		b.want(b.do(command("op3", 1, 5, restoreOrder(snapshotOf("a", "b")))), refused_, "internal", absentState)
		b.node.Inject("restore", fake.Fault{Err: errors.New("qemu-img failed"), Times: 1})
		b.want(b.do(command("op4", 1, 5, restoreOrder(snapshotOf("a", "b")))), failed, "internal", absentState)
		b.node.Inject("restore", fake.Fault{Err: hypervisor.ErrAmbiguous, Times: 1})
		b.want(b.do(command("op5", 1, 5, restoreOrder(snapshotOf("a", "b")))), ambiguous, "ambiguous", absentState)
		b.node.Inject("restore", untouched)
		b.want(b.do(command("op5", 1, 5, restoreOrder(snapshotOf("a", "b")))), failed, "internal", absentState)
	})
}

// A guest that an order may have left frozen is thawed whatever the order's repetition could do, and however late.
func TestAGuestIsThawedHoweverLate(t *testing.T) {
	for name, second := range map[string]fake.Fault{
		"busy": {Err: hypervisor.ErrBusy}, "deaf": {Err: hypervisor.ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.withDisks()
				b.node.SetGuest(vmID, fake.Guest{Agent: true})
				b.node.Inject("thaw", second)
				take := command("op1", 1, 5, takeOrder(snapshotOf("a", "b")))
				r := b.do(take)
				if b.want(r, ambiguous, "ambiguous", running); !strings.Contains(r.GetError(), "may stand still") ||
					!strings.Contains(r.GetError(), "virsh domfsthaw "+vmName) {
					b.Errorf("it says %q", r.GetError())
				}
				b.node.SetGuest(vmID, fake.Guest{}) // it cannot be frozen a second time
				b.want(b.do(take), ambiguous, "ambiguous", running)
				b.crash()
				time.Sleep(time.Hour)
				before := b.calls("thaw")
				time.Sleep(time.Hour)
				if tries := b.calls("thaw") - before; tries < 50 || tries > 61 {
					b.Errorf("%d tries an hour", tries)
				}
				if !b.node.Frozen(vmID) {
					b.Error("it was thawed by nobody")
				}
				b.node.SetGuest(vmID, fake.Guest{Agent: true})
				b.node.Heal("thaw")
				time.Sleep(2 * time.Minute)
				before = b.calls("thaw")
				if b.node.Frozen(vmID) {
					b.Error("it stands still")
				}
				time.Sleep(time.Hour)
				if b.calls("thaw") != before {
					b.Error("it is thawed again and again")
				}
				b.want(b.do(take), done_, "", running)
			})
		})
	}
}

// A guest that may stand still does not move: on the target nobody would have it write again. Once it writes it moves.
func TestAFrozenGuestDoesNotMove(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.withDisks()
		b.node.SetGuest(vmID, fake.Guest{Agent: true})
		b.node.Inject("thaw", fake.Fault{Err: hypervisor.ErrBusy})
		b.want(b.do(command("op1", 1, 5, takeOrder(snapshotOf("a", "b")))), ambiguous, "ambiguous", running)
		r := b.do(command("op2", 1, 5, migrateOrder))
		if b.want(r, refused_, "busy", running); !strings.Contains(r.GetError(), "virsh domfsthaw "+vmName) || b.asked("migrate") {
			b.Errorf("it says %q", r.GetError())
		}
		b.node.Heal("thaw")
		b.want(b.do(command("op3", 1, 5, migrateOrder)), done_, "", absentState)
	})
}

// A guest that somebody else has frozen stays frozen: a snapshot is refused, unless it freezes nothing, and takes nothing.
func TestWhatSomebodyElseHasFrozenIsNotThawed(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.withDisks()
		b.node.SetGuest(vmID, fake.Guest{Agent: true})
		if err := b.node.Freeze(b.Context(), vmID, 5); err != nil {
			b.Error(err)
		}
		for _, freeze := range []string{freezeAuto, freezeAlways} {
			order := snapshotOf("a", "b")
			order.Freeze = freeze
			r := b.do(command("op-"+freeze, 1, 5, takeOrder(order)))
			b.want(r, refused_, "invalid_state", running)
			if !b.node.Frozen(vmID) || b.tags() != "0 0 0" || !strings.Contains(r.GetError(), "somebody has frozen") {
				b.Errorf("%s: frozen %t, tags %s, %s", freeze, b.node.Frozen(vmID), b.tags(), r.GetError())
			}
		}
		never := snapshotOf("a", "b")
		never.Freeze = "never"
		b.want(b.do(command("op-never", 1, 5, takeOrder(never))), done_, "", running)
		if !b.node.Frozen(vmID) || b.tags() != "1 1 0" {
			b.Errorf("frozen %t, tags %s", b.node.Frozen(vmID), b.tags())
		}
	})
}

// The line of a guest that may be frozen outlives the order's answer, and goes with the run of the guest.
func TestNobodyThawsAnEndedRun(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.withDisks()
		b.node.SetGuest(vmID, fake.Guest{Agent: true})
		b.node.Inject("thaw", fake.Fault{Err: hypervisor.ErrBusy})
		take := command("op1", 1, 5, takeOrder(snapshotOf("a", "b")))
		b.want(b.do(take), ambiguous, "ambiguous", running)
		b.node.Edit(vmID, func(d *hypervisor.Domain) { d.State = hypervisor.Crashed })
		b.want(b.do(take), failed, "invalid_state", crashedState) // its intent is gone
		b.crash()
		if vms, err := b.jobs.journal.allFrozen(); err != nil || len(vms) != 1 {
			b.Errorf("frozen are %v, %v", vms, err)
		}
		b.node.Heal("thaw")
		b.want(b.do(command("op2", 1, 5, stopOrder(2))), done_, "", absentState)
		time.Sleep(2 * time.Minute)
		if vms, err := b.jobs.journal.allFrozen(); err != nil || len(vms) != 0 {
			b.Errorf("frozen are %v, %v", vms, err)
		}
	})
}

// What a first try took of a guest that wrote on is not what the repetition, of a guest that stands still, answers for.
func TestARepetitionTakesTheSnapshotAnew(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.withDisks()
		b.node.WriteDisk("default", "a", []byte("first"))
		b.node.Inject("take", fake.Fault{Err: hypervisor.ErrAmbiguous, Effect: true, Times: 1})
		take := command("op1", 1, 5, takeOrder(snapshotOf("a", "b")))
		b.want(b.do(take), ambiguous, "ambiguous", running)
		b.node.WriteDisk("default", "a", []byte("second"))
		b.node.SetGuest(vmID, fake.Guest{Agent: true})
		r := b.do(take)
		if b.want(r, done_, "", running); !r.GetFrozen() || b.tags() != "1 1 0" {
			b.Errorf("tags %s, %v", b.tags(), r)
		}
		b.want(b.do(command("op2", 1, 5, stopOrder(2))), done_, "", absentState)
		b.want(b.do(command("op3", 1, 5, restoreOrder(snapshotOf("a", "b")))), done_, "", absentState)
		if is := string(b.node.Content("default", "a")); is != "second" {
			b.Errorf("it has %q", is)
		}
	})
}
