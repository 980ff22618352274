package jobs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
)

// Storage keeps the journal: buckets of keys and values. When Update returns without an error, all of its change is on disk;
// with an error, none of it is.
type Storage interface {
	View(read func(Tx) error) error
	Update(change func(Tx) error) error
	Close() error
}

// Tx is one reading of a Storage, or one change of it. Neither it nor a value from it may be used after its function has
// returned.
type Tx interface {
	Bucket(name string) Bucket
}

// Bucket is one of a Storage's buckets. All buckets exist from the beginning.
type Bucket interface {
	Get(key []byte) []byte // nil: the key is not there
	Put(key, value []byte) error
	Delete(key []byte) error
	// ForEach visits all keys in order. The visitor changes nothing.
	ForEach(visit func(key, value []byte) error) error
}

// file is a Storage on the disk: bbolt syncs each transaction.
type file struct{ db *bbolt.DB }

type fileTx struct{ tx *bbolt.Tx }

// View implements Storage.
func (f file) View(read func(Tx) error) error {
	return f.db.View(func(tx *bbolt.Tx) error { return read(fileTx{tx}) })
}

// Update implements Storage.
func (f file) Update(change func(Tx) error) error {
	return f.db.Update(func(tx *bbolt.Tx) error { return change(fileTx{tx}) })
}

// Close implements Storage.
func (f file) Close() error { return f.db.Close() }

// Bucket implements Tx.
func (t fileTx) Bucket(name string) Bucket { return t.tx.Bucket([]byte(name)) }

func openFile(path string) (Storage, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 2 * time.Second})
	switch {
	case errors.Is(err, bbolterrors.ErrTimeout):
		return nil, fmt.Errorf("journal %s is in use: another berth-agent runs on this node", path)
	case errors.Is(err, bbolterrors.ErrInvalid), errors.Is(err, bbolterrors.ErrChecksum), errors.Is(err, bbolterrors.ErrVersionMismatch):
		return nil, fmt.Errorf("journal %s is damaged: %w: put this node into maintenance until no operation runs on it, "+
			"then move the file away and start the agent", path, err)
	case err != nil:
		return nil, fmt.Errorf("open the journal %s: %w", path, err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range []string{
			bucketIntents, bucketAnswers, bucketEpochs, bucketObeyed, bucketTickets, bucketFrozen, bucketRan, bucketProbe, bucketMeta,
		} {
			if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("prepare the journal %s: %w", path, err)
	}
	return file{db}, nil
}

// Unused tells whether no process uses the journal now. A journal that does not exist is unused.
func Unused(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, ReadOnly: true})
	switch {
	case errors.Is(err, bbolterrors.ErrTimeout):
		return errors.New("a berth-agent runs on this node")
	case err != nil:
		return nil // it may be damaged, but nobody uses it
	}
	return db.Close()
}
