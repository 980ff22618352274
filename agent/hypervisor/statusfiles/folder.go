package statusfiles

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// largest is how large a guest's file may be. They have some ten thousand bytes; one that is larger is asked libvirt for.
const largest = 4 << 20

// folder is where libvirt keeps the files. It is never held open: its end would not be told then.
type folder string

// follow is a source: it delivers the files that are there, unread, and reads each that is written at once.
func (f folder) follow(ctx context.Context, deliver func(item)) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	if err := watcher.Add(string(f)); err != nil {
		return err
	}
	entries, err := os.ReadDir(string(f))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if name, is := guestOf(entry.Name()); is {
			deliver(item{File: File{Name: name, Found: true}, is: there})
		}
	}
	deliver(item{is: listed})
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, open := <-watcher.Events:
			if !open || event.Name == string(f) && event.Has(fsnotify.Remove|fsnotify.Rename) {
				return errors.New("the watch has ended: the folder is another one, or gone")
			}
			if !event.Has(fsnotify.Create | fsnotify.Write | fsnotify.Remove) { // a new file takes the place of the old one
				continue
			}
			if name, is := guestOf(strings.TrimPrefix(event.Name, string(f)+"/")); is {
				if one := f.read(name); one.is != noFile {
					one.changed = true
					deliver(one)
				}
			}
		case err := <-watcher.Errors:
			return err // what was missed shows when everything is read anew
		}
	}
}

// guestOf is the guest whose file has this name.
func guestOf(file string) (name string, is bool) {
	name, is = strings.CutSuffix(file, ".xml")
	return name, is && name != "" && !strings.Contains(name, "/")
}

// found reads the file of a guest that was there when the watch began.
func (f folder) found(name string) item {
	one := f.read(name)
	one.Found = true
	return one
}

// read reads a guest's file.
func (f folder) read(name string) item {
	text, err := f.content(name + ".xml")
	switch {
	case errors.Is(err, errNoFile):
		return item{File: File{Name: name}, is: noFile}
	case errors.Is(err, os.ErrPermission), errors.Is(err, errTooLarge):
		return item{File: File{Name: name}, is: unreadable}
	case err != nil || text == "":
		return item{File: File{Name: name}, is: gone}
	default:
		return item{File: File{Name: name, Text: text}, is: read}
	}
}

var (
	errNoFile   = errors.New("it is no file: libvirt has not made it")
	errTooLarge = errors.New("the file is too large")
)

// content opens nothing but a file: to open a device or a pipe may do something, or wait for ever.
func (f folder) content(name string) (string, error) {
	path := filepath.Join(string(f), name)
	var is unix.Stat_t
	if err := unix.Lstat(path, &is); err != nil {
		return "", err
	}
	if is.Mode&unix.S_IFMT != unix.S_IFREG {
		return "", errNoFile
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ELOOP):
		return "", errNoFile
	case err != nil:
		return "", err
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	if err := unix.Fstat(fd, &is); err != nil {
		return "", err
	}
	switch {
	case is.Mode&unix.S_IFMT != unix.S_IFREG:
		return "", errNoFile
	case is.Size > largest:
		return "", errTooLarge
	}
	text, err := io.ReadAll(io.LimitReader(file, largest+1))
	if len(text) > largest {
		return "", errTooLarge
	}
	return string(text), err
}
