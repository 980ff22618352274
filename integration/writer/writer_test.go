package writer

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"berth/integration/lab"
)

// What a writer's end leaves on its console is half a line at most: before the next one's first words, or at the end of all.
func TestLinesOfAWriter(t *testing.T) {
	l := &lab.Lab{Dir: t.TempDir()}
	if err := os.MkdirAll(filepath.Join(l.Dir, "shared/serial"), 0o755); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]Line{
		"boot 0000000A 00000000 00000000 \nwrote 0000000A 00000001 \nwrote 0000000A 000000": {
			{Boots, 10, 0, 0}, {Wrote, 10, 1, 0},
		},
		"wrote 0000000A 0000boot 0000000B 00000011 00000002 \nlost 0000000B 00000012 00000001 \n": {
			{Boots, 11, 17, 2}, {Lost, 11, 18, 1},
		},
		"": nil,
	} {
		if err := os.WriteFile(filepath.Join(l.Dir, "shared/serial/w.log"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if lines, err := Log(l, "w"); err != nil || !slices.Equal(lines, want) {
			t.Errorf("%q: %v, %v, want %v", text, lines, err, want)
		}
	}
	if err := os.WriteFile(filepath.Join(l.Dir, "shared/serial/w.log"), []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if lines, err := Log(l, "w"); err == nil {
		t.Errorf("nonsense is taken for %v", lines)
	}
	if lines, err := Log(l, "nobody"); err != nil || lines != nil {
		t.Errorf("one that has said nothing: %v, %v", lines, err)
	}
}
