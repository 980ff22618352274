package statusfiles

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// libvirt writes a new file beside the old one and renames it.
func rewrite(t *testing.T, folder, name string) {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path+".new", []byte("<domstatus/>"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestWatchTellsWhichGuestsHaveChanged(t *testing.T) {
	folder := t.TempDir()
	rewrite(t, folder, "before.xml")
	ctx, cancel := context.WithCancel(t.Context())
	told, ended := make(chan string, 100), make(chan error, 1)
	go func() { ended <- Watch(ctx, folder, func(name string) { told <- name }) }()
	for begun := false; !begun; { // the watch has begun once it tells something
		rewrite(t, folder, "probe.xml")
		select {
		case <-told:
			begun = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	rewrite(t, folder, "web.1.xml")
	rewrite(t, folder, "web.1.xml")
	rewrite(t, folder, "web.1.pid")
	names := map[string]int{}
	for names["web.1"] == 0 {
		names[<-told]++
	}
	time.Sleep(3 * settle)
	for len(told) > 0 {
		names[<-told]++
	}
	if names["web.1"] != 1 || names["before"] != 0 || len(names) > 2 {
		t.Errorf("it tells %v", names)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}

func TestWatchSaysWhyItCannot(t *testing.T) {
	if err := Watch(t.Context(), filepath.Join(t.TempDir(), "none"), func(string) {}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
