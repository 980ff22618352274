package faults

import (
	"fmt"
	"time"

	"berth/agent/hypervisor"
	"berth/coordinator/operation"
	"berth/integration/faults/script"
)

// endUnseen migrates a guest, loses the target's last answer, and ends the guest on its source while nobody looks.
func endUnseen(w *World, what script.Happening, h *host) {
	name := fmt.Sprintf("vm-%d", what.VM)
	vm := uuidOf(name)
	w.wish(script.Migrate, h, name, false)
	w.LoseReply(vm)
	const every, limit = 50 * time.Millisecond, 2 * time.Minute
	deadline := w.Now.Add(limit)
	var look func()
	look = func() {
		if w.Now.After(deadline) || w.healed {
			return
		}
		op, live := w.store.Snapshot().LiveOperationOf(vm)
		if !live || op.Kind != operation.Migrate || !w.endsUnseen(vm, &op) {
			w.After(every, look)
		}
	}
	w.After(every, look)
}

// endsUnseen ends a guest that runs on at its source beside the copy that has arrived.
func (w *World) endsUnseen(vm string, op *operation.Operation) bool {
	source, target := w.host(op.Source), w.host(op.Target)
	runs, copied := source.Domains[vm], target.Domains[vm]
	if runs == nil || copied == nil || runs.State != hypervisor.Running || copied.State != hypervisor.Paused || copied.JobActive {
		return false
	}
	source.life.Kill(3 * time.Second)
	source.Crash(vm)
	w.Draw(script.UnseenEnd)
	return true
}
