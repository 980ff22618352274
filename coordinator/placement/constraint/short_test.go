package constraint

import (
	"testing"

	"berth/shared/units"
)

// Two amounts that print alike in one digit are told apart in the unit that does it, and not in bytes.
func TestAmountsThatPrintAlike(t *testing.T) {
	for _, c := range []struct {
		a, b         units.Bytes
		wantA, wantB string
	}{
		{1560690688, 1536 * units.MiB, "1488 MiB", "1536 MiB"},
		{units.GiB - units.KiB, units.GiB, "1023 MiB", "1024 MiB"},
		{units.GiB, units.GiB + 5*units.KiB, "1048576 KiB", "1048581 KiB"},
		{units.GiB, units.GiB + 1, "1073741824 B", "1073741825 B"},
	} {
		if a, b := apart(c.a, c.b); a != c.wantA || b != c.wantB {
			t.Errorf("%d and %d: %s and %s, want %s and %s", c.a, c.b, a, b, c.wantA, c.wantB)
		}
	}
}
