package jobs

import (
	"strings"
	"testing"
	"time"

	"berth/agent/hypervisor"
	berthv1 "berth/shared/gen/berth/v1"
)

// libvirtd restarts and forgets a guest, whose process runs on: it is not absent, no order brings a second copy to this node, and
// when the process has ended everything is as with any guest that has ended.
func TestAGuestThatLibvirtForgotIsNotAbsent(t *testing.T) {
	inBubble(t, func(b *bench) {
		b.want(b.do(command("op-1", 1, 1, startOrder)), berthv1.CommandOutcome_COMMAND_OUTCOME_DONE, "", berthv1.DomainState_DOMAIN_STATE_RUNNING)
		if known := b.jobs.Known(); len(known) != 1 || known[0] != vmID {
			t.Errorf("known are %v", known)
		}
		b.node.Stop()
		b.node.Forget(vmID)
		b.node.Restart()
		says := func(result *berthv1.CommandResult) {
			t.Helper()
			for _, words := range []string{"process ", " runs it, libvirt does not list it: end that process"} {
				if !strings.Contains(result.GetError(), words) {
					t.Errorf("it does not say %q: %s", words, result.GetError())
				}
			}
			if result.GetDomain().GetProcessId() == 0 {
				t.Errorf("it is shown as %v", result.GetDomain())
			}
		}
		begun := time.Now()
		inspected := b.do(command("op-2", 1, 1, func(c *berthv1.Command) {
			c.Action = &berthv1.Command_Inspect{Inspect: &berthv1.InspectCommand{}}
		}))
		b.want(inspected, berthv1.CommandOutcome_COMMAND_OUTCOME_AMBIGUOUS, "exists", berthv1.DomainState_DOMAIN_STATE_ORPHAN)
		says(inspected)
		started := b.do(command("op-3", 1, 2, startOrder))
		b.want(started, berthv1.CommandOutcome_COMMAND_OUTCOME_FAILED, "exists", berthv1.DomainState_DOMAIN_STATE_ORPHAN)
		says(started)
		if started.GetCode() != berthv1.AgentErrorCode_AGENT_ERROR_CODE_EXISTS {
			t.Errorf("a leader would try another node: %s", started.GetCode())
		}
		adopted := b.do(command("op-4", 1, 3, func(c *berthv1.Command) {
			c.Action = &berthv1.Command_Adopt{Adopt: &berthv1.AdoptCommand{}}
		}))
		b.want(adopted, berthv1.CommandOutcome_COMMAND_OUTCOME_FAILED, "exists", berthv1.DomainState_DOMAIN_STATE_ORPHAN)
		says(adopted)
		stopped := b.do(command("op-5", 1, 3, func(c *berthv1.Command) {
			c.Action = &berthv1.Command_Stop{Stop: &berthv1.StopCommand{Force: true}}
		}))
		b.want(stopped, berthv1.CommandOutcome_COMMAND_OUTCOME_REFUSED, "exists", berthv1.DomainState_DOMAIN_STATE_ORPHAN)
		says(stopped)
		if took := time.Since(begun); took > time.Second {
			t.Errorf("it was waited for %s, and nothing changes by waiting", took)
		}
		if err := b.jobs.Refuse(b.Context(), vmID, 3); err == nil || !strings.Contains(err.Error(), hypervisor.ErrOrphan.Error()) {
			t.Errorf("Refuse: %v", err)
		}
		b.node.EndProcess(vmID)
		if err := b.jobs.Refuse(b.Context(), vmID, 3); err != nil {
			t.Errorf("Refuse, when its process has ended: %v", err)
		}
		b.want(b.do(command("op-6", 1, 4, startOrder)), berthv1.CommandOutcome_COMMAND_OUTCOME_DONE, "", berthv1.DomainState_DOMAIN_STATE_RUNNING)
	})
}
