package packing

import (
	"sync"
	"unsafe"
)

// Known remembers what entries hold that this process has made itself, so that it need not read them again. An entry is known by where it
// is in memory, never by what it says: bytes that came from a disk or another member are other memory. What is remembered is not given
// back, so nothing else can come to the same place.
type Known[T any] struct {
	mu      sync.Mutex
	entries map[*byte]T
}

// Keep remembers what an entry holds, until it is taken or what Keep returns is called. Nobody may change the entry.
func (k *Known[T]) Keep(entry []byte, holds T) (forget func()) {
	at := unsafe.SliceData(entry)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.entries == nil {
		k.entries = map[*byte]T{}
	}
	k.entries[at] = holds
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.entries, at)
	}
}

// Take gives what an entry holds to the first who asks; false if it is not remembered.
func (k *Known[T]) Take(entry []byte) (holds T, known bool) {
	at := unsafe.SliceData(entry)
	k.mu.Lock()
	defer k.mu.Unlock()
	holds, known = k.entries[at]
	delete(k.entries, at)
	return holds, known
}
