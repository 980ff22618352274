package lab

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A guest whose agent answers has its file systems frozen while a snapshot is taken: what it had written is in the snapshot, whole, and it
// goes on writing afterwards.
func TestASnapshotFreezesAGuestThatHasAnAgent(t *testing.T) {
	l := raise(t, Options{Hosts: 1, Coordinators: 1})
	ctx, host, must := t.Context(), l.Hosts[0], l.doing(t)
	if err := l.MakeAgentGuest(); err != nil {
		t.Fatal(err)
	}
	disk := SharedDir + "/web.qcow2"
	const format = `truncate -s 16M "$0.raw" && mkfs.ext4 -q "$0.raw" && qemu-img convert -f raw -O qcow2 "$0.raw" "$0" && rm "$0.raw"`
	if said, err := host.Exec(ctx, "sh", "-c", format, disk); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	must(starting("web", "192M", "--initrd", AgentInitrd, "--disk", disk+",format=qcow2")...)
	err := await(ctx, "the guest's agent to answer", 2*time.Minute, func() (bool, error) {
		said, err := host.Virsh(ctx, "qemu-agent-command", "web", `{"execute":"guest-get-fsinfo"}`)
		return err == nil && strings.Contains(said, "/mnt"), err
	})
	if err != nil {
		t.Fatal(err)
	}
	written := func() int {
		t.Helper()
		var number int
		err := host.readConsole(ctx, "web", func(line string) bool {
			found := regexp.MustCompile(`^written (\d+)`).FindStringSubmatch(line)
			if found == nil {
				return false
			}
			number, _ = strconv.Atoi(found[1])
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		return number
	}
	before := written()
	t.Log(must("vm", "snapshot", "add", "web", "--name", "whole", "--freeze"))
	if listed := must("vm", "snapshot", "list", "web"); !strings.Contains(listed, "yes, frozen") {
		t.Errorf("listed are\n%s", listed)
	}
	status, err := host.Virsh(ctx, "qemu-agent-command", "web", `{"execute":"guest-fsfreeze-status"}`)
	if err != nil || !strings.Contains(status, "thawed") {
		t.Errorf("the guest's agent says %s, %v", status, err)
	}
	first := written()
	after := written()
	if after <= before || after <= first {
		t.Errorf("it wrote %d before, and %d and %d afterwards", before, first, after)
	}

	// What somebody else has frozen is left alone, and what waits for that is told beforehand.
	if said, err := host.Virsh(ctx, "domfsfreeze", "web"); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for _, order := range [][]string{
		{"vm", "stop", "web", "--dry-run"},
		{"vm", "snapshot", "add", "web", "--name", "barred", "--dry-run"},
		{"vm", "snapshot", "add", "web", "--name", "barred"},
		{"vm", "migrate", "web", "--best", "--dry-run"},
		{"vm", "stop", "web", "--grace", "5s"},
	} {
		result, err := l.CLI(ctx, order...)
		if err != nil || result.Code != 1 || !strings.Contains(result.Stdout+result.Stderr, "virsh domfsthaw web") {
			t.Errorf("berth %s: %v, exit code %d: %s%s", strings.Join(order, " "), err, result.Code, result.Stdout, result.Stderr)
		}
	}
	if status, err := host.Virsh(ctx, "qemu-agent-command", "web", `{"execute":"guest-fsfreeze-status"}`); err != nil ||
		!strings.Contains(status, "frozen") {
		t.Errorf("the guest's agent says %s, %v", status, err)
	}
	if said, err := host.Virsh(ctx, "domfsthaw", "web"); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}

	must("vm", "snapshot", "add", "web", "--name", "torn", "--no-freeze")

	// The journal of a file system that stands still is empty, and that of one that is written to is not.
	must("vm", "stop", "web", "--force")
	tags := snapshotsIn(t, host, disk)
	if len(tags) != 2 {
		t.Fatalf("the disk has the snapshots %v", tags)
	}
	if !journalEmpty(t, host, disk, tags[0]) {
		t.Error("the file system was not frozen when the snapshot with --freeze was taken")
	}
	if journalEmpty(t, host, disk, tags[1]) {
		t.Error("the file system was frozen for the snapshot with --no-freeze, or this test cannot tell")
	}
}

// journalEmpty tells whether the ext4 in a snapshot needs no recovery.
func journalEmpty(t *testing.T, host *Host, disk, tag string) bool {
	t.Helper()
	kept := filepath.Join(t.TempDir(), "kept.img")
	if said, err := host.Exec(t.Context(), "qemu-img", "convert", "-l", "snapshot.name="+tag, "-O", "raw", disk, kept); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	raw, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	const superblock, magic, incompatible, recovery = 1024, 0x38, 0x60, 4
	if raw[superblock+magic] != 0x53 || raw[superblock+magic+1] != 0xef {
		t.Fatal("the snapshot has no file system")
	}
	return raw[superblock+incompatible]&recovery == 0
}

// snapshotsIn are the names of the snapshots inside an image, the oldest first.
func snapshotsIn(t *testing.T, host *Host, image string) (tags []string) {
	t.Helper()
	said, err := host.Exec(t.Context(), "qemu-img", "snapshot", "-l", image)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for line := range strings.Lines(said) {
		if words := strings.Fields(line); len(words) > 2 && words[0] != "ID" && words[0] != "Snapshot" {
			tags = append(tags, words[1])
		}
	}
	return tags
}
