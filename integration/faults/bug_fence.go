package faults

import (
	"time"

	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/integration/faults/plant"
)

// verdicts are what follows from the nodes' silence.
func (k *keeper) verdicts(moment evidence.Moment) []evidence.FenceVerdict {
	verdicts, _ := k.fencer.Look(moment)
	switch k.world.bug {
	case plant.ManySilent:
		verdicts = nil
		for _, one := range k.fencer.Silences(moment) {
			verdicts = append(verdicts, evidence.Fencing(k.world.Now.Sub(k.since), []evidence.Silence{one})...)
		}
	case plant.RackFenced:
		for _, one := range k.fencer.Silences(moment) {
			if one.Domain == rackLabel {
				verdicts = append(verdicts, evidence.Fencing(k.world.Now.Sub(k.since), []evidence.Silence{one})...)
			}
		}
	case plant.WatchdogUnwaited:
		all := k.fencer.Silences(moment)
		for i := range all {
			all[i].Leased = time.Hour
		}
		verdicts = evidence.Fencing(k.world.Now.Sub(k.since), all)
	case plant.SickAtOnce:
		all := k.fencer.Silences(moment)
		for i := range all {
			all[i].Sick *= 10
		}
		verdicts = evidence.Fencing(k.world.Now.Sub(k.since), all)
	case plant.FencedUnasked:
		for i := range verdicts {
			if verdicts[i].Act == evidence.FenceAsk {
				verdicts[i].Act = evidence.FenceProven
			}
		}
	}
	return verdicts
}

// unheld are the VMs as a restart looks at them.
func (k *keeper) unheld(snapshot *state.Snapshot) []model.VM {
	vms := snapshot.VMs()
	for i := range vms {
		if k.world.bug == plant.LossesForgotten {
			vms[i].Losses = nil
		}
		if k.world.bug == plant.StorageFails && vms[i].Condition.Is(model.StorageLate) {
			vms[i].Desired = model.Stopped
		}
	}
	if k.world.bug != plant.SilenceIsDeath {
		return vms
	}
	for i := range vms {
		if vms[i].Holder != "" && k.facts.Facts(vms[i].Holder, k.world.Now).Liveness == model.Unreachable {
			vms[i].Holder = ""
		}
	}
	return vms
}
