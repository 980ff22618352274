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

// Teller is told what becomes of the files.
type Teller struct {
	// Wrote is called, in one goroutine, with each guest's file that is in the folder and each that is written anew or taken away.
	Wrote func(File)
	// Ask is what libvirt itself says of a guest whose file this process may not read; empty: nothing. It is root's, and an agent is not
	// root. One guest after the other is asked about, without waiting, and what is said is passed to Wrote.
	Ask func(name string) string
	// Changed is called a little later, in another goroutine, with the names of those that were written anew.
	Changed func(name string)
}

// Watch tells of the files in the folder until the context ends. What a file says is read at once, however long libvirt takes to answer
// about the guests before. The error says why it cannot.
func Watch(ctx context.Context, folder string, tell Teller) error {
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
	ctx, end := context.WithCancel(ctx)
	hidden := questions{wake: make(chan struct{}, 1), answers: make(chan File)}
	batches := make(chan map[string]bool)
	var asking sync.WaitGroup
	defer asking.Wait()
	asking.Go(func() { hidden.ask(ctx, tell.Ask) })
	asking.Go(func() {
		for batch := range batches {
			for name := range batch {
				tell.Changed(name)
			}
		}
	})
	defer end()
	defer close(batches)
	for _, one := range there {
		file, is := fileAt(filepath.Join(folder, one.Name()))
		file.Found = true
		switch is {
		case read:
			tell.Wrote(file)
		case unreadable:
			hidden.put(file)
		}
	}
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
			file, is := fileAt(event.Name)
			switch is {
			case gone, read:
				tell.Wrote(file)
			case unreadable:
				hidden.put(file)
			}
			if is == read || is == unreadable {
				if len(due) == 0 {
					timer.Reset(settle)
				}
				due[file.Name] = true
			}
		case file := <-hidden.answers:
			tell.Wrote(file)
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

// condition is what was found where a guest's file may be.
type condition int

const (
	noFile condition = iota // it is no guest's
	read
	unreadable
	gone // and so is its guest, or it is being written
)

// fileAt reads a guest's file.
func fileAt(path string) (File, condition) {
	name, guest := strings.CutSuffix(filepath.Base(path), ".xml")
	if !guest {
		return File{}, noFile
	}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrPermission):
		return File{Name: name}, unreadable
	case err != nil || len(text) == 0:
		return File{Name: name}, gone
	default:
		return File{Name: name, Text: string(text)}, read
	}
}

// questions are about the guests whose files may not be read: each at most once at a time, however often its file is written.
type questions struct {
	mu      sync.Mutex
	due     map[string]File
	wake    chan struct{}
	answers chan File
}

func (q *questions) put(about File) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.due == nil {
		q.due = map[string]File{}
	}
	q.due[about.Name] = about
	select {
	case q.wake <- struct{}{}:
	default: // it is awake, or will be
	}
}

// take is one of them.
func (q *questions) take() (File, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for name, about := range q.due {
		delete(q.due, name)
		return about, true
	}
	return File{}, false
}

// ask passes on what is answered, until the context ends.
func (q *questions) ask(ctx context.Context, answer func(name string) string) {
	for {
		about, is := q.take()
		if !is {
			select {
			case <-ctx.Done():
				return
			case <-q.wake:
				continue
			}
		}
		if about.Text = answer(about.Name); about.Text == "" {
			continue // it has ended meanwhile: that its file is gone is told too
		}
		select {
		case <-ctx.Done():
			return
		case q.answers <- about:
		}
	}
}
