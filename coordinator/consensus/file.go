package consensus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// checkFile walks all pages of a bbolt file before bbolt opens it. bbolt follows a damaged page out of bounds, in a
// goroutine of its own where the panic cannot be caught; and for one damaged meta page it quietly goes back a
// transaction, which may have been a vote. The layout is that of bbolt's format 2, numbers are in the machine's order.
// The error is ErrDamaged. A file that is not there is whole.
func checkFile(path string) error {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	newest, err := readMetas(file)
	if err != nil {
		return err
	}
	w := &walker{file: file, meta: newest, seen: make(map[uint64]bool)}
	return w.tree(newest.root, nil, nil, true)
}

// meta is what a meta page says.
type meta struct {
	pageSize int64
	root     uint64 // page of the bucket of buckets
	end      uint64 // first page that was never used
	version  uint64 // of the content; the higher one counts
}

const (
	pageHeader = 16 // id uint64, flags uint16, count uint16, overflow uint32
	metaSummed = 56 // bytes, then their FNV-1a of 64 bits
	element    = 16 // bytes of one entry's description in a page
	bucketHead = 16 // root uint64, sequence uint64

	branchPage, leafPage = 1, 2
	bucketElement        = 1
)

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

func readAt(file *os.File, at, length int64) ([]byte, error) {
	data := make([]byte, length)
	_, err := file.ReadAt(data, at)
	if errors.Is(err, io.EOF) {
		return nil, wrong("the file is cut short")
	}
	return data, err
}

func readMetas(file *os.File) (newest meta, err error) {
	for page := range int64(2) {
		data, err := readAt(file, page*newest.pageSize+pageHeader, metaSummed+8)
		if err != nil {
			return meta{}, err
		}
		sum := fnv.New64a()
		sum.Write(data[:metaSummed])
		if sum.Sum64() != binary.NativeEndian.Uint64(data[metaSummed:]) {
			return meta{}, wrong("meta page %d", page)
		}
		found := meta{
			pageSize: int64(binary.NativeEndian.Uint32(data[8:])),
			root:     binary.NativeEndian.Uint64(data[16:]),
			end:      binary.NativeEndian.Uint64(data[40:]),
			version:  binary.NativeEndian.Uint64(data[48:]),
		}
		if found.version >= newest.version {
			newest = found
		}
	}
	return newest, nil
}

type walker struct {
	file *os.File
	meta meta
	seen map[uint64]bool
}

// page reads a page with its overflow, which nothing else may have referred to.
func (w *walker) page(id uint64) ([]byte, error) {
	if id < 2 || id >= w.meta.end {
		return nil, wrong("page %d is out of bounds", id)
	}
	at := int64(id) * w.meta.pageSize
	head, err := readAt(w.file, at, pageHeader)
	if err != nil {
		return nil, err
	}
	overflow := uint64(binary.NativeEndian.Uint32(head[12:]))
	if binary.NativeEndian.Uint64(head) != id || id+overflow >= w.meta.end {
		return nil, wrong("the head of page %d", id)
	}
	for used := id; used <= id+overflow; used++ {
		if w.seen[used] {
			return nil, wrong("page %d is used twice", used)
		}
		w.seen[used] = true
	}
	return readAt(w.file, at, int64(overflow+1)*w.meta.pageSize)
}

// tree walks the keys from low up to but without high; nil is no bound. Only the bucket of buckets has buckets in it.
func (w *walker) tree(id uint64, low, high []byte, buckets bool) error {
	page, err := w.page(id)
	if err != nil {
		return err
	}
	return w.elements(page, low, high, buckets)
}

func (w *walker) elements(page []byte, low, high []byte, buckets bool) error {
	kind, count := binary.NativeEndian.Uint16(page[8:]), int(binary.NativeEndian.Uint16(page[10:]))
	if kind != branchPage && kind != leafPage || pageHeader+count*element > len(page) {
		return wrong("the head of a page")
	}
	if kind == branchPage && count == 0 {
		return wrong("a page leads nowhere") // bbolt would look for its last entry until there is no memory left
	}
	keys, values := make([][]byte, count), make([][]byte, count)
	for i := range count {
		at := pageHeader + i*element
		field := func(n int) uint64 { return uint64(binary.NativeEndian.Uint32(page[at+4*n:])) }
		start, keySize, valueSize := field(0), field(1), uint64(0)
		if kind == leafPage {
			start, keySize, valueSize = field(1), field(2), field(3)
		}
		start += uint64(at)
		if start+keySize+valueSize > uint64(len(page)) {
			return wrong("an element reaches out of its page")
		}
		keys[i], values[i] = page[start:start+keySize], page[start+keySize:start+keySize+valueSize]
		if low != nil && bytes.Compare(keys[i], low) < 0 || high != nil && bytes.Compare(keys[i], high) >= 0 ||
			i > 0 && bytes.Compare(keys[i-1], keys[i]) >= 0 {
			return wrong("keys are out of order")
		}
	}
	for i := range count {
		at := pageHeader + i*element
		var err error
		switch isBucket := binary.NativeEndian.Uint32(page[at:])&bucketElement != 0; {
		case kind == branchPage:
			next := high
			if i+1 < count {
				next = keys[i+1]
			}
			err = w.tree(binary.NativeEndian.Uint64(page[at+8:]), keys[i], next, buckets)
		case isBucket != buckets:
			err = wrong("an element is of the wrong kind")
		case isBucket:
			err = w.bucket(values[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bucket walks a bucket, which is a tree of its own or, while it is small, a page within its parent's value.
func (w *walker) bucket(value []byte) error {
	if len(value) < bucketHead {
		return wrong("a bucket is cut short")
	}
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		return w.tree(root, nil, nil, false)
	}
	if len(value) < bucketHead+pageHeader {
		return wrong("a bucket is cut short")
	}
	return w.elements(value[bucketHead:], nil, nil, false)
}
