package faults

import (
	"time"

	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/integration/faults/machine"
)

// verdicts are what follows from the nodes' silence.
func (k *keeper) verdicts(moment evidence.Moment) []evidence.FenceVerdict {
	verdicts, _ := k.fencer.Look(moment)
	switch k.world.bug {
	case ManySilent:
		verdicts = nil
		for _, one := range k.fencer.Silences(moment) {
			verdicts = append(verdicts, evidence.Fencing(k.world.Now.Sub(k.since), []evidence.Silence{one})...)
		}
	case RackFenced:
		for _, one := range k.fencer.Silences(moment) {
			if one.Domain == rackLabel {
				verdicts = append(verdicts, evidence.Fencing(k.world.Now.Sub(k.since), []evidence.Silence{one})...)
			}
		}
	case WatchdogUnwaited:
		all := k.fencer.Silences(moment)
		for i := range all {
			all[i].Leased = time.Hour
		}
		verdicts = evidence.Fencing(k.world.Now.Sub(k.since), all)
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
func (b Bug) leadsSince(now time.Time) time.Time {
	if b == EarlierCallIgnored {
		return now.Add(-time.Hour)
	}
	return now
}

// outlive changes what is to be committed at the end of a fencing.
func (b Bug) outlive(command *state.Command, node model.Node, message string, proven bool) {
	if len(command.Nodes) == 0 {
		return
	}
	is := &command.Nodes[0].Fencing
	believed := b == FailureIsProof && message == machine.ErrDeviceOut.Error()
	if believed || b == ProofOutlivesBoot && proven {
		*is = node.Fencing
		is.Phase, is.Message = model.FencingProven, message
	}
}

// unheld are the VMs as a restart looks at them.
func (k *keeper) unheld(snapshot *state.Snapshot) []model.VM {
	vms := snapshot.VMs()
	for i := range vms {
		if k.world.bug == LossesForgotten {
			vms[i].Losses = nil
		}
		if k.world.bug == StorageFails && vms[i].Condition.Is(model.StorageLate) {
			vms[i].Desired = model.Stopped
		}
	}
	if k.world.bug != SilenceIsDeath {
		return vms
	}
	for i := range vms {
		if vms[i].Holder != "" && k.facts.Facts(vms[i].Holder, k.world.Now).Liveness == model.Unreachable {
			vms[i].Holder = ""
		}
	}
	return vms
}

// again tells of a VM without HA whether it is started again by itself.
func (b Bug) again(is func(*model.VM) bool) func(*model.VM) bool {
	if b == LeftOff {
		return func(*model.VM) bool { return false }
	}
	return is
}
