package imagelock

import (
	"os"
	"path/filepath"
	"testing"
)

func TestALockIsSeenUntilItsFileIsClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(path, nil, 0o400); err != nil {
		t.Fatal(err)
	}
	open := func() *os.File {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	one, other := open(), open()
	defer other.Close()
	want := func(held bool) {
		t.Helper()
		if got, err := Held(other); got != held || err != nil {
			t.Errorf("held %t, %v; want %t", got, err, held)
		}
	}
	want(false)
	if err := Hold(one); err != nil {
		t.Fatal(err)
	}
	want(true)
	if held, err := Held(one); held || err != nil {
		t.Errorf("it sees its own lock: %t, %v", held, err)
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	want(false)
}
