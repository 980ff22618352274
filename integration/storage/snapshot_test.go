package storage

import (
	"strings"
	"testing"

	"berth/integration/lab"
	berthv1 "berth/shared/gen/berth/v1"
)

// A guest writes a number that grows to its disk all the time. What a snapshot has is what was there when it was taken, wherever the guest
// has run since: nothing that was written before it is missing, and nothing that was written after it is there.
func TestSnapshotsHaveWhatWasThere(t *testing.T) {
	s := begin(t)
	s.boots("web", "--pool", "east-rack")
	between := func(what string, do func()) (least, most lab.DiskTick) {
		t.Helper()
		least = s.diskTick("web")
		do()
		most = s.diskTick("web")
		if err := most.After(least); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		return least, most
	}
	least, most := between("while a snapshot is taken", func() {
		t.Log(s.does("vm", "snapshot", "add", "web", "--name", "first", "--description", "before the move"))
	})
	s.berth(1, []string{"vm", "snapshot", "add", "web", "--name", "first"}, "has a snapshot \"first\" already")
	s.berth(1, []string{"vm", "snapshot", "add", "web", "--name", "frozen", "--freeze"}, "could not be frozen")
	s.berth(1, []string{"vm", "snapshot", "revert", "web", "--name", "first", "--yes"}, "berth vm stop web")
	listed := s.does("vm", "snapshot", "list", "web")
	if !strings.Contains(listed, "as after a power cut") || strings.Contains(listed, "frozen") {
		t.Errorf("listed are\n%s", listed)
	}

	source := s.host("web")
	s.does("vm", "migrate", "web", "--to", s.other(source).Name)
	between("while another one is taken and removed on the other host", func() {
		s.does("vm", "snapshot", "add", "web", "--name", "second")
		s.does("vm", "snapshot", "delete", "web", "--name", "second", "--yes")
	})
	s.does("vm", "stop", "web", "--force")
	s.does("vm", "snapshot", "add", "web", "--name", "off")
	last := s.startsAgain("web")
	s.does("vm", "stop", "web", "--force")

	s.does("vm", "snapshot", "revert", "web", "--name", "first", "--dry-run")
	t.Log(s.does("vm", "snapshot", "revert", "web", "--name", "first", "--yes"))
	if reverted := s.startsAgain("web"); reverted.Found < least.Number || reverted.Found > most.Number+1 || reverted.Found >= last.Found {
		t.Errorf("the snapshot was taken between %d and %d, and has %d; before it had %d", least.Number, most.Number, reverted.Found, last.Found)
	}
	s.does("vm", "stop", "web", "--force")
	s.does("vm", "snapshot", "revert", "web", "--name", "off", "--yes")
	if reverted := s.startsAgain("web"); reverted.Found != last.Found {
		t.Errorf("the snapshot of what was off has %d, and it was %d", reverted.Found, last.Found)
	}
	s.does("vm", "snapshot", "delete", "web", "--name", "off", "--yes")
	s.does("vm", "stop", "web", "--force")
	s.does("vm", "snapshot", "delete", "web", "--name", "first", "--yes")
	if left := s.vm("web").GetSnapshots(); len(left) > 0 || s.vm("web").GetDrift() != nil {
		t.Errorf("left are %v, and of changes beside Berth %v", left, s.vm("web").GetDrift())
	}
	s.sound(s.root("web"))
	s.does("vm", "delete", "web", "--yes")
	s.must(s.nothingLeft(s.Context()))
}

// startsAgain starts a VM again, and is what its guest says of its disk.
func (s *site) startsAgain(name string) lab.DiskTick {
	s.Helper()
	s.does("vm", "start", name)
	return s.diskTick(name)
}

// sound checks that a volume is whole and has no snapshot.
func (s *site) sound(root *berthv1.VMDisk) {
	s.Helper()
	host := s.lab.Hosts[0]
	path, err := host.Virsh(s.Context(), "vol-path", "--pool", "rack", root.GetVolume())
	s.must(err)
	said, err := host.Exec(s.Context(), "qemu-img", "check", "-f", "qcow2", strings.TrimSpace(path))
	if err != nil || !strings.Contains(said, "No errors were found") {
		s.Errorf("qemu-img check of %s: %v\n%s", root.GetVolume(), err, said)
	}
	said, err = host.Exec(s.Context(), "qemu-img", "snapshot", "-l", strings.TrimSpace(path))
	if err != nil || strings.TrimSpace(said) != "" {
		s.Errorf("it has %q, %v", said, err)
	}
}
