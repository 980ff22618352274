package model

import (
	"fmt"
	"strings"
	"time"
)

// idEpoch is where the time in an ID starts to count.
var idEpoch = time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)

// idAlphabet is Crockford's base 32 in lower case: no i, l, o or u, so an ID can be read out loud.
const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// NewID makes an ID of 13 characters: 40 bits of milliseconds since 2024 (enough until 2058), then the low 25 bits of
// random. IDs sort by the time they were made.
func NewID(now time.Time, random uint64) string {
	const timeLength, length = 8, 13
	var id [length]byte
	millis := uint64(max(now.Sub(idEpoch).Milliseconds(), 0))
	for i := timeLength - 1; i >= 0; i-- {
		id[i], millis = idAlphabet[millis&31], millis>>5
	}
	for i := length - 1; i >= timeLength; i-- {
		id[i], random = idAlphabet[random&31], random>>5
	}
	return string(id[:])
}

// NewUUID makes a UUID of random bits (RFC 9562, version 4), as libvirt wants for a domain.
func NewUUID(high, low uint64) string {
	high = high&^0xf000 | 0x4000
	low = low&^(3<<62) | 2<<62
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", high>>32, high>>16&0xffff, high&0xffff, low>>48, low&(1<<48-1))
}

// OtherName is a name for a record whose own is taken: with the end of its ID, of which the beginning is alike for all that were made at
// one time. It takes more of the ID where that is taken as well, and stays within the length of a name.
func OtherName(name, id string, taken func(string) bool) string {
	const least, most = 8, 40
	id = strings.ToLower(id[max(0, len(id)-most):])
	for part := min(least, len(id)); ; part++ {
		end := "-" + id[len(id)-part:]
		other := name[:min(len(name), MaxNameLength-len(end))] + end
		if part == len(id) || !taken(other) {
			return other
		}
	}
}
