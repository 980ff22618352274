// Package sieve bounds what coordinators send each other on the port for Raft, before Raft's transport decodes it.
//
// Raft's transport (v1.8.0) reads MessagePack with lengths and counts that the other side gives, and knows no bounds: some bytes have it
// make gigabytes, and a message may be endless. So the bytes are looked at as they come. What a coordinator of Berth never sends ends the
// connection, and the transport has not seen it then. What is let through takes about as much memory as it has bytes.
//
// A request is a byte that names its kind, and a map. The entries of a snapshot follow its request as they are, as many bytes as the
// request says under Size; they go to the disk and not into memory. An answer is a text and a map.
package sieve

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Limits of what one side sends.
type Limits struct {
	Message int64 // bytes of a request or of a part of an answer, without the content of a snapshot
	Text    int64 // bytes of one text in it
	Values  int64 // in it, keys and what is inside of others included
	// Who is the ID of the member that sends, by its certificate. A request with another in its header is refused; empty: none is.
	Who string
	// Fits refuses the content of a snapshot that there is no room for, by its size in bytes.
	Fits func(size int64) error
}

// Answers are the limits of answers: they have numbers, a text of an error and an address.
var Answers = Limits{Message: 64 << 10, Text: 32 << 10, Values: 64}

// ErrBound is that of all errors of this package: the other side has sent what no coordinator sends.
var ErrBound = errors.New("it sent what no coordinator sends")

const (
	kinds    = 5 // of requests; Raft numbers them from 0
	snapshot = 2 // the kind whose content follows
	deepest  = 4 // of containers inside of each other: a request has its entries, with their fields
	// LargeFrom is the size in bytes from which on a request is large.
	LargeFrom = 1 << 20
)

// part is what the next bytes are.
type part int

const (
	kind    part = iota // the first of a request
	head                // of a value: its type, and its length if it has one
	payload             // the rest of a value that has no others inside
	content             // of a snapshot
)

// scan follows messages through the bytes of a connection.
type scan struct {
	limits  Limits
	answers bool // answers come, and no requests

	next part
	is   byte // the kind of the request

	size, values int64   // of this message, so far
	open         []int64 // how many values are still to come in each container around the next
	header       []byte
	left         int64 // bytes of the payload or content
	large        bool  // this message has LargeFrom bytes, or will

	first byte   // of the head of the value whose payload comes
	kept  []byte // that payload, where it is looked at
	keeps bool
	key   string // the last key of a request itself, not of what is inside of it
	sized bool   // it has said how large the content is
	after int64  // what it said
}

func refused(format string, arguments ...any) error {
	return fmt.Errorf("%w: %s", ErrBound, fmt.Sprintf(format, arguments...))
}

// take follows what has come. With an error, none of it may be used.
func (s *scan) take(came []byte) error {
	for len(came) > 0 {
		switch s.next {
		case kind:
			if err := s.begin(came[0]); err != nil {
				return err
			}
			if !s.answers {
				came = came[1:]
			}
		case head:
			s.header = append(s.header, came[0])
			came = came[1:]
			if len(s.header) < headerOf(s.header[0]) {
				continue
			}
			if err := s.value(); err != nil {
				return err
			}
		case payload, content:
			n := min(s.left, int64(len(came)))
			if s.keeps {
				s.kept = append(s.kept, came[:n]...)
			}
			came, s.left = came[n:], s.left-n
			if s.left > 0 {
				continue
			}
			if s.next == content {
				s.next = kind
				continue
			}
			if err := s.ended(); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin begins a message.
func (s *scan) begin(first byte) error {
	if !s.answers && first >= kinds {
		return refused("a request of kind %d", first)
	}
	*s = scan{limits: s.limits, answers: s.answers, next: head, is: first, open: s.open[:0], header: s.header[:0], kept: s.kept[:0]}
	return nil
}

// middle tells whether a message has begun and not ended.
func (s *scan) middle() bool { return s.next != kind }

// headerOf is how many bytes the head of a value has that begins with this one.
func headerOf(first byte) int {
	switch first {
	case 0xc4, 0xd9, 0xd6, 0xd7: // bin 8, str 8, extensions of 4 and 8 bytes with their type
		return 2
	case 0xc5, 0xda, 0xdc, 0xde, 0xc7: // bin 16, str 16, array 16, map 16, ext 8 with its type
		return 3
	case 0xc6, 0xdb, 0xdd, 0xdf: // bin 32, str 32, array 32, map 32
		return 5
	}
	return 1
}

// value takes the head of a value that is complete.
func (s *scan) value() error {
	first, length := s.header[0], lengthOf(s.header)
	time := timeOf(s.header)
	if isExtension(first) && time == 0 {
		return refused("an extension that is no time")
	}
	whole := int64(len(s.header))
	s.header = s.header[:0]
	var bytes, inside int64
	switch {
	case first == 0xc1:
		return refused("a value of no type")
	case first <= 0x7f, first >= 0xe0, first == 0xc0, first == 0xc2, first == 0xc3: // small numbers, nil, false, true
	case first <= 0x8f: // a small map
		inside = 2 * int64(first&0x0f)
	case first <= 0x9f: // a small array
		inside = int64(first & 0x0f)
	case first <= 0xbf: // a small text
		bytes = int64(first & 0x1f)
	case first == 0xdc || first == 0xdd: // arrays
		inside = length
	case first == 0xde || first == 0xdf: // maps
		inside = 2 * length
	case first >= 0xca && first <= 0xd3: // numbers: 4 and 8 of floats, 1, 2, 4 and 8 of others
		bytes = []int64{4, 8, 1, 2, 4, 8, 1, 2, 4, 8}[first-0xca]
	case time > 0:
		bytes = time
	default: // texts and bytes
		bytes = length
	}
	if err := s.bound(first, whole, bytes, inside); err != nil {
		return err
	}
	what := s.role()
	switch {
	case what == aKey && (first < 0xa0 || first > 0xbf) && first != 0xd9:
		return refused("a request whose fields have no names")
	case what == theSize && !isNumber(first):
		return refused("a snapshot of a size that is none")
	case what == theID && (!isText(first) || bytes != int64(len(s.limits.Who))):
		return refused("a request of another than %s, who has sent it", s.limits.Who)
	}
	if inside > 0 {
		s.open = append(s.open, inside)
		return nil
	}
	s.first, s.left, s.next = first, bytes, payload
	s.keeps = what != aValue
	if bytes == 0 {
		return s.ended()
	}
	return nil
}

// roles are what a value may be for this package.
type role int

const (
	aValue  role = iota // that is not looked at
	aKey                // of a request
	theSize             // of the content that follows
	theID               // of the member that says it has sent the request
)

// role tells what the next value is.
func (s *scan) role() role {
	switch {
	case s.answers || len(s.open) != 1:
		return aValue
	case s.open[0]%2 == 0:
		return aKey
	case s.key == "Size" && s.is == snapshot:
		return theSize
	case s.key == "ID" && s.limits.Who != "":
		return theID
	}
	return aValue
}

// isNumber tells whether a head is that of a whole number that is not negative, or may be none.
func isNumber(first byte) bool { return first <= 0x7f || first >= 0xcc && first <= 0xd3 }

func isExtension(first byte) bool {
	return first >= 0xd4 && first <= 0xd8 || first >= 0xc7 && first <= 0xc9
}

// timeOf is how many bytes a time has behind this head; 0: it is none. Other extensions are not let through: after one without bytes, in a
// field that it does not know, Raft's decoder takes one more value, and ends the message elsewhere than this package.
func timeOf(header []byte) int64 {
	switch {
	case header[0] == 0xd6 && header[1] == 0xff:
		return 4
	case header[0] == 0xd7 && header[1] == 0xff:
		return 8
	case header[0] == 0xc7 && header[1] == 12 && header[2] == 0xff:
		return 12
	}
	return 0
}

// isText tells whether a head is that of a text or of bytes.
func isText(first byte) bool {
	return first >= 0xa0 && first <= 0xbf || first >= 0xc4 && first <= 0xc6 || first >= 0xd9 && first <= 0xdb
}

// ended takes the end of a value that has no others inside, and of all that end with it.
func (s *scan) ended() error {
	switch s.role() {
	case aKey:
		s.key = string(s.kept)
	case theSize:
		size, err := numberOf(s.first, s.kept)
		if err != nil || s.sized {
			return refused("a snapshot of a size that is none")
		}
		s.after, s.sized = size, true
	case theID:
		if string(s.kept) != s.limits.Who {
			return refused("a request of another than %s, who has sent it", s.limits.Who)
		}
	}
	s.kept, s.keeps, s.next = s.kept[:0], false, head
	for len(s.open) > 0 {
		last := len(s.open) - 1
		if s.open[last]--; s.open[last] > 0 {
			return nil
		}
		s.open = s.open[:last]
	}
	s.next, s.large = kind, false
	if s.after == 0 {
		return nil
	}
	if s.limits.Fits != nil {
		if err := s.limits.Fits(s.after); err != nil {
			return fmt.Errorf("it sent a snapshot: %w", err)
		}
	}
	s.next, s.left = content, s.after
	return nil
}

// numberOf reads a number as it is kept: what is in its head, or behind it.
func numberOf(first byte, rest []byte) (int64, error) {
	var whole uint64
	switch {
	case first <= 0x7f:
		whole = uint64(first)
	case first >= 0xd0 && rest[0] >= 0x80:
		return 0, errors.New("it is negative")
	default:
		for _, one := range rest {
			whole = whole<<8 | uint64(one)
		}
	}
	if whole > math.MaxInt64 {
		return 0, errors.New("it is too large")
	}
	return int64(whole), nil
}

// lengthOf is the length that a head gives; 0: it gives none.
func lengthOf(header []byte) int64 {
	switch len(header) {
	case 2:
		return int64(header[1])
	case 3:
		return int64(binary.BigEndian.Uint16(header[1:]))
	case 5:
		return int64(binary.BigEndian.Uint32(header[1:]))
	}
	return 0
}

// bound refuses what is too much.
func (s *scan) bound(first byte, header, bytes, inside int64) error {
	s.size += header + bytes
	s.values += inside
	s.large = s.large || s.size >= LargeFrom
	switch {
	case bytes > s.limits.Text:
		return refused("a text of %d bytes, at most %d may be", bytes, s.limits.Text)
	case s.size > s.limits.Message:
		return refused("a message of more than %d bytes", s.limits.Message)
	case s.values > s.limits.Values:
		return refused("a message of more than %d values", s.limits.Values)
	case len(s.open) == deepest && inside > 0:
		return refused("a message with more than %d containers inside of each other", deepest)
	case !s.answers && len(s.open) == 0 && (first < 0x80 || first > 0x8f) && first != 0xde:
		return refused("a request that is no map")
	}
	return nil
}
