package jobs

import (
	"errors"
	"strings"
	"testing"
	"time"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/fake"
	"berth/shared/domxml"
	berthv1 "berth/shared/gen/berth/v1"
)

func TestStart(t *testing.T) {
	inBubble(t, func(b *bench) {
		first := b.do(command("op1", 1, 5, startOrder))
		b.want(first, done_, "", running)
		if d := first.GetDomain(); d.GetEpoch() != 5 || d.GetOperationId() != "op1" || !d.GetManaged() || first.GetRepeated() {
			b.Errorf("got %+v", first)
		}
		again := b.do(command("op1", 1, 5, startOrder))
		b.want(again, done_, "", running)
		if !again.GetRepeated() || b.calls("start") != 1 {
			b.Errorf("repeated %v, started %d times", again.GetRepeated(), b.calls("start"))
		}
	})
}

func TestStartWithTheAdministratorsXML(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.want(b.do(command("op1", 1, 5, func(c *berthv1.Command) {
			c.Action = &berthv1.Command_Start{Start: &berthv1.StartCommand{Spec: &berthv1.VMSpec{
				Xml: "<domain type='qemu'><name>other</name><memory unit='MiB'>64</memory></domain>",
			}}}
		})), done_, "", running)
		xml, err := b.node.XML(b.Context(), vmID)
		mark, marked := domxml.Metadata(xml)
		if err != nil || !marked || mark.Epoch != 5 || !strings.Contains(xml, "<name>"+vmName+"</name>") {
			b.Errorf("the document lacks the VM's identity: %v\n%s", err, xml)
		}
	})
}

// The coordinator knows what somebody has changed of the guest's devices while it ran.
func TestStartWithWhatTheGuestRanWithLast(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.want(b.do(command("op1", 1, 5, func(c *berthv1.Command) {
			startOrder(c)
			c.GetStart().Edits = []*berthv1.DeviceEdit{{
				Kind: "disk", Key: "vda", Xml: `<disk type="file"><source file="/srv/web.snap"/><target dev="vda" bus="virtio"/></disk>`,
			}}
		})), done_, "", running)
		xml, err := b.node.XML(b.Context(), vmID)
		if err != nil || !strings.Contains(xml, "/srv/web.snap") {
			b.Errorf("it runs with (%v)\n%s", err, xml)
		}
	})
}

func TestStartFails(t *testing.T) {
	tooBig := func(c *berthv1.Command) {
		startOrder(c)
		c.GetStart().Spec.MemoryBytes = 1 << 50
	}
	malformed := func(c *berthv1.Command) {
		startOrder(c)
		c.GetStart().Spec = &berthv1.VMSpec{Xml: "<domain"}
	}
	for name, c := range map[string]struct {
		prepare func(b *bench)
		order   func(*berthv1.Command)
		code    string
		state   berthv1.DomainState
	}{
		"no memory":    {func(*bench) {}, tooBig, "no_memory", absentState},
		"malformed":    {func(*bench) {}, malformed, "invalid_xml", absentState},
		"runs already": {func(b *bench) { b.start(3) }, startOrder, "exists", running},
		"libvirt away": {func(b *bench) { b.node.Stop() }, startOrder, "unavailable", unknown},
		"libvirt says no": {
			func(b *bench) { b.node.Inject("start", fake.Fault{Err: errors.New("qemu did not start")}) }, startOrder, "internal",
			absentState,
		},
		"no capabilities": {
			func(b *bench) { b.node.Inject("host", fake.Fault{Err: hypervisor.ErrDenied}) }, startOrder, "denied", absentState,
		},
		"guest ends at once": {func(b *bench) { b.node.Inject("start", fake.Fault{Err: nil}) }, startOrder, "internal", absentState},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				c.prepare(b)
				begun := time.Now()
				answer := b.do(command("op1", 1, 5, c.order))
				b.want(answer, failed, c.code, c.state)
				if ended := answer.GetDomain().GetEndedHere(); ended != (name == "guest ends at once") {
					b.Errorf("that its guest has ended here, and may have written to its disks, is told: %t", ended)
				}
				if took := time.Since(begun); took > 5*time.Second {
					b.Errorf("it took %s, and another node waits to be tried", took)
				}
				// The failure is evidence: whatever comes late under this epoch is refused.
				b.node.Restart()
				b.want(b.do(command("op2", 1, 5, startOrder)), refused_, "stale_epoch", unseen)
			})
		})
	}
}

// define makes the running VM a definition that is switched off.
func (b *bench) define() {
	b.node.Edit(vmID, func(d *hypervisor.Domain) { d.Persistent, d.State = true, hypervisor.Shutoff })
}

func TestStartRidesOutARestartOfLibvirt(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.node.Stop()
		time.AfterFunc(2*time.Second, b.node.Restart)
		b.want(b.do(command("op1", 1, 5, startOrder)), done_, "", running)
	})
}

func TestStartWithoutAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		fault   fake.Fault
		outcome berthv1.CommandOutcome
		code    string
		state   berthv1.DomainState
	}{
		"took effect":       {fake.Fault{Hang: true, Effect: true, Times: 1}, done_, "", running},
		"takes effect late": {fake.Fault{Hang: true, Late: startLimit + 5*time.Second, Times: 1}, done_, "", running},
		"never does":        {fake.Fault{Hang: true, Times: 1}, failed, "ambiguous", absentState},
		"error, but it ran": {fake.Fault{Err: errors.New("lost"), Effect: true, Times: 1}, done_, "", running},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.node.Inject("start", c.fault)
				b.want(b.do(command("op1", 1, 5, startOrder)), c.outcome, c.code, c.state)
			})
		})
	}
}

// A daemon that hung carries out its queue when it comes back, a moment after its first answers. Until that moment has
// passed nobody may be told that the VM is not here, or it would be started on another node as well.
func TestAbsentIsNotSaidWhileAStartMayTakeEffect(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.node.Inject("start", fake.Fault{Hang: true, Late: 3 * time.Minute, Times: 1})
		time.AfterFunc(time.Minute, b.node.Stop) // the call breaks, and libvirt is away for longer than our patience
		time.AfterFunc(3*time.Minute-time.Second, b.node.Restart)
		b.want(b.do(command("op1", 1, 5, startOrder)), ambiguous, "ambiguous", unknown)

		for round := uint32(1); ; round++ {
			r := b.do(command("op1", 1|round<<16, 5, inspectOrder))
			switch r.GetDomain().GetState() {
			case absentState:
				b.Fatalf("round %d: absent, and then it came", round)
			case running:
				b.want(b.do(command("op1", 1, 5, startOrder)), ambiguous, "ambiguous", unknown) // the first answer, for ever
				return
			}
			time.Sleep(500 * time.Millisecond)
		}
	})
}

func TestAbsentIsSaidOnceItIsSure(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.node.Inject("start", fake.Fault{Hang: true, Times: 1})
		time.AfterFunc(time.Minute, b.node.Stop)
		time.AfterFunc(3*time.Minute, b.node.Restart)
		b.want(b.do(command("op1", 1, 5, startOrder)), ambiguous, "ambiguous", unknown)
		begun := time.Now()
		for round := uint32(1); b.do(command("op1", 1|round<<16, 5, inspectOrder)).GetDomain().GetState() != absentState; round++ {
			if time.Since(begun) > 5*time.Minute {
				b.Fatal("never sure")
			}
			time.Sleep(2 * time.Second)
		}
		if sure := time.Since(begun); sure < surelyAbsent {
			b.Errorf("sure after %s", sure)
		}
		if b.calls("start") != 1 {
			b.Errorf("started %d times", b.calls("start"))
		}
	})
}

// A libvirtd that dies while it launches a guest and comes back shows the guest as starting, and then kills it.
func TestStartingIsNotStarted(t *testing.T) {
	for name, c := range map[string]struct {
		then    func(b *bench)
		outcome berthv1.CommandOutcome
		code    string
		state   berthv1.DomainState
	}{
		"and then it runs":    {func(b *bench) { b.set(hypervisor.Running) }, done_, "", running},
		"and then it is gone": {func(b *bench) { _ = b.node.Destroy(b.Context(), vmID, 5) }, failed, "ambiguous", absentState},
		"and stays so":        {func(*bench) {}, ambiguous, "ambiguous", unknown},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *bench) {
				b.node.Inject("start", fake.Fault{Hang: true, Effect: true, Times: 1})
				b.jobs.Do(b.Context(), command("op1", 1, 5, startOrder))
				time.Sleep(time.Second)
				b.set(hypervisor.Starting)
				b.node.Stop()
				time.Sleep(2 * time.Second)
				b.node.Restart()
				time.Sleep(5 * time.Second)
				b.want(b.do(command("op1", 1|1<<16, 5, inspectOrder)), ambiguous, "busy", unknown)
				c.then(b)
				b.want(b.answer(), c.outcome, c.code, c.state)
			})
		})
	}
}
