package jobs

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	berthv1 "berth/shared/gen/berth/v1"
)

// How long answers are kept. An operation that is asked about later than this has long ended.
const keepAnswers = 7 * 24 * time.Hour

var (
	bucketAnswers = []byte("answers") // operation/step -> entry
	bucketEpochs  = []byte("epochs")  // VM ID -> lowest epoch that is still obeyed
	bucketMeta    = []byte("meta")
	keyTerm       = []byte("term") // highest term obeyed
)

// ErrStaleTerm and ErrStaleEpoch refuse an order that is older than what this node has journalled.
var (
	ErrStaleTerm  = errors.New("the order is from an older leader")
	ErrStaleEpoch = errors.New("the order is for an older epoch of the VM")
)

// journal remembers on disk what this node set out to do and what it answered. Every change is on the disk when the call
// returns (bbolt syncs each transaction), so intent is never lost to a crash.
type journal struct {
	db *bbolt.DB
}

// entry is one command's line. Without a Result it was begun and its end is not known.
type entry struct {
	At     time.Time `json:"at"`
	VM     string    `json:"vm"`
	Result []byte    `json:"result,omitempty"` // protobuf of berth.v1.CommandResult
}

func openJournal(path string) (*journal, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 2 * time.Second})
	if err != nil {
		if errors.Is(err, bbolt.ErrTimeout) {
			return nil, fmt.Errorf("journal %s is in use: another berth-agent runs on this node", path)
		}
		return nil, fmt.Errorf("open the journal %s: %w", path, err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketAnswers, bucketEpochs, bucketMeta} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("prepare the journal %s: %w", path, err)
	}
	return &journal{db: db}, nil
}

func (j *journal) close() error { return j.db.Close() }

func keyOf(operation string, step uint32) []byte { return fmt.Appendf(nil, "%s/%08x", operation, step) }

// lookup finds a command's entry. Known is false for a command that was never begun here.
func (j *journal) lookup(operation string, step uint32) (result *berthv1.CommandResult, known bool, err error) {
	err = j.db.View(func(tx *bbolt.Tx) error {
		text := tx.Bucket(bucketAnswers).Get(keyOf(operation, step))
		if text == nil {
			return nil
		}
		known = true
		var e entry
		if err := json.Unmarshal(text, &e); err != nil || e.Result == nil {
			return err
		}
		result = &berthv1.CommandResult{}
		return proto.Unmarshal(e.Result, result)
	})
	return result, known, err
}

// begin records the intent to carry out a command, unless it is older than what was obeyed before. ErrStaleTerm and
// ErrStaleEpoch are refusals; the text of ErrStaleEpoch's wrapper has the figures.
func (j *journal) begin(command *berthv1.Command, at time.Time) error {
	return j.db.Update(func(tx *bbolt.Tx) error {
		if err := obey(tx, command); err != nil {
			return err
		}
		return put(tx, command, &entry{At: at, VM: command.GetVmId()})
	})
}

func obey(tx *bbolt.Tx, command *berthv1.Command) error {
	if term := number(tx.Bucket(bucketMeta).Get(keyTerm)); command.GetTerm() < term {
		return fmt.Errorf("%w: term %d, this node has obeyed term %d", ErrStaleTerm, command.GetTerm(), term)
	}
	epoch := number(tx.Bucket(bucketEpochs).Get([]byte(command.GetVmId())))
	if command.GetEpoch() < epoch {
		return fmt.Errorf("%w: epoch %d, this node obeys %d and later", ErrStaleEpoch, command.GetEpoch(), epoch)
	}
	if err := tx.Bucket(bucketMeta).Put(keyTerm, bytesOf(command.GetTerm())); err != nil {
		return err
	}
	return tx.Bucket(bucketEpochs).Put([]byte(command.GetVmId()), bytesOf(command.GetEpoch()))
}

// answer records a command's result. Orders for the VM with an epoch below obeyFrom are refused from now on.
func (j *journal) answer(command *berthv1.Command, result *berthv1.CommandResult, obeyFrom uint64, at time.Time) error {
	text, err := proto.Marshal(result)
	if err != nil {
		return err
	}
	return j.db.Update(func(tx *bbolt.Tx) error {
		epochs := tx.Bucket(bucketEpochs)
		if obeyFrom > number(epochs.Get([]byte(command.GetVmId()))) {
			if err := epochs.Put([]byte(command.GetVmId()), bytesOf(obeyFrom)); err != nil {
				return err
			}
		}
		return put(tx, command, &entry{At: at, VM: command.GetVmId(), Result: text})
	})
}

// forget takes an intent back, for a command that has to be tried anew when it is asked for again.
func (j *journal) forget(command *berthv1.Command) error {
	return j.db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketAnswers).Delete(keyOf(command.GetOperationId(), command.GetStep()))
	})
}

// prune drops old answers. Epochs stay: they are what keeps an order that comes years late from being obeyed.
func (j *journal) prune(now time.Time) error {
	return j.db.Update(func(tx *bbolt.Tx) error {
		cursor := tx.Bucket(bucketAnswers).Cursor()
		for key, text := cursor.First(); key != nil; key, text = cursor.Next() {
			var e entry
			if json.Unmarshal(text, &e) == nil && now.Sub(e.At) > keepAnswers {
				if err := cursor.Delete(); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func put(tx *bbolt.Tx, command *berthv1.Command, e *entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return tx.Bucket(bucketAnswers).Put(keyOf(command.GetOperationId(), command.GetStep()), text)
}

func number(b []byte) uint64 {
	if len(b) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

func bytesOf(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
