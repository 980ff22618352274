package tasks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
	berthv1 "berth/shared/gen/berth/v1"
)

// bootAs starts the VM under an epoch.
func (b *bench) bootAs(epoch uint64) {
	b.Helper()
	xml, err := domxml.WithIdentity(`<domain type='qemu'><memory>1024</memory></domain>`,
		domxml.Identity{UUID: vmID, Name: "web1", Mark: domxml.Mark{Epoch: epoch}})
	if err == nil {
		err = b.node.Start(b.Context(), xml)
	}
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) state() hypervisor.State {
	b.Helper()
	domain, err := b.node.Lookup(b.Context(), vmID)
	if err != nil {
		b.Fatal(err)
	}
	return domain.State
}

func (b *bench) wantCode(task *berthv1.Task, code string) *berthv1.TaskResult {
	b.Helper()
	result := b.do(task)
	if result.GetErrorCode() != code || result.GetDone() != (code == "") {
		b.Errorf("got %v, want code %q", result, code)
	}
	return result
}

func TestSuspend(t *testing.T) {
	inBubble(t, func(b *bench) {
		suspend := func(epoch uint64) *berthv1.Task {
			return &berthv1.Task{Id: "t", Action: &berthv1.Task_Suspend{Suspend: &berthv1.SuspendTask{VmId: vmID, Epoch: epoch}}}
		}
		b.wantCode(suspend(3), "not_found")
		b.bootAs(3)
		b.wantCode(suspend(2), "other_epoch")
		b.wantCode(suspend(0), "other_epoch")
		if b.state() != hypervisor.Running {
			b.Error("a copy of another epoch was suspended")
		}
		b.wantCode(suspend(3), "")
		b.wantCode(suspend(3), "")
		if b.state() != hypervisor.Paused {
			b.Errorf("it is %s", b.state())
		}
		if err := b.node.Unmark(b.Context(), vmID, 3); err != nil {
			b.Fatal(err)
		}
		b.wantCode(suspend(0), "")
	})
}

func TestDescribe(t *testing.T) {
	inBubble(t, func(b *bench) {
		describe := &berthv1.Task{Id: "t", Action: &berthv1.Task_Describe{Describe: &berthv1.DescribeTask{VmId: vmID}}}
		b.wantCode(describe, "not_found")
		b.bootAs(3)
		running := &berthv1.Task{Id: "t", Action: &berthv1.Task_Describe{Describe: &berthv1.DescribeTask{VmId: vmID, Running: true}}}
		for _, task := range []*berthv1.Task{describe, running} {
			if text := b.wantCode(task, "").GetDomainXml(); !strings.Contains(text, "<name>web1</name>") {
				b.Errorf("got %s", text)
			}
		}
	})
}

func TestUndefine(t *testing.T) {
	inBubble(t, func(b *bench) {
		undefine := &berthv1.Task{Id: "t", Action: &berthv1.Task_Undefine{Undefine: &berthv1.UndefineTask{VmId: vmID, Epoch: 3}}}
		b.wantCode(undefine, "")
		b.bootAs(3)
		b.wantCode(undefine, "invalid_state")
		b.node.Edit(vmID, func(d *hypervisor.Domain) { d.State, d.Persistent = hypervisor.Shutoff, true })
		b.wantCode(undefine, "")
		if _, err := b.node.Lookup(b.Context(), vmID); !errors.Is(err, hypervisor.ErrNotFound) {
			b.Errorf("it is there still: %v", err)
		}
	})
}

func TestRefuseIsTheJobs(t *testing.T) {
	inBubble(t, func(b *bench) {
		var asked string
		var says error
		b.tasks.Refuse = func(_ context.Context, vm string, epoch uint64) error {
			asked = fmt.Sprintf("%s %d", vm, epoch)
			return says
		}
		refuse := &berthv1.Task{Id: "t", Action: &berthv1.Task_Refuse{Refuse: &berthv1.RefuseTask{VmId: vmID, Epoch: 3}}}
		b.wantCode(refuse, "")
		says = hypervisor.ErrInvalidState
		b.wantCode(refuse, "invalid_state")
		if asked != vmID+" 3" {
			b.Errorf("asked %s", asked)
		}
	})
}

// What somebody has paused stays so: only a guest that its hypervisor has paused for want of space is let run.
func TestUnpause(t *testing.T) {
	inBubble(t, func(b *bench) {
		unpause := func(epoch uint64) *berthv1.Task {
			return &berthv1.Task{Id: "t", Action: &berthv1.Task_Unpause{Unpause: &berthv1.UnpauseTask{VmId: vmID, Epoch: epoch}}}
		}
		b.wantCode(unpause(3), "not_found")
		b.bootAs(3)
		b.wantCode(unpause(3), "invalid_state")
		if err := b.node.Suspend(b.Context(), vmID, 3); err != nil {
			b.Fatal(err)
		}
		b.wantCode(unpause(3), "invalid_state")
		if b.state() != hypervisor.Paused {
			b.Error("what somebody has paused was let run")
		}
		b.node.Edit(vmID, func(d *hypervisor.Domain) { d.Reason = hypervisor.ReasonIOError })
		b.wantCode(unpause(2), "other_epoch")
		b.wantCode(unpause(3), "")
		if b.state() != hypervisor.Running {
			b.Error("it does not run")
		}
	})
}
