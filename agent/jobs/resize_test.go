package jobs

import (
	"strings"
	"testing"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/fake"
	berthv1 "berth/shared/gen/berth/v1"
)

func resizeOrder(memory int64, vcpus int32) func(*berthv1.Command) {
	return func(c *berthv1.Command) {
		c.Action = &berthv1.Command_Resize{Resize: &berthv1.ResizeCommand{MemoryBytes: memory, Vcpus: vcpus}}
	}
}

// The guest is as large as the order says, or the answer tells how large it is. More than it was started with is not tried by halves.
func TestResize(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.start(5)
		before := b.shows(b.node)
		most, vcpus := before.MemoryBytes, int32(before.VCPUs)
		has := func() (int64, int) {
			stats, _, err := b.node.Stats(b.Context())
			if err != nil || len(stats) != 1 {
				b.Fatalf("%+v, %v", stats, err)
			}
			return *stats[0].BalloonBytes, *stats[0].VCPUs
		}
		is := func(what string, memory int64, vcpus int32) {
			b.Helper()
			if gotMemory, gotVCPUs := has(); gotMemory != memory || gotVCPUs != int(vcpus) {
				b.Errorf("%s: it has %d and %d vCPUs", what, gotMemory, gotVCPUs)
			}
		}
		r := b.do(command("op1", 1, 5, resizeOrder(most/2, vcpus)))
		if b.want(r, done_, "", running); r.GetNote() != "" {
			b.Errorf("it says %q", r.GetNote())
		}
		is("half the memory", most/2, vcpus)
		b.want(b.do(command("op2", 1, 5, resizeOrder(most, 0))), done_, "", running)
		is("all of it again", most, vcpus)

		r = b.do(command("op3", 1, 5, resizeOrder(most/2, vcpus+1)))
		if b.want(r, refused_, "invalid_state", running); !strings.Contains(r.GetError(), "at most") {
			b.Errorf("it says %q", r.GetError())
		}
		is("more vCPUs than the most", most, vcpus)

		b.node.SetGuest(vmID, fake.Guest{IgnoresShutdown: true})
		r = b.do(command("op4", 1, 5, resizeOrder(most/2, 0)))
		if b.want(r, done_, "", running); !strings.Contains(r.GetNote(), "so far") {
			b.Errorf("of a guest that keeps its memory it says %q", r.GetNote())
		}
		b.node.Edit(vmID, func(d *hypervisor.Domain) { d.Epoch = 9 })
		b.want(b.do(command("op5", 1, 5, resizeOrder(most/2, 0))), refused_, "other_epoch", running)
		b.node.Edit(vmID, func(d *hypervisor.Domain) { d.Epoch = 5 })
		b.node.Inject("resize", fake.Fault{Err: hypervisor.ErrAmbiguous, Times: 1})
		b.want(b.do(command("op6", 1, 5, resizeOrder(most/4, 0))), ambiguous, "ambiguous", running)
		b.want(b.do(command("op6", 1, 5, resizeOrder(most/4, 0))), done_, "", running)
	})
}
