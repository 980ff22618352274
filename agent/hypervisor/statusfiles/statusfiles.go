// Package statusfiles tells of which guests libvirt has just written down another state. It keeps a file of each running guest, with all
// that it must know after a restart of the daemon: its disks, what they are copies of, its network interfaces. Snapshots and block jobs
// change these, and libvirt has no event for the first.
package statusfiles

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long a change is waited with: it is often written in several steps.
const settle = 50 * time.Millisecond

// Watch calls changed, in one goroutine, with the name of each guest whose file in the folder was written anew, until the context ends. The
// error says why it cannot.
func Watch(ctx context.Context, folder string, changed func(name string)) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	if err := watcher.Add(folder); err != nil {
		return err
	}
	due := map[string]bool{}
	timer := time.NewTimer(settle)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, open := <-watcher.Events:
			name, guest := strings.CutSuffix(filepath.Base(event.Name), ".xml")
			switch {
			case !open, event.Name == folder && event.Has(fsnotify.Remove|fsnotify.Rename):
				return errors.New("the watch has ended: the folder is another one, or gone")
			case guest && event.Has(fsnotify.Create|fsnotify.Write): // a new file takes the place of the old one
				if len(due) == 0 {
					timer.Reset(settle)
				}
				due[name] = true
			}
		case err := <-watcher.Errors:
			return err // what was missed shows when everything is read anew
		case <-timer.C:
			for name := range due {
				changed(name)
			}
			clear(due)
		}
	}
}
