package guestlog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What libvirtd writes about a guest's end: only the last process counts, only of this guest, and only what libvirtd says itself.
func TestWhetherAGuestLeftByItsLog(t *testing.T) {
	const uuid = "9b47a552-03b9-4c53-9c7f-280195c1ad06"
	const other = "11111111-2222-4333-8444-555555555555"
	const moves = "2026-11-22 15:51:40.900+0000: initiating migration\n"
	ends := func(why string) string { return "2026-11-22 15:51:41.300+0000: shutting down, reason=" + why + "\n" }
	for name, tc := range map[string]struct {
		log  string
		left bool
	}{
		"it has left":                    {starts(uuid) + moves + ends("migrated"), true},
		"it ran on and crashed":          {starts(uuid) + moves + ends("crashed"), false},
		"it ran on and was destroyed":    {starts(uuid) + moves + ends("destroyed"), false},
		"it runs":                        {starts(uuid) + moves, false},
		"it came back and ended":         {starts(uuid) + moves + ends("migrated") + starts(uuid) + ends("shutdown"), false},
		"it came back and runs":          {starts(uuid) + moves + ends("migrated") + starts(uuid), false},
		"it came back and left again":    {starts(uuid) + ends("shutdown") + starts(uuid) + moves + ends("migrated"), true},
		"another guest of its name left": {starts(other) + moves + ends("migrated"), false},
		"its guest says so":              {starts(uuid) + moves + "2026: shutting down, reason=migrated\n", false},
		"its beginning is lost":          {moves + ends("migrated"), false},
		"nothing":                        {"", false},
	} {
		if last, left := endOf(tc.log); (left && last == uuid) != tc.left {
			t.Errorf("%s: left %t", name, left)
		}
	}
	directory := t.TempDir()
	log := strings.Repeat("x\n", logTail) + starts(uuid) + moves + ends("migrated")
	if err := os.WriteFile(filepath.Join(directory, "web.log"), []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	logs := At(directory, "")
	if !logs.Left(uuid, "web") || logs.Left(uuid, "db") || logs.Left(other, "web") {
		t.Error("the end of a long log is not read, or that of another guest is")
	}
}

func starts(uuid string) string {
	return "2026-11-22 15:51:07.101+0000: starting up libvirt version: 9.0.0, package: 9.0.0-4+deb12u2\n" +
		"LC_ALL=C \\\n/usr/bin/qemu-system-x86_64 \\\n-name guest=web,debug-threads=on \\\n-uuid " + uuid + " \\\n-msg timestamp=on\n"
}

// The logs are root's. What root has noted of them counts until something is heard of the guest, or may have been.
func TestWhatRootHasNotedOfTheLogsCountsForAWhile(t *testing.T) {
	const gone, stayed = "9b47a552-03b9-4c53-9c7f-280195c1ad06", "11111111-2222-4333-8444-555555555555"
	const later = "22222222-2222-4333-8444-555555555555"
	const why = "2026-11-22 15:51:41.300+0000: shutting down, reason="
	folder := t.TempDir()
	path := filepath.Join(t.TempDir(), "departed.json")
	for name, text := range map[string]string{
		"gone.log":   starts(gone) + why + "migrated\n",
		"stayed.log": starts(stayed) + why + "destroyed\n",
		"later.log":  starts(later) + why + "migrated\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := filepath.Join(t.TempDir(), "root's")
	if err := os.Symlink(elsewhere, path); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if err := Note(folder, path, now); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(elsewhere); err == nil {
		t.Error("it has followed a link")
	}
	unreadable := filepath.Join(folder, "none") // as the logs are for who is not root
	logs := At(unreadable, path)
	if !logs.Left(gone, "gone") || logs.Left(stayed, "stayed") || !logs.Left(later, "later") {
		t.Error("what was noted does not count")
	}
	if logs.Heard(gone); logs.Left(gone, "gone") || !logs.Left(later, "later") {
		t.Error("it counts although something was heard since, or another guest's does not")
	}
	if logs.Missed(); logs.Left(later, "later") {
		t.Error("it counts although something may have been missed")
	}
	if old := noted(path, now.Add(noteFresh+time.Second)); len(old) > 0 {
		t.Errorf("an old note says %v", old)
	}
}
