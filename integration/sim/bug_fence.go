package sim

import (
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/control"
	"berth/coordinator/state"
)

// verdicts are what follows from the nodes' silence.
func (m *member) verdicts(picture control.Picture) []control.FenceVerdict {
	verdicts, _ := m.fencer.Look(picture)
	switch m.world.bug {
	case ManySilent:
		verdicts = nil
		for _, one := range m.fencer.Silences(picture) {
			verdicts = append(verdicts, control.Fencing(m.world.now.Sub(m.since), []control.Silence{one})...)
		}
	case WatchdogUnwaited:
		all := m.fencer.Silences(picture)
		for i := range all {
			all[i].Leased = time.Hour
		}
		verdicts = control.Fencing(m.world.now.Sub(m.since), all)
	case FencedUnasked:
		for i := range verdicts {
			if verdicts[i].Act == control.FenceAsk {
				verdicts[i].Act = control.FenceProven
			}
		}
	}
	return verdicts
}

// leadsSince is when a leadership that begins now begins to count.
func (w *World) leadsSince() time.Time {
	if w.bug == EarlierCallIgnored {
		return w.now.Add(-time.Hour)
	}
	return w.now
}

// outlive changes what is to be committed at the end of a fencing.
func (w *World) outlive(command *state.Command, node cluster.Node, message string, proven bool) {
	if len(command.Nodes) == 0 {
		return
	}
	is := &command.Nodes[0].Fencing
	believed := w.bug == FailureIsProof && message == errDeviceOut.Error()
	if believed || w.bug == ProofOutlivesBoot && proven {
		*is = node.Fencing
		is.Phase, is.Message = cluster.FencingProven, message
	}
}

// unheld are the VMs as a restart looks at them.
func (m *member) unheld(snapshot *state.Snapshot) []cluster.VM {
	vms := snapshot.VMs()
	if m.world.bug != SilenceIsDeath {
		return vms
	}
	for i := range vms {
		if vms[i].Holder != "" && m.facts.Facts(vms[i].Holder, m.world.now).Liveness == cluster.Unreachable {
			vms[i].Holder = ""
		}
	}
	return vms
}
