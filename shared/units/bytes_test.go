package units

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]Bytes{
		"0": 0, "1048576": MiB, "512M": 512 * MiB, "512m": 512 * MiB, "512MB": 512 * MiB, "512 MiB": 512 * MiB,
		"4GiB": 4 * GiB, "1.5g": 1536 * MiB, " 2t ": 2 * TiB, "1k": KiB, "7b": 7,
	} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("ParseBytes(%q) = %d, %v, want %d", text, got, err, want)
		}
	}
	for text, say := range map[string]string{
		"": "want a number", "M": "want a number", "12X": "unknown unit", "-1M": "is negative", "-0.1": "is negative",
		"9000000T": "too big", "1e30": "too big", "NaN": "want a number", "Inf": "want a number", "1,5G": "want a number",
		"1M2": "want a number", "0x10": "want a number",
	} {
		_, err := ParseBytes(text)
		if err == nil || !strings.Contains(err.Error(), say) || !strings.Contains(err.Error(), `"`+text+`"`) {
			t.Errorf("ParseBytes(%q): got %v, want an error that quotes it and says %q", text, err, say)
		}
	}
}

func TestBytesString(t *testing.T) {
	for size, want := range map[Bytes]string{
		0: "0 B", 300: "300 B", KiB: "1 KiB", 1536: "1.5 KiB", 512 * MiB: "512 MiB", 1536 * MiB: "1.5 GiB",
		-2 * GiB: "-2 GiB", 3 * TiB: "3 TiB", 1023: "1023 B",
	} {
		if got := size.String(); got != want {
			t.Errorf("%d prints as %q, want %q", int64(size), got, want)
		}
	}
}

// What is printed can be typed in again, and is off by no more than the digit that was cut.
func TestPrintedSizesAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := Bytes(rapid.Int64Range(0, math.MaxInt64/2).Draw(t, "size"))
		back, err := ParseBytes(size.String())
		if err != nil {
			t.Fatal(err)
		}
		if off := math.Abs(float64(back - size)); off > 0.051*float64(max(size, 1)) {
			t.Fatalf("%d prints as %q, which is %d", size, size, back)
		}
	})
}
