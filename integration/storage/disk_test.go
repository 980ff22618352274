package storage

import (
	"fmt"
	"strings"
	"testing"

	"berth/integration/lab"
	"berth/shared/units"
)

// One VM's whole life with a disk: it boots from a thin copy, finds its seed, grows while it runs, is moved without a copy,
// can be talked to, and takes its volumes with it.
func TestAGuestLivesOnAThinCopy(t *testing.T) {
	s := begin(t)
	seed := s.file("user-data", "#cloud-config\nhostname: web\n")
	tick := s.boots("web", "--root-size", "48M", "--pool", "east-rack", "--user-data", seed)
	if tick.Size != 48*units.MiB || !tick.Intact || !strings.EqualFold(tick.Label, "CIDATA") {
		t.Errorf("the guest says of its disks: %+v", tick)
	}
	root, host := s.root("web"), s.host("web")
	if root.GetPool() != "east-rack" || root.GetNode() != "" || root.GetImage() != bootImage {
		t.Errorf("the disk is %v, want a copy of %s in east-rack", root, bootImage)
	}
	info := s.info(host, "rack", root.GetVolume())
	if info.Format != "qcow2" || info.VirtualSize != 48<<20 || !strings.Contains(info.Backing, "/racks/east/berth-") {
		t.Errorf("QEMU says of the volume: %+v", info)
	}
	s.berth(0, []string{"vm", "show", "web"}, "web-root", "east-rack", bootImage)
	s.berth(0, []string{"pool", "list"}, "east-rack", "west-own", "shared", "local")
	s.berth(0, []string{"pool", "show", "east-rack"}, "rack", "node1", "node2")

	s.berth(1, []string{"disk", "grow", "web-root", "40M"}, "48")
	s.does("disk", "grow", "web-root", "64M")
	s.comes("the guest sees the larger disk", func() error {
		if tick, err := s.lab.ReadDiskTick(s.Context(), "web"); err != nil || tick.Size != 64*units.MiB {
			return fmt.Errorf("the guest says %+v: %w", tick, err)
		}
		return nil
	})

	// What both hosts see is not copied.
	target := s.other(host)
	s.does("vm", "migrate", "web", "--to", target.Name)
	moved := s.diskTick("web")
	if err := moved.After(tick); err != nil {
		t.Error(err)
	}
	if s.host("web") != target || moved.Size != 64*units.MiB {
		t.Errorf("after the move it runs on %s and says %+v", s.host("web").Name, moved)
	}
	s.talks("web")

	s.does("vm", "stop", "web", "--force")
	s.does("vm", "delete", "web", "--yes")
	s.must(s.nothingLeft(s.Context()))
}

// talks attaches to a VM's console, sees it tick, and leaves. Another one is refused meanwhile.
func (s *site) talks(name string) {
	s.Helper()
	console := s.starts("vm", "console", name)
	console.shows("tick ")
	second := s.starts("vm", "console", name)
	second.ends(1, "--force")
	console.types("\x1d")
	console.ends(0)
}

// What is to be kept stays as a disk of no VM, and the next VM that gets it has its content.
func TestADiskThatIsKeptOutlivesItsVM(t *testing.T) {
	s := begin(t)
	first := s.boots("web", "--pool", "east-rack", "--keep-root")
	volume := s.root("web").GetVolume()
	s.does("vm", "stop", "web", "--force")
	s.does("vm", "delete", "web", "--yes")
	s.has(s.lab.Hosts[0], "rack", volume, true)
	s.does("vm", "start", "next", "--memory", "128M", "--vdc", "acme-home", "--attach", "web-root")
	if again := s.diskTick("next"); again.Still != first.Still {
		t.Errorf("the next VM reads %s from the disk, the first one wrote %s", again.Still, first.Still)
	}
	s.berth(1, []string{"disk", "delete", "web-root", "--yes"}, "next")
	s.does("vm", "stop", "next", "--force")
	s.does("vm", "delete", "next", "--yes", "--keep-disks")
	s.has(s.lab.Hosts[0], "rack", volume, true)
	s.does("disk", "delete", "web-root", "--yes")
	s.must(s.nothingLeft(s.Context()))
}

// A disk of a host's own stays there, and goes along only when somebody says so: whole, while the guest writes on it.
func TestALocalDiskGoesAlong(t *testing.T) {
	s := begin(t)
	before := s.boots("web", "--root-size", "40M", "--pool", "east-own")
	life := s.tick("web")
	source := s.host("web")
	target := s.other(source)
	root := s.root("web")
	if root.GetNode() != source.Name {
		t.Errorf("the disk is %v, and the VM runs on %s", root, source.Name)
	}
	sum := s.checksum(source, "web")
	s.berth(1, []string{"vm", "migrate", "web", "--to", target.Name}, "east-own", source.Name, "--copy-storage")
	s.must(s.onlyOn(source, root.GetVolume()))

	said := s.does("vm", "migrate", "web", "--to", target.Name, "--copy-storage")
	after := s.diskTick("web")
	if err := after.After(before); err != nil {
		t.Error(err)
	}
	if err := s.tick("web").After(life); err != nil {
		t.Error(err)
	}
	if s.host("web") != target {
		t.Errorf("it runs on %s after:\n%s", s.host("web").Name, said)
	}
	if got := s.checksum(target, "web"); got != sum {
		t.Errorf("the disk has the checksum %s on the target, it had %s on the source", got, sum)
	}
	moved := s.root("web")
	if moved.GetNode() != target.Name {
		t.Errorf("the disk is %v after the move", moved)
	}
	if info := s.info(target, "local", moved.GetVolume()); info.Backing != "" {
		t.Errorf("the copy is %+v, want one that needs no other file", info)
	}
	s.must(s.onlyOn(target, moved.GetVolume()))

	// One that is called off leaves the disk where it was, and nothing on the other side.
	copying := s.starts("vm", "migrate", "web", "--to", source.Name, "--copy-storage", "--bandwidth", "1M")
	s.comes("the copy is under way", func() error {
		for _, volume := range s.volumes(source) {
			if strings.HasPrefix(volume, "local/") {
				return nil
			}
		}
		return fmt.Errorf("%s has no volume of it", source.Name)
	})
	s.does("operation", "cancel", s.vm("web").GetOperationId())
	copying.ends(1)
	s.comes("the copy is gone", func() error { return s.onlyOn(target, moved.GetVolume()) })
	if err := s.diskTick("web").After(after); err != nil {
		t.Error(err)
	}
	s.does("vm", "stop", "web", "--force")
	s.does("vm", "delete", "web", "--yes")
	s.must(s.nothingLeft(s.Context()))
}

// onlyOn tells whether a volume is in the pool of this host and in that of no other one.
func (s *site) onlyOn(host *lab.Host, volume string) error {
	for _, h := range s.lab.Hosts {
		volumes, err := h.Volumes(s.Context())
		if err != nil {
			return err
		}
		local := 0
		for _, name := range volumes {
			if strings.HasPrefix(name, "local/") {
				local++
			}
		}
		if want := map[bool]int{true: 1}[h == host]; local != want {
			return fmt.Errorf("%s has %d volumes in its own pool, want %d for %s: %q", h.Name, local, want, volume, volumes)
		}
	}
	return nil
}
