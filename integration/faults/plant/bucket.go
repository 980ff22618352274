package plant

import (
	"slices"

	"berth/agent/jobs"
)

type tx struct {
	jobs.Tx
	of Journal
}

// Bucket implements jobs.Tx.
func (t tx) Bucket(name string) jobs.Bucket {
	switch {
	case slices.Contains(t.of.Empty, name):
		return empty{t.Tx.Bucket(name)}
	case slices.Contains(t.of.Unread, name):
		return unread{t.Tx.Bucket(name)}
	default:
		return t.Tx.Bucket(name)
	}
}

// empty is a bucket that never has anything.
type empty struct{ jobs.Bucket }

// Get implements jobs.Bucket.
func (empty) Get([]byte) []byte { return nil }

// Put implements jobs.Bucket.
func (empty) Put([]byte, []byte) error { return nil }

// ForEach implements jobs.Bucket.
func (empty) ForEach(func(key, value []byte) error) error { return nil }

// unread is a bucket that is written and never read.
type unread struct{ jobs.Bucket }

// Get implements jobs.Bucket.
func (unread) Get([]byte) []byte { return nil }
