package guestlog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What libvirtd writes about a guest's end: only the last process counts, only of this guest, and only what libvirtd says itself.
func TestWhetherAGuestLeftByItsLog(t *testing.T) {
	const uuid = "9b47a552-03b9-4c53-9c7f-280195c1ad06"
	const other = "11111111-2222-4333-8444-555555555555"
	starts := func(uuid string) string {
		return "2026-11-22 15:51:07.101+0000: starting up libvirt version: 9.0.0, package: 9.0.0-4+deb12u2\n" +
			"LC_ALL=C \\\n/usr/bin/qemu-system-x86_64 \\\n-name guest=web,debug-threads=on \\\n-uuid " + uuid + " \\\n-msg timestamp=on\n"
	}
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
		if left := leftBy(tc.log, uuid); left != tc.left {
			t.Errorf("%s: left %t", name, left)
		}
	}
	directory := t.TempDir()
	log := strings.Repeat("x\n", logTail) + starts(uuid) + moves + ends("migrated")
	if err := os.WriteFile(filepath.Join(directory, "web.log"), []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	if !Left(directory, uuid, "web") || Left(directory, uuid, "db") || Left(directory, other, "web") {
		t.Error("the end of a long log is not read, or that of another guest is")
	}
}
