package simagent

import (
	"context"
	"io"
	"time"

	"berth/agent/errorcode"
	"berth/agent/tasks"
	berthv1 "berth/shared/gen/berth/v1"
)

// work does tasks at once. A simulated node keeps no volumes: any that an order names can be made, grown and removed.
type work struct{ node *node }

// Do answers a task. What a tunnel brings is read and thrown away; a guest's console says again what is typed.
func (w work) Do(ctx context.Context, task *berthv1.Task, dig tasks.Dig) *berthv1.TaskResult {
	result := &berthv1.TaskResult{Id: task.GetId(), Done: true}
	fail := func(code berthv1.AgentErrorCode, text string) *berthv1.TaskResult {
		return &berthv1.TaskResult{Id: task.GetId(), Code: code, ErrorCode: errorcode.TaskWord(code), Error: text}
	}
	switch {
	case task.GetFetch() != nil:
		tunnel, err := dig(ctx, task.GetFetch().GetTicket())
		if err != nil {
			return fail(berthv1.AgentErrorCode_AGENT_ERROR_CODE_INTERNAL, err.Error())
		}
		defer tunnel.Close()
		read, err := io.Copy(io.Discard, tunnel)
		if err != nil || read != task.GetFetch().GetSizeBytes() {
			return fail(berthv1.AgentErrorCode_AGENT_ERROR_CODE_INVALID, "the file ended too early")
		}
		result.AllocatedBytes = read
	case task.GetConsole() != nil:
		if _, there := w.node.find(task.GetConsole().GetVmId()); !there {
			return fail(berthv1.AgentErrorCode_AGENT_ERROR_CODE_NOT_FOUND, "there is no such domain")
		}
		tunnel, err := dig(ctx, task.GetConsole().GetTicket())
		if err != nil {
			return fail(berthv1.AgentErrorCode_AGENT_ERROR_CODE_INTERNAL, err.Error())
		}
		defer tunnel.Close()
		_, _ = io.Copy(tunnel, tunnel)
	case task.GetProfile() != nil:
		now := time.Now()
		result.Profile = w.node.weekOf(task.GetProfile().GetVmId(), now)
		result.Minutes = w.node.minutesOf(task.GetProfile().GetVmId(), now)
	}
	return result
}
