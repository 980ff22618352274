// Package packing makes entries of the log small, and large again. It knows nothing of what is in them but the words that they
// are likely to have.
package packing

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Format is the first byte of what is packed. After it come the length of what was packed, as four bytes with the highest first,
// and that in DEFLATE (RFC 1951) with words as its preset dictionary.
const Format = 3

const (
	head = 5
	// effort is flate's. 2 is the least that uses a preset dictionary; more than 5 saves nothing more.
	effort = 5
	// mostOfAByte is more than DEFLATE makes of one byte, so a false length cannot ask for memory.
	mostOfAByte = 1040
)

// ErrDamaged is the cause for which something cannot be unpacked.
var ErrDamaged = errors.New("it is packed and cannot be unpacked")

// packer is kept, because the tables of its writer are large.
type packer struct {
	out    bytes.Buffer
	writer *flate.Writer
}

var packers = sync.Pool{New: func() any {
	p := new(packer)
	p.writer, _ = flate.NewWriterDict(&p.out, effort, []byte(words)) // fails for an effort that there is not
	return p
}}

// Pack gives what takes fewer bytes: plain as it is, or packed. Plain may not begin with Format.
func Pack(plain []byte) []byte {
	p := packers.Get().(*packer)
	defer packers.Put(p)
	p.out.Reset()
	p.out.Write(binary.BigEndian.AppendUint32([]byte{Format}, uint32(len(plain))))
	p.writer.Reset(&p.out)
	_, err := p.writer.Write(plain)
	if err = errors.Join(err, p.writer.Close()); err != nil || p.out.Len() >= len(plain) {
		return plain
	}
	return bytes.Clone(p.out.Bytes())
}

var unpackers = sync.Pool{New: func() any { return flate.NewReaderDict(bytes.NewReader(nil), []byte(words)) }}

// Unpack gives back what was packed, and what does not begin with Format as it is. What would have more than so many bytes is
// refused before it takes memory. The error is ErrDamaged.
func Unpack(data []byte, most int) ([]byte, error) {
	if len(data) == 0 || data[0] != Format {
		return data, nil
	}
	if len(data) < head {
		return nil, fmt.Errorf("%w: it does not tell its length", ErrDamaged)
	}
	length := uint64(binary.BigEndian.Uint32(data[1:head]))
	if length > uint64(most) || length > mostOfAByte*uint64(len(data)) {
		return nil, fmt.Errorf("%w: %d bytes cannot have become %d, and at most %d may have", ErrDamaged, length, len(data), most)
	}
	from := bytes.NewReader(data[head:])
	reader := unpackers.Get().(io.ReadCloser)
	defer unpackers.Put(reader)
	if err := reader.(flate.Resetter).Reset(from, []byte(words)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	plain := make([]byte, length)
	if _, err := io.ReadFull(reader, plain); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	switch more, err := reader.Read(make([]byte, 1)); {
	case more > 0:
		return nil, fmt.Errorf("%w: it has more than the %d bytes that it tells", ErrDamaged, length)
	case !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	case from.Len() > 0:
		return nil, fmt.Errorf("%w: %d bytes follow its end", ErrDamaged, from.Len())
	}
	return plain, nil
}
