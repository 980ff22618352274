package plant

import (
	"reflect"
	"time"

	"berth/coordinator/control/fencing"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
)

// Verdicts are what follows from the nodes' silence, for a leader that leads for so long. Rack is the label of the rack that is dark.
func (b Bug) Verdicts(fencer *fencing.Fencer, moment evidence.Moment, leads time.Duration, rack string) []evidence.FenceVerdict {
	verdicts, _ := fencer.Look(moment)
	switch b {
	case ManySilent:
		verdicts = nil
		for _, one := range fencer.Silences(moment) {
			verdicts = append(verdicts, evidence.Fencing(leads, []evidence.Silence{one})...)
		}
	case RackFenced:
		for _, one := range fencer.Silences(moment) {
			if one.Domain == rack {
				verdicts = append(verdicts, evidence.Fencing(leads, []evidence.Silence{one})...)
			}
		}
	case WatchdogUnwaited:
		all := fencer.Silences(moment)
		for i := range all {
			all[i].Leased = time.Hour
		}
		verdicts = evidence.Fencing(leads, all)
	case SickAtOnce:
		all := fencer.Silences(moment)
		for i := range all {
			all[i].Sick *= 10
		}
		verdicts = evidence.Fencing(leads, all)
	case FencedUnasked:
		for i := range verdicts {
			if verdicts[i].Act == evidence.FenceAsk {
				verdicts[i].Act = evidence.FenceProven
			}
		}
	}
	return verdicts
}

// Unheld are the VMs as a restart looks at them.
func (b Bug) Unheld(vms []model.VM, silent func(node string) bool) []model.VM {
	for i := range vms {
		vm := &vms[i]
		switch {
		case b == LossesForgotten:
			vm.Losses = nil
		case b == StorageFails && vm.Condition.Is(model.StorageLate):
			vm.Desired = model.Stopped
		case b == SilenceIsDeath && vm.Holder != "" && silent(vm.Holder):
			vm.Holder = ""
		case b == RestoredRuns && vm.Condition.Is(model.NowhereSeen):
			vm.Condition = model.Condition{}
		}
	}
	return vms
}

// StillArmed leaves it out of a notice that the silence of nodes proves nothing any more. It reports whether anything else is new.
func StillArmed(moment evidence.Moment, notice *fencing.Notice) (news bool) {
	for i := range notice.Command.Nodes {
		after := &notice.Command.Nodes[i]
		before, _ := moment.Node(after.ID)
		if before.Boot == after.Boot && after.Watchdog == 0 {
			after.Watchdog = before.Watchdog
		}
		news = news || !reflect.DeepEqual(*after, before)
	}
	return news
}

// HasRoom tells whether a look has found that a guest may run on for which there was no room. Domain is what its node shows of it.
func (b Bug) HasRoom(found *evidence.Found, domain *model.Domain) bool {
	paused := b == PausedRuns && domain != nil && domain.State == model.DomainPaused
	return found.Verdict == evidence.HasRoom || paused && found.Verdict == evidence.OutOfBand
}
