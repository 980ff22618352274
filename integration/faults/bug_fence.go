package faults

import (
	"time"

	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// verdicts are what follows from the nodes' silence.
func (m *member) verdicts(moment evidence.Moment) []evidence.FenceVerdict {
	verdicts, _ := m.fencer.Look(moment)
	switch m.world.bug {
	case ManySilent:
		verdicts = nil
		for _, one := range m.fencer.Silences(moment) {
			verdicts = append(verdicts, evidence.Fencing(m.world.now.Sub(m.since), []evidence.Silence{one})...)
		}
	case WatchdogUnwaited:
		all := m.fencer.Silences(moment)
		for i := range all {
			all[i].Leased = time.Hour
		}
		verdicts = evidence.Fencing(m.world.now.Sub(m.since), all)
	case FencedUnasked:
		for i := range verdicts {
			if verdicts[i].Act == evidence.FenceAsk {
				verdicts[i].Act = evidence.FenceProven
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
func (w *World) outlive(command *state.Command, node model.Node, message string, proven bool) {
	if len(command.Nodes) == 0 {
		return
	}
	is := &command.Nodes[0].Fencing
	believed := w.bug == FailureIsProof && message == errDeviceOut.Error()
	if believed || w.bug == ProofOutlivesBoot && proven {
		*is = node.Fencing
		is.Phase, is.Message = model.FencingProven, message
	}
}

// unheld are the VMs as a restart looks at them.
func (m *member) unheld(snapshot *state.Snapshot) []model.VM {
	vms := snapshot.VMs()
	if m.world.bug != SilenceIsDeath {
		return vms
	}
	for i := range vms {
		if vms[i].Holder != "" && m.facts.Facts(vms[i].Holder, m.world.now).Liveness == model.Unreachable {
			vms[i].Holder = ""
		}
	}
	return vms
}
