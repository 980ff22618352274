// Package seal keeps a backup from being changed on purpose. A sealed file is a head and frames. Each frame has a sum that only who has the
// cluster's key can make, over its place, over whether it is the last one, and over what it holds. So nothing is read of a frame before
// it is proved, and a frame that is missing, moved, repeated or of another file is noticed where it stands.
package seal

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// What a file can be instead of a backup with a good seal.
var (
	// ErrUnsealed: releases before 0.7 wrote no seal. Or somebody took it away.
	ErrUnsealed = errors.New("the backup has no seal")
	// ErrKey: none of the keys that are here has sealed it.
	ErrKey = errors.New("the backup is sealed with a key that is not here")
	// ErrChanged: the file is not what was sealed.
	ErrChanged = errors.New("the backup was changed or damaged after it was made")
	// ErrNoKey: there is nothing to seal with.
	ErrNoKey = errors.New("there is no key to seal a backup with")
)

const (
	magic     = "berthbackup1"
	idSize    = 8
	saltSize  = 16
	headSize  = len(magic) + idSize + saltSize
	sumSize   = sha256.Size
	frameHead = 1 + 4 + sumSize // whether it is the last, its length, its sum
	frameSize = 64 << 10
)

// Key is a secret that the coordinators of a cluster share.
type Key [32]byte

// ID tells keys apart and gives nothing of them away.
func (k Key) ID() string { return hex.EncodeToString(k.id()) }

func (k Key) id() []byte {
	sum := hmac.New(sha256.New, k[:])
	sum.Write([]byte("berth backup key id"))
	return sum.Sum(nil)[:idSize]
}

// Keys are those that a seal may be of. The last one seals.
type Keys []Key

// ofFile is the key of one file: no frame of one file is good in another.
func (k Key) ofFile(head []byte) []byte {
	sum := hmac.New(sha256.New, k[:])
	sum.Write([]byte("berth backup file"))
	sum.Write(head)
	return sum.Sum(nil)
}

func frameSum(key []byte, number uint64, head, data []byte) []byte {
	sum := hmac.New(sha256.New, key)
	sum.Write(binary.BigEndian.AppendUint64(nil, number))
	sum.Write(head)
	sum.Write(data)
	return sum.Sum(nil)
}

// Writer seals what is written to it. Only Close makes it whole.
type Writer struct {
	to     io.Writer
	key    []byte
	number uint64
	held   []byte
}

// NewWriter begins a sealed file. The error is ErrNoKey or that of to.
func NewWriter(to io.Writer, keys Keys) (*Writer, error) {
	if len(keys) == 0 {
		return nil, ErrNoKey
	}
	key := keys[len(keys)-1]
	head := append([]byte(magic), key.id()...)
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // it never fails
	head = append(head, salt...)
	if _, err := to.Write(head); err != nil {
		return nil, err
	}
	return &Writer{to: to, key: key.ofFile(head), held: make([]byte, 0, frameSize)}, nil
}

// Write implements io.Writer.
func (w *Writer) Write(data []byte) (int, error) {
	written := 0
	for len(data) > 0 {
		if len(w.held) == frameSize {
			if err := w.frame(false); err != nil {
				return written, err
			}
		}
		n := min(len(data), frameSize-len(w.held))
		w.held = append(w.held, data[:n]...)
		data = data[n:]
		written += n
	}
	return written, nil
}

// Close writes the last frame. It does not close what is below.
func (w *Writer) Close() error { return w.frame(true) }

func (w *Writer) frame(last bool) error {
	head := make([]byte, 5, frameHead)
	if last {
		head[0] = 1
	}
	binary.BigEndian.PutUint32(head[1:], uint32(len(w.held)))
	sum := frameSum(w.key, w.number, head, w.held)
	if _, err := w.to.Write(append(head, sum...)); err != nil {
		return err
	}
	if _, err := w.to.Write(w.held); err != nil {
		return err
	}
	w.number++
	w.held = w.held[:0]
	return nil
}

// Reader gives what was sealed, frame by frame.
type Reader struct {
	from   io.Reader
	key    []byte // nil: no sum is looked at
	by     string
	number uint64
	rest   []byte
	buffer []byte
	ended  error
}

// NewReader reads the head of a sealed file. What it gives out was proved first. The error is ErrUnsealed, ErrKey, ErrChanged or that of
// from. So are those of Read.
func NewReader(from io.Reader, keys Keys) (*Reader, error) {
	head, by, err := readHead(from)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if bytes.Equal(key.id(), by) {
			return &Reader{from: from, key: key.ofFile(head), by: key.ID()}, nil
		}
	}
	return nil, fmt.Errorf("%w: its ID is %x", ErrKey, by)
}

// Unproved reads a sealed file without any key: whether it was changed is not asked.
func Unproved(from io.Reader) (*Reader, error) {
	_, by, err := readHead(from)
	if err != nil {
		return nil, err
	}
	return &Reader{from: from, by: hex.EncodeToString(by)}, nil
}

// KeyID is the ID of the key that sealed the file.
func (r *Reader) KeyID() string { return r.by }

func readHead(from io.Reader) (head, by []byte, err error) {
	head = make([]byte, headSize)
	n, err := io.ReadFull(from, head)
	if n >= len(magic) && string(head[:len(magic)]) != magic {
		return nil, nil, ErrUnsealed
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		if n < len(magic) {
			return nil, nil, ErrUnsealed
		}
		return nil, nil, fmt.Errorf("%w: it is cut short", ErrChanged)
	case err != nil:
		return nil, nil, err
	}
	return head, head[len(magic) : len(magic)+idSize], nil
}

// Open gives what a backup holds. Unproved, it may also be one without a seal, or with that of a key which is not here; what a key that is
// here has sealed is proved all the same. The error is that of NewReader.
func Open(from io.Reader, keys Keys, unproved bool) (content io.Reader, proved bool, err error) {
	whole := bufio.NewReaderSize(from, frameSize)
	start, err := whole.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	switch sealed, err := NewReader(bytes.NewReader(start), keys); {
	case err == nil:
		sealed.from = whole
		_, err := whole.Discard(headSize)
		return sealed, true, err
	case unproved && errors.Is(err, ErrUnsealed):
		return whole, false, nil
	case unproved && errors.Is(err, ErrKey):
		content, err := Unproved(whole)
		return content, false, err
	default:
		return nil, false, err
	}
}

// Read implements io.Reader.
func (r *Reader) Read(into []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.ended != nil {
			return 0, r.ended
		}
		if err := r.frame(); err != nil {
			r.ended = err
		}
	}
	n := copy(into, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// frame reads and proves the next one.
func (r *Reader) frame() error {
	var head [frameHead]byte
	if err := r.fill(head[:]); err != nil {
		return err
	}
	length := binary.BigEndian.Uint32(head[1:])
	if length > frameSize || head[0] > 1 {
		return r.changed()
	}
	if r.buffer == nil {
		r.buffer = make([]byte, frameSize)
	}
	data := r.buffer[:length]
	if err := r.fill(data); err != nil {
		return err
	}
	if r.key != nil && !hmac.Equal(head[5:], frameSum(r.key, r.number, head[:5], data)) {
		return r.changed()
	}
	r.number++
	r.rest = data
	if head[0] == 0 {
		return nil
	}
	var more [1]byte
	switch n, err := io.ReadFull(r.from, more[:]); {
	case n > 0:
		r.rest = nil
		return fmt.Errorf("%w: something follows its end", ErrChanged)
	case !errors.Is(err, io.EOF):
		r.rest = nil
		return err
	}
	return io.EOF
}

func (r *Reader) changed() error {
	return fmt.Errorf("%w: part %d is not what was sealed", ErrChanged, r.number+1)
}

func (r *Reader) fill(into []byte) error {
	_, err := io.ReadFull(r.from, into)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it is cut short", ErrChanged)
	}
	return err
}
