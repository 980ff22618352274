// Package statusfiles tells of which guests libvirt has just written down another state. It keeps a file of each running guest, with all
// that it must know after a restart of the daemon: its disks, what they are copies of, its network interfaces. Snapshots and block jobs
// change these, and libvirt has no event for the first.
package statusfiles

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long a change is waited with that libvirt is then asked about: it is often written in several steps.
const settle = 50 * time.Millisecond

// File is the file of a guest as it was read.
type File struct {
	Name  string // of the guest
	Text  string // empty: it is gone, and so is the guest
	Found bool   // it was there when the watch began
}

// Watch calls wrote, in one goroutine, with each guest's file that is in the folder and each that is written anew or taken away, and
// changed a little later, in another one, with the names of those that were written anew, until the context ends. So what a file says is
// read at once, however long libvirt takes to answer about the guests before. The error says why it cannot.
func Watch(ctx context.Context, folder string, wrote func(File), changed func(name string)) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	if err := watcher.Add(folder); err != nil {
		return err
	}
	there, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, one := range there {
		if file, read := fileAt(filepath.Join(folder, one.Name())); read {
			file.Found = true
			wrote(file)
		}
	}
	batches := make(chan map[string]bool)
	var asking sync.WaitGroup
	asking.Go(func() {
		for batch := range batches {
			for name := range batch {
				changed(name)
			}
		}
	})
	defer asking.Wait()
	defer close(batches)
	due := map[string]bool{}
	timer := time.NewTimer(settle)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, open := <-watcher.Events:
			if !open || event.Name == folder && event.Has(fsnotify.Remove|fsnotify.Rename) {
				return errors.New("the watch has ended: the folder is another one, or gone")
			}
			if !event.Has(fsnotify.Create | fsnotify.Write | fsnotify.Remove) { // a new file takes the place of the old one
				continue
			}
			file, read := fileAt(event.Name)
			switch {
			case !read && file.Name != "":
				wrote(file)
			case read:
				wrote(file)
				if len(due) == 0 {
					timer.Reset(settle)
				}
				due[file.Name] = true
			}
		case err := <-watcher.Errors:
			return err // what was missed shows when everything is read anew
		case <-timer.C:
			if len(due) == 0 {
				continue
			}
			select {
			case batches <- due:
				due = map[string]bool{}
			default: // libvirt is still being asked about those before
				timer.Reset(settle)
			}
		}
	}
}

// fileAt reads a guest's file. It is false for another file, which has no name, and for one whose guest has ended meanwhile.
func fileAt(path string) (File, bool) {
	name, guest := strings.CutSuffix(filepath.Base(path), ".xml")
	if !guest {
		return File{}, false
	}
	text, err := os.ReadFile(path)
	return File{Name: name, Text: string(text)}, err == nil && len(text) > 0
}
