package jobs

import (
	"encoding/json"

	"google.golang.org/protobuf/proto"

	"berth/agent/lastrun"
	"berth/agent/telemetry"
	berthv1 "berth/shared/gen/berth/v1"
)

// LastRuns are what guests of this node run with whose devices were changed, by UUID. Some have ended.
func (j *Jobs) LastRuns() []telemetry.LastRun { return j.runs.Told(j.now(), keepAnswers, endingsTold) }

// Reading is called before the devices of a guest are read, and what it gives with those that were.
func (j *Jobs) Reading(vm string) func(epoch uint64, devices *berthv1.Devices) {
	before := j.runs.Of(vm)
	return func(epoch uint64, devices *berthv1.Devices) {
		text, err := proto.MarshalOptions{Deterministic: true}.Marshal(devices)
		if err == nil && epoch == before.Epoch && j.runs.Read(vm, before, text, j.now()) && j.ctx.Err() == nil {
			j.background(j.writeRuns)
		}
	}
}

// writeRuns writes what has changed to the journal, and tries until it succeeds: what stands there of the time before is not true any more,
// and the next life of the agent would tell it.
func (j *Jobs) writeRuns() {
	for complained := false; ; {
		vm, line := j.runs.Next()
		if vm == "" {
			return
		}
		err := j.journal.ran(vm, line)
		if err == nil {
			continue
		}
		if !complained {
			j.Logger.Error("what a guest runs with could not be journalled: it is tried again", "vm", vm, "error", err)
			complained = true
		}
		j.runs.Again(vm)
		if j.sleep(listEvery) != nil {
			return
		}
	}
}

// ran records what a guest runs with; nil: it has left.
func (j *journal) ran(vm string, line *lastrun.Run) error {
	return j.storage.Update(func(tx Tx) error {
		if line == nil {
			return tx.Bucket(bucketRan).Delete([]byte(vm))
		}
		text, err := json.Marshal(line)
		if err != nil {
			return err
		}
		return tx.Bucket(bucketRan).Put([]byte(vm), text)
	})
}

// runs are those that an earlier life of the agent has recorded.
func (j *journal) runs() (runs map[string]lastrun.Run, err error) {
	runs = map[string]lastrun.Run{}
	err = j.storage.View(func(tx Tx) error {
		return tx.Bucket(bucketRan).ForEach(func(vm, text []byte) error {
			run, err := lastrun.Line(text)
			if err != nil {
				return err
			}
			runs[string(vm)] = run
			return nil
		})
	})
	return runs, err
}
