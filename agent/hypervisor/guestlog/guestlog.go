// Package guestlog reads what libvirtd has written down of how a guest has ended.
package guestlog

import (
	"io"
	"os"
	"path/filepath"
	"strings"
)

// DefaultDir is where libvirt keeps the logs of its guests.
const DefaultDir = "/var/log/libvirt/qemu"

// logTail is how much of a guest's log is read: the command line of its process, and what it has said since.
const logTail = 1 << 20

// Left tells whether the guest went to another node at its end, by its log in a directory. libvirtd writes there how its process was
// started and why it has ended. It says "migrated" only when the target has confirmed that it has the guest; one that ran on ends for
// another reason.
func Left(directory, uuid, name string) bool {
	file, err := os.Open(filepath.Join(directory, filepath.Base(name)+".log"))
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil && info.Size() > logTail {
		_, err = file.Seek(-logTail, io.SeekEnd)
		if err != nil {
			return false
		}
	}
	text, err := io.ReadAll(io.LimitReader(file, logTail))
	return err == nil && leftBy(string(text), uuid)
}

// leftBy reads a guest's log: its last process was the guest's, and has ended because it was migrated.
func leftBy(log, uuid string) bool {
	is, left := false, false
	for line := range strings.Lines(log) {
		stamp, what, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case isStamp(stamp) && strings.HasPrefix(what, "starting up"):
			is, left = false, false
		case isStamp(stamp) && strings.HasPrefix(what, "shutting down"):
			left = what == "shutting down, reason=migrated"
		case strings.HasPrefix(strings.TrimSpace(line), "-uuid "+uuid):
			is = true
		}
	}
	return is && left
}

// isStamp tells a time that libvirtd has written from what a guest's process says: 2026-11-22 15:51:41.300+0000.
func isStamp(text string) bool {
	const like = "2006-01-02 15:04:05.000+0000"
	return len(text) == len(like) && text[10] == ' ' && strings.HasSuffix(text, "+0000")
}
