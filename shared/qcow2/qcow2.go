// Package qcow2 tells from the first bytes of a disk image, above all one in the format qcow2, how large the disk is and whether
// the image is whole in itself.
package qcow2

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Bounds of an image.
const (
	// HeaderLength is how many bytes of a file Parse needs, if the file is that long.
	HeaderLength = 104
	// MaxSize is the largest disk, as the guest sees it, in bytes: 1 PiB.
	MaxSize = 1 << 50
)

var (
	// ErrFormat reports that something is not an image of the format that is looked for, or is a broken one.
	ErrFormat = errors.New("not a good image")
	// ErrUnfit reports an image that cannot be used as it is: it is not whole in itself, or nobody could read it.
	ErrUnfit = errors.New("cannot be used")
)

var magic = [4]byte{'Q', 'F', 'I', 0xfb}

// Is tells whether a file that begins like this says that it is a qcow2 image.
func Is(begin []byte) bool { return len(begin) >= len(magic) && [4]byte(begin) == magic }

// Header is what the beginning of an image says. Offsets and lengths are in bytes.
type Header struct {
	Version     int // 2 or 3
	ClusterSize int64
	Size        int64 // of the disk, as the guest sees it

	Backing   bool // the image has only what differs from another file
	DataFile  bool // the content is in another file
	Encrypted bool
	Corrupt   bool // QEMU found it broken
	Unknown   bool // it uses features that came after this program
	Snapshots int  // inside the image

	tables []table
}

// table is a part of the file that has to be there.
type table struct {
	name           string
	offset, length uint64
}

// Bits of the field incompatible_features, of version 3. A reader must not open an image with a bit that it does not know.
const (
	dirty           = 1 << 0 // the reference counts are repaired when it is opened
	corrupt         = 1 << 1
	dataFile        = 1 << 2
	compressionType = 1 << 3
	extendedL2      = 1 << 4
	knownFeatures   = dirty | corrupt | dataFile | compressionType | extendedL2
)

const (
	lengthOf2 = 72 // of the header of version 2

	minClusterBits, maxClusterBits = 9, 21
	maxRefcountOrder               = 6
)

// Parse reads the header of an image from the beginning of its file, of which HeaderLength bytes are enough. The layout is that
// of QEMU's specification "The QCOW2 image format" (docs/interop/qcow2). The error is ErrFormat.
func Parse(begin []byte) (Header, error) {
	if !Is(begin) {
		return Header{}, fmt.Errorf("%w: it does not begin like a qcow2 image", ErrFormat)
	}
	if len(begin) < lengthOf2 {
		return Header{}, fmt.Errorf("%w: it ends within its header", ErrFormat)
	}
	short := func(at int) uint32 { return binary.BigEndian.Uint32(begin[at:]) }
	long := func(at int) uint64 { return binary.BigEndian.Uint64(begin[at:]) }
	h := Header{Version: int(short(4)), Backing: long(8) != 0, Encrypted: short(32) != 0}
	switch bits := short(20); {
	case h.Version != 2 && h.Version != 3:
		return Header{}, fmt.Errorf("%w: it is of version %d, and only 2 and 3 are known", ErrFormat, short(4))
	case bits < minClusterBits || bits > maxClusterBits:
		return Header{}, fmt.Errorf("%w: clusters of 2^%d bytes", ErrFormat, bits)
	case long(24) > MaxSize:
		return Header{}, fmt.Errorf("%w: a disk of %d bytes, more than 1 PiB", ErrFormat, long(24))
	default:
		h.ClusterSize, h.Size = 1<<bits, int64(long(24))
	}
	h.Snapshots = int(min(short(60), 1<<16))
	h.tables = []table{
		{"L1 table", long(40), 8 * uint64(short(36))},
		{"refcount table", long(48), uint64(short(56)) * uint64(h.ClusterSize)},
	}
	if h.Version == 2 {
		return h, nil
	}
	if len(begin) < HeaderLength {
		return Header{}, fmt.Errorf("%w: it ends within its header", ErrFormat)
	}
	switch length := short(100); {
	case length < HeaderLength || int64(length) > h.ClusterSize || length%8 != 0:
		return Header{}, fmt.Errorf("%w: a header of %d bytes", ErrFormat, length)
	case short(96) > maxRefcountOrder:
		return Header{}, fmt.Errorf("%w: reference counts of 2^%d bits", ErrFormat, short(96))
	}
	features := long(72)
	h.Corrupt, h.DataFile, h.Unknown = features&corrupt != 0, features&dataFile != 0, features&^knownFeatures != 0
	return h, nil
}

// Check tells whether an image can be used as it is, by itself: nothing but its own file is needed to read it, and all of it is
// there. File is the length of the file in bytes. The error is ErrFormat or ErrUnfit, and says what is wrong.
func (h *Header) Check(file int64) error {
	switch {
	case h.Backing:
		return fmt.Errorf("%w: it has a backing file, another image that it needs to be read", ErrUnfit)
	case h.DataFile:
		return fmt.Errorf("%w: its content is in an external data file", ErrUnfit)
	case h.Encrypted:
		return fmt.Errorf("%w: it is encrypted", ErrUnfit)
	case h.Corrupt:
		return fmt.Errorf("%w: QEMU has marked it as corrupt", ErrUnfit)
	case h.Unknown:
		return fmt.Errorf("%w: it uses features of a newer QEMU", ErrUnfit)
	case h.Snapshots > 0:
		return fmt.Errorf("%w: it has internal snapshots, which nobody would see and which take room", ErrUnfit)
	case h.Size == 0:
		return fmt.Errorf("%w: its disk has no size", ErrUnfit)
	}
	for _, t := range h.tables {
		if t.offset == 0 || t.offset%uint64(h.ClusterSize) != 0 {
			return fmt.Errorf("%w: its %s is at byte %d", ErrFormat, t.name, t.offset)
		}
		if end := t.offset + t.length; end < t.offset || end > uint64(max(file, 0)) {
			return fmt.Errorf("%w: its %s ends behind the file's end, so some of the file is missing", ErrFormat, t.name)
		}
	}
	// One entry of the L1 table leads to a table of one cluster, each entry of which leads to one cluster of data. With
	// extended entries these take twice the room.
	perEntry := h.ClusterSize * (h.ClusterSize / 8)
	if needed := (h.Size + perEntry - 1) / perEntry; uint64(needed)*8 > h.tables[0].length {
		return fmt.Errorf("%w: its L1 table is too short for a disk of %d bytes", ErrFormat, h.Size)
	}
	return nil
}
