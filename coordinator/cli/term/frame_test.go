package term

import (
	"strings"
	"testing"
)

// A list that is watched stays within its terminal, and leaves nothing of the one before.
func TestAFrameFitsTheTerminal(t *testing.T) {
	page := strings.Repeat("row\n", 40)
	for height, rows := range map[int]int{0: 40, 50: 40, 43: 40, 42: 38, 10: 6, 3: 1} {
		got := frame("head", page, height)
		if n := strings.Count(got, "row\x1b[K\n"); n != rows {
			t.Errorf("height %d: %d rows, want %d", height, n, rows)
		}
		if lines := strings.Count(got, "\n"); height > 4 && lines >= height {
			t.Errorf("height %d: %d lines scroll it", height, lines)
		}
		if !strings.HasPrefix(got, "\x1b[Hhead\x1b[K\n\x1b[K\n") || !strings.HasSuffix(got, "\n\x1b[J") {
			t.Errorf("height %d: %q", height, got)
		}
		if rows < 40 != strings.Contains(got, "more lines\x1b[K\n") {
			t.Errorf("height %d does not count what is left out", height)
		}
	}
}
