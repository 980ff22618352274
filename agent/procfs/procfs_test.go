package procfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	buffer := make([]byte, Longest)
	want, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Read("/proc/self/comm", buffer); err != nil || string(got) != string(want) {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := Read("/proc/self/none", buffer); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "/proc/self/none") {
		t.Errorf("what is not there: %q, %v", got, err)
	}
	if got, err := Read("/proc/self", buffer); err == nil {
		t.Errorf("a folder: %q", got)
	}
}

// A file that may have been cut is refused: half a number is another number.
func TestAFileThatMayBeCutIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("1234"), 0o600); err != nil {
		t.Fatal(err)
	}
	for size, fits := range map[int]bool{3: false, 4: false, 5: true} {
		if got, err := Read(path, make([]byte, size)); (err == nil) != fits || fits && string(got) != "1234" {
			t.Errorf("into %d bytes: %q, %v", size, got, err)
		}
	}
}

// One more file costs no object of the heap: they are read by the hundred each second.
func TestReadLeavesNoGarbage(t *testing.T) {
	buffer := make([]byte, Longest)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := Read("/proc/self/comm", buffer); err != nil {
			t.Fatal(err)
		}
	}); n > 1 { // the path as the system wants it
		t.Errorf("%v objects", n)
	}
}
