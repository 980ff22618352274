package jobs

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"berth/agent/errorcode"
	berthv1 "berth/shared/gen/berth/v1"
)

const (
	// keepAnswers is how long a line is kept. An operation that is asked about later than this has long ended.
	keepAnswers = 7 * 24 * time.Hour
	pruneEvery  = 24 * time.Hour
)

var (
	bucketIntents = "intents" // operation/step -> entry: begun here, and the end is not known
	bucketAnswers = "answers" // operation/step -> entry
	bucketEpochs  = "epochs"  // VM ID -> lowest epoch that is still obeyed
	bucketObeyed  = "obeyed"  // VM ID -> highest epoch of an order that was obeyed; clearing orders do not count
	bucketTickets = "tickets" // operation -> entry: a migration to here, whose guest this node has promised to resume
	bucketFrozen  = "frozen"  // VM ID -> entry: its guest's file systems may stand still
	bucketRan     = "ran"     // VM ID -> lastrun.Run
	bucketProbe   = "probe"   // what is written only to see whether it can be
	bucketMeta    = "meta"
	keyTerm       = []byte("term") // highest term of a leader that was followed
)

// journal keeps on disk what this node began and what it answered. Every change is on disk when the call returns, so a crash
// loses no intent.
type journal struct {
	storage Storage
}

// entry is one command's line.
type entry struct {
	At        time.Time `json:"at"`
	Operation string    `json:"operation"`
	Step      uint32    `json:"step"`
	VM        string    `json:"vm"`
	Epoch     uint64    `json:"epoch"`
	Start     bool      `json:"start,omitempty"`
	Result    []byte    `json:"result,omitempty"` // protobuf of berth.v1.CommandResult; an intent has none
}

func (j *journal) close() error { return j.storage.Close() }

func keyOf(operation string, step uint32) []byte { return fmt.Appendf(nil, "%s/%08x", operation, step) }

// answered finds the earlier answer; nil if there is none.
func (j *journal) answered(operation string, step uint32) (result *berthv1.CommandResult, err error) {
	err = j.storage.View(func(tx Tx) error {
		text := tx.Bucket(bucketAnswers).Get(keyOf(operation, step))
		if text == nil {
			return nil
		}
		var e entry
		if err := json.Unmarshal(text, &e); err != nil {
			return err
		}
		result = &berthv1.CommandResult{}
		return proto.Unmarshal(e.Result, result)
	})
	return result, err
}

// begin records the intent to carry out a command, unless the command is older than what was obeyed before (errorcode.ErrStaleTerm,
// errorcode.ErrStaleEpoch). TakenUp tells that the intent was there already: an earlier life of the agent began it. An order about a VM
// that is back counts as new under any epoch.
func (j *journal) begin(command *berthv1.Command, back bool, at time.Time) (takenUp bool, err error) {
	err = j.storage.Update(func(tx Tx) error {
		if err := obey(tx, command, back); err != nil {
			return err
		}
		key, intents := keyOf(command.GetOperationId(), command.GetStep()), tx.Bucket(bucketIntents)
		if takenUp = intents.Get(key) != nil; takenUp {
			return nil
		}
		line := lineOf(command, at)
		line.Start = actionOf(command).starts
		return put(intents, key, line)
	})
	return takenUp, err
}

// obey refuses what is old and records what is new.
func obey(tx Tx, command *berthv1.Command, back bool) error {
	if err := followed(tx, command.GetTerm()); err != nil {
		return err
	}
	vm, epoch := command.GetVmId(), command.GetEpoch()
	afterwards := actionOf(command).afterwards
	floor, obeyed := number(tx.Bucket(bucketEpochs).Get([]byte(vm))), number(tx.Bucket(bucketObeyed).Get([]byte(vm)))
	switch {
	case afterwards && (epoch < obeyed || epoch+1 < floor):
		// An order of a later epoch has made volumes with the same names.
		return fmt.Errorf("%w: epoch %d, and %d has been here since", errorcode.ErrStaleEpoch, epoch, max(obeyed, floor-1))
	case afterwards:
		return raise(tx.Bucket(bucketEpochs), vm, epoch) // it comes when its epoch is over
	case epoch < floor && !back:
		return fmt.Errorf("%w: epoch %d, this node obeys %d and later", errorcode.ErrStaleEpoch, epoch, floor)
	}
	if err := raise(tx.Bucket(bucketObeyed), vm, epoch); err != nil {
		return err
	}
	return raise(tx.Bucket(bucketEpochs), vm, epoch)
}

// followed refuses a term that is older than one that was followed, and records it otherwise.
func followed(tx Tx, term uint64) error {
	meta := tx.Bucket(bucketMeta)
	switch known := number(meta.Get(keyTerm)); {
	case term < known:
		return fmt.Errorf("%w: term %d, this node has obeyed term %d", errorcode.ErrStaleTerm, term, known)
	case term > known:
		return meta.Put(keyTerm, bytesOf(term))
	}
	return nil
}

// follow is followed in its own transaction.
func (j *journal) follow(term uint64) error {
	return j.storage.Update(func(tx Tx) error { return followed(tx, term) })
}

// raise makes this the lowest epoch of a VM from now on, unless it is higher already.
func raise(epochs Bucket, vm string, epoch uint64) error {
	if epoch <= number(epochs.Get([]byte(vm))) {
		return nil
	}
	return epochs.Put([]byte(vm), bytesOf(epoch))
}

// refuse refuses every order for the VM up to an epoch from now on.
func (j *journal) refuse(vm string, epoch uint64) error {
	return j.storage.Update(func(tx Tx) error { return raise(tx.Bucket(bucketEpochs), vm, epoch+1) })
}

// answer records in place of a command's intent how it ended.
func (j *journal) answer(command *berthv1.Command, done done, at time.Time) error {
	return j.storage.Update(func(tx Tx) error {
		if err := raise(tx.Bucket(bucketEpochs), command.GetVmId(), done.obeyFrom); err != nil {
			return err
		}
		line := lineOf(command, at)
		if done.promises {
			if err := put(tx.Bucket(bucketTickets), []byte(command.GetOperationId()), line); err != nil {
				return err
			}
		}
		return conclude(tx, line, done.result)
	})
}

// takeBack answers a command that has not begun here, so that it never will, also if an earlier copy of it comes late. It reports false
// if the command has begun. A leader that is older than one that was followed takes nothing back.
func (j *journal) takeBack(command *berthv1.Command, result *berthv1.CommandResult, at time.Time) (never bool, err error) {
	err = j.storage.Update(func(tx Tx) error {
		if err := followed(tx, command.GetTerm()); err != nil {
			return err
		}
		if tx.Bucket(bucketIntents).Get(keyOf(command.GetOperationId(), command.GetStep())) != nil {
			return nil
		}
		never = true
		return conclude(tx, lineOf(command, at), result)
	})
	return never, err
}

// lineOf is a command's line without an end.
func lineOf(command *berthv1.Command, at time.Time) *entry {
	return &entry{
		At: at, Operation: command.GetOperationId(), Step: command.GetStep(), VM: command.GetVmId(), Epoch: command.GetEpoch(),
	}
}

func conclude(tx Tx, e *entry, result *berthv1.CommandResult) (err error) {
	key := keyOf(e.Operation, e.Step)
	if err := tx.Bucket(bucketIntents).Delete(key); err != nil {
		return err
	}
	if e.Result, err = proto.Marshal(result); err != nil {
		return err
	}
	return put(tx.Bucket(bucketAnswers), key, e)
}

// forget removes an intent, for a command that must be tried again when it comes again.
func (j *journal) forget(command *berthv1.Command) error {
	return j.storage.Update(func(tx Tx) error {
		return tx.Bucket(bucketIntents).Delete(keyOf(command.GetOperationId(), command.GetStep()))
	})
}

// known is the VM IDs of all orders that were obeyed.
func (j *journal) known() (vms []string) {
	err := j.storage.View(func(tx Tx) error {
		return tx.Bucket(bucketObeyed).ForEach(func(vm, _ []byte) error {
			vms = append(vms, string(vm))
			return nil
		})
	})
	if err != nil {
		return nil
	}
	return vms
}

// openStarts is the VM IDs of starts that were begun and not answered.
func (j *journal) openStarts() (vms []string, err error) {
	err = j.storage.View(func(tx Tx) error {
		return eachStart(tx, func(e *entry) error {
			vms = append(vms, e.VM)
			return nil
		})
	})
	return vms, err
}

// refuseStarts answers every open start of the VM up to an epoch with a failure. So "not here" stays true afterwards: none of
// those orders will be carried out any more, however late it comes.
func (j *journal) refuseStarts(vm string, upTo uint64, at time.Time) error {
	open, err := j.openStarts()
	if err != nil || !slices.Contains(open, vm) {
		return err
	}
	return j.storage.Update(func(tx Tx) error {
		return eachStart(tx, func(e *entry) error {
			if e.VM != vm || e.Epoch > upTo {
				return nil
			}
			e.At = at
			code := berthv1.AgentErrorCode_AGENT_ERROR_CODE_NOT_FOUND
			return conclude(tx, e, &berthv1.CommandResult{
				OperationId: e.Operation, Step: e.Step, Outcome: berthv1.CommandOutcome_COMMAND_OUTCOME_FAILED,
				Code: code, ErrorCode: errorcode.Word(code), Error: "the start ended unseen, and the VM was found not to be here",
			})
		})
	})
}

// eachStart visits every open start. The visitor may conclude it.
func eachStart(tx Tx, visit func(*entry) error) error {
	var open []*entry
	err := tx.Bucket(bucketIntents).ForEach(func(_, text []byte) error {
		e := &entry{}
		if err := json.Unmarshal(text, e); err != nil {
			return err
		}
		if e.Start {
			open = append(open, e)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, e := range open {
		if err := visit(e); err != nil {
			return err
		}
	}
	return nil
}

// prune drops old lines. Epochs stay, because they keep the node from obeying an order that comes years late.
func (j *journal) prune(now time.Time) error {
	return j.storage.Update(func(tx Tx) error {
		for _, name := range []string{bucketIntents, bucketAnswers, bucketTickets, bucketRan} {
			var old [][]byte
			err := tx.Bucket(name).ForEach(func(key, text []byte) error {
				var e entry
				if json.Unmarshal(text, &e) != nil || now.Sub(e.At) > keepAnswers {
					old = append(old, bytes.Clone(key))
				}
				return nil
			})
			if err != nil {
				return err
			}
			for _, key := range old {
				if err := tx.Bucket(name).Delete(key); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func put(bucket Bucket, key []byte, e *entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return bucket.Put(key, text)
}

func number(b []byte) uint64 {
	if len(b) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

func bytesOf(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
