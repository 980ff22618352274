// Package guestlog reads what libvirtd has written down of how a guest has ended.
package guestlog

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// DefaultDir is where libvirt keeps the logs of its guests.
const DefaultDir = "/var/log/libvirt/qemu"

// logTail is how much of a guest's log is read: the command line of its process, and what it has said since.
const logTail = 1 << 20

// Logs are the logs of one host's guests. They are root's, as libvirt makes them, and the agent is not root: what they said when it began,
// root has noted for it. See Note.
type Logs struct {
	folder string

	mu    sync.Mutex
	noted map[string]bool // UUIDs of guests that had left then
}

// At are the logs in a folder, with what was noted of them.
func At(folder, note string) *Logs { return &Logs{folder: folder, noted: noted(note, time.Now())} }

// Left tells whether a guest went to another node at its end. libvirtd writes down how its process was started and why it has ended. It
// says "migrated" only when the target has confirmed that it has the guest; one that ran on ends for another reason.
func (l *Logs) Left(uuid, name string) bool {
	text, err := tail(filepath.Join(l.folder, filepath.Base(name)+".log"))
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.noted[uuid]
	}
	last, left := endOf(text)
	return last == uuid && left
}

// Heard says that something was heard of a guest: what was noted of it before is old.
func (l *Logs) Heard(uuid string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.noted, uuid)
}

// Missed says that something may have become of any guest, and was not heard.
func (l *Logs) Missed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noted = nil
}

func tail(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	if info.Size() > logTail {
		if _, err := file.Seek(-logTail, io.SeekEnd); err != nil {
			return "", err
		}
	}
	text, err := io.ReadAll(io.LimitReader(file, logTail))
	return string(text), err
}

// endOf reads a guest's log: whose its last process was, and whether that has ended because it was migrated.
func endOf(log string) (uuid string, left bool) {
	for line := range strings.Lines(log) {
		stamp, what, _ := strings.Cut(strings.TrimSpace(line), ": ")
		option, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case isStamp(stamp) && strings.HasPrefix(what, "starting up"):
			uuid, left = "", false
		case isStamp(stamp) && strings.HasPrefix(what, "shutting down"):
			left = what == "shutting down, reason=migrated"
		case option == "-uuid" && uuid == "":
			uuid, _, _ = strings.Cut(value, " ")
		}
	}
	return uuid, left && uuid != ""
}

// isStamp tells a time that libvirtd has written from what a guest's process says: 2026-11-22 15:51:41.300+0000.
func isStamp(text string) bool {
	const like = "2006-01-02 15:04:05.000+0000"
	return len(text) == len(like) && text[10] == ' ' && strings.HasSuffix(text, "+0000")
}
