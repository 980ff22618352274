package consensus

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
)

// Whatever a page of the store holds, the walk ends with a verdict.
func FuzzPage(f *testing.F) {
	dir := f.TempDir()
	bolt, err := openBolt(dir)
	if err != nil {
		f.Fatal(err)
	}
	for i := range uint64(60) {
		if err := bolt.StoreLog(&raft.Log{Index: i + 1, Data: make([]byte, 100)}); err != nil {
			f.Fatal(err)
		}
	}
	if err := bolt.Close(); err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, storeFile))
	if err != nil {
		f.Fatal(err)
	}
	for at := 2 * 4096; at+4096 <= len(data); at += 4096 {
		f.Add(data[at:at+4096], true)
		f.Add(data[at:at+4096], false)
	}
	f.Fuzz(func(t *testing.T, page []byte, buckets bool) {
		if len(page) < pageHeader {
			return
		}
		// No page beyond this one is in bounds.
		w := &walker{meta: meta{pageSize: 4096}, seen: make(map[uint64]bool)}
		if err := w.elements(page, nil, nil, buckets); err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("the verdict is %v", err)
		}
	})
}
