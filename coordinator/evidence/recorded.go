package evidence

import (
	"cmp"
	"slices"

	"berth/coordinator/model"
)

// Recorded are the trials that an earlier leader has put into the records of pools that they set apart.
func Recorded(records Records) LockTrials {
	all := LockTrials{}
	for _, pool := range records.Resources(model.KindPool) {
		if len(pool.Trials) == 0 {
			continue
		}
		all[pool.ID] = map[lockPair]lockTried{}
		for _, trial := range pool.Trials {
			all[pool.ID][lockPair{trial.Holder, trial.Witness}] = lockTried{
				at: trial.At, last: trial.At, verdict: LockVerdict(trial.Verdict), looked: trial.Looked, left: trial.Left,
			}
		}
	}
	return all
}

// Record are the pools whose records have to change for the next leader to know which nodes are apart. A trial that shows again what it
// has shown before changes none. A pool of too many trials keeps none: half of them would set apart what is not.
func (all LockTrials) Record(m Moment, apart model.PoolsApart) (changed []model.Resource) {
	for _, pool := range m.Resources(model.KindPool) {
		if apart[pool.ID] == nil && len(pool.Trials) == 0 {
			continue
		}
		var trials []model.PoolTrial
		if apart[pool.ID] != nil {
			trials = all.proof(pool.ID)
		}
		if len(trials) > model.MaxPoolTrials {
			trials = nil
		}
		alike := func(one, other model.PoolTrial) bool {
			one.At = other.At
			return one == other
		}
		if !slices.EqualFunc(trials, pool.Trials, alike) {
			pool.Trials = trials
			changed = append(changed, pool)
		}
	}
	return changed
}

// proof are the trials of a pool that have shown something, by holder and witness.
func (all LockTrials) proof(pool string) []model.PoolTrial {
	var trials []model.PoolTrial
	for pair, last := range all[pool] {
		if last.verdict != LocksUnknown {
			trials = append(trials, model.PoolTrial{
				Holder: pair.holder, Witness: pair.witness, Verdict: string(last.verdict), At: last.at.UTC(), Looked: last.looked, Left: last.left,
			})
		}
	}
	slices.SortFunc(trials, func(a, b model.PoolTrial) int {
		return cmp.Or(cmp.Compare(a.Holder, b.Holder), cmp.Compare(a.Witness, b.Witness))
	})
	return trials
}
