package statusfiles

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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
	texts := make(chan File, 100)
	go func() {
		ended <- Watch(ctx, folder, Teller{Wrote: func(file File) { texts <- file }, Changed: func(name string) { told <- name }})
	}()
	if first := <-texts; first.Name != "before" || !first.Found || first.Text != "<domstatus/>" {
		t.Errorf("what is there is told as %+v", first)
	}
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
	if err := os.Remove(filepath.Join(folder, "web.1.xml")); err != nil {
		t.Fatal(err)
	}
	var last File
	for last.Name != "web.1" || last.Text != "" {
		last = <-texts
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}

// libvirt may take seconds to answer about one guest. What the files of the others say is read all the same.
func TestWhatFilesSayIsReadWhileLibvirtIsAsked(t *testing.T) {
	folder := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	texts, asked, answers := make(chan File, 100), make(chan string, 100), make(chan struct{})
	ended := make(chan error, 1)
	rewrite(t, folder, "before.xml")
	go func() {
		ended <- Watch(ctx, folder, Teller{Wrote: func(file File) { texts <- file }, Changed: func(name string) {
			asked <- name
			<-answers
		}})
	}()
	<-texts
	rewrite(t, folder, "slow.xml")
	<-asked
	rewrite(t, folder, "web.xml")
	for file := (File{}); file.Name != "web"; {
		file = <-texts
	}
	close(answers)
	for name := ""; name != "web"; {
		name = <-asked
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}

func TestWatchSaysWhyItCannot(t *testing.T) {
	if err := Watch(t.Context(), filepath.Join(t.TempDir(), "none"), Teller{}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// The files are root's, and the agent is not root: what they would have said libvirt is asked for at once.
func TestLibvirtIsAskedWhereItsFilesMayNotBeRead(t *testing.T) {
	folder := t.TempDir()
	if err := os.Chmod(filepath.Dir(folder), 0o755); err != nil {
		t.Fatal(err)
	}
	rewrite(t, folder, "before.xml")
	texts, changed := make(chan File, 100), make(chan string, 100)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		// The thread reads files as nobody from here on. It ends with this goroutine, which keeps it for itself.
		runtime.LockOSThread()
		if err := unix.Setfsuid(65534); err != nil {
			ended <- err
			return
		}
		ended <- Watch(ctx, folder, Teller{
			Wrote: func(file File) { texts <- file }, Changed: func(name string) { changed <- name },
			Ask: func(name string) string { return "<domain>" + name + "</domain>" },
		})
	}()
	next := func() (file File) {
		select {
		case file = <-texts:
		case <-time.After(time.Minute):
			t.Fatal("nothing is told")
		}
		return file
	}
	if first := next(); first != (File{Name: "before", Text: "<domain>before</domain>", Found: true}) {
		t.Errorf("what is there is told as %+v", first)
	}
	rewrite(t, folder, "web.xml")
	for next() != (File{Name: "web", Text: "<domain>web</domain>"}) {
	}
	for name := ""; name != "web"; {
		name = <-changed
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}
