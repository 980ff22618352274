package qcow2

import (
	"errors"
	"fmt"
)

// The formats that disk images have. They are said, never guessed: a guest could write a header into its raw disk that makes
// it look like another image, which leads to a file of the host.
const (
	FormatQCOW2 = "qcow2"
	FormatRaw   = "raw"
)

// sector is what disks are made of, in bytes.
const sector = 512

// Capacity tells from the beginning of a file, of which HeaderLength bytes are enough, and its length in bytes how large the
// disk in it is, in bytes. The error is ErrFormat or ErrUnfit, and NextStep says what to do about it.
func Capacity(format string, begin []byte, file int64) (int64, error) {
	switch {
	case format == FormatQCOW2:
		header, err := Parse(begin)
		if err != nil {
			return 0, err
		}
		return header.Size, header.Check(file)
	case format != FormatRaw:
		return 0, fmt.Errorf("%w: the format %q is not known", ErrFormat, format)
	case Is(begin):
		return 0, fmt.Errorf("%w: it is to be raw, and begins like a qcow2 image", ErrFormat)
	case file <= 0 || file > MaxSize:
		return 0, fmt.Errorf("%w: a disk of %d bytes", ErrUnfit, file)
	case file%sector != 0:
		return 0, fmt.Errorf("%w: a disk is made of whole sectors of %d bytes, and the file has %d bytes", ErrUnfit, sector, file)
	}
	return file, nil
}

// NextStep says what to do about an error of Capacity.
func NextStep(err error) string {
	if errors.Is(err, ErrUnfit) {
		return "copy it into one that is whole in itself, 'qemu-img convert -O qcow2 FILE NEW.qcow2', and take that"
	}
	return "see with 'qemu-img info FILE' what it is, and say '--format qcow2' or '--format raw'"
}
