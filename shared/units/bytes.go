package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is an amount of memory or data in bytes. Negative amounts appear only as differences.
type Bytes int64

// Binary multiples, as libvirt and the kernel count memory.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
	TiB Bytes = 1 << 40
)

// multiples by suffix, in lower case.
var multiples = map[string]Bytes{
	"": 1, "b": 1,
	"k": KiB, "kb": KiB, "kib": KiB,
	"m": MiB, "mb": MiB, "mib": MiB,
	"g": GiB, "gb": GiB, "gib": GiB,
	"t": TiB, "tb": TiB, "tib": TiB,
}

// ParseBytes reads a size such as "512M", "4GiB", "1.5g" or "1048576" (plain bytes).
// K, M, G and T are binary multiples, with or without "B" or "iB", in either case.
// A missing number, an unknown suffix, a negative, infinite or too big size is an error that quotes the input.
func ParseBytes(s string) (Bytes, error) {
	text := strings.TrimSpace(s)
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
	suffix := strings.ToLower(strings.TrimSpace(text[len(digits):]))
	number, err := strconv.ParseFloat(digits, 64)
	if err != nil || math.IsNaN(number) || math.IsInf(number, 0) {
		return 0, fmt.Errorf("size %q: want a number with a unit, for instance 512M or 4G", s)
	}
	multiple, known := multiples[suffix]
	if !known {
		return 0, fmt.Errorf("size %q: unknown unit %q, use K, M, G or T", s, suffix)
	}
	if number < 0 {
		return 0, fmt.Errorf("size %q is negative", s)
	}
	total := number * float64(multiple)
	if total >= math.MaxInt64 {
		return 0, fmt.Errorf("size %q is too big", s)
	}
	return Bytes(total), nil
}

// String prints with the largest unit that keeps one digit before the point: "512 MiB", "1.5 GiB", "300 B".
func (b Bytes) String() string {
	sign := ""
	if b < 0 {
		sign, b = "-", -b
	}
	for _, unit := range []struct {
		size Bytes
		name string
	}{{TiB, "TiB"}, {GiB, "GiB"}, {MiB, "MiB"}, {KiB, "KiB"}} {
		if b >= unit.size {
			number := strconv.FormatFloat(float64(b)/float64(unit.size), 'f', 1, 64)
			return sign + strings.TrimSuffix(number, ".0") + " " + unit.name
		}
	}
	return sign + strconv.FormatInt(int64(b), 10) + " B"
}
