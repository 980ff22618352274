package storage

import (
	"fmt"
	"strings"
	"testing"

	"berth/shared/units"
)

// A disk that somebody has resized with virsh goes along as large as it is. One that has become smaller stays until somebody has decided
// what is right.
func TestADiskThatSomebodyHasResizedGoesAlongAsItIs(t *testing.T) {
	s := begin(t)
	before := s.boots("web", "--root-size", "40M", "--pool", "east-own")
	source := s.host("web")
	target := s.other(source)
	_, err := source.Virsh(s.Context(), "blockresize", "web", "vda", "56M")
	s.must(err)
	s.berth(1, []string{"disk", "grow", "web-root", "48M"}, "56")
	s.does("vm", "migrate", "web", "--to", target.Name, "--copy-storage")
	after := s.diskTick("web")
	if err := after.After(before); err != nil {
		t.Error(err)
	}
	root := s.root("web")
	if root.GetCapacityBytes() != 56<<20 || root.GetNode() != target.Name || after.Size != 56*units.MiB {
		t.Errorf("the disk is %v, and the guest says %+v", root, after)
	}
	if info := s.info(target, "local", root.GetVolume()); info.VirtualSize != 56<<20 {
		t.Errorf("the copy is %+v", info)
	}

	_, err = target.Virsh(s.Context(), "blockresize", "web", "vda", "48M")
	s.must(err)
	s.berth(1, []string{"vm", "migrate", "web", "--to", source.Name, "--copy-storage"}, "48 MiB", "56 MiB", "berth disk grow web-root")
	s.must(s.onlyOn(target, root.GetVolume()))
	s.comes("the VM shows both sizes", func() error {
		if root := s.root("web"); root.GetShrunkBytes() != 48<<20 || root.GetCapacityBytes() != 56<<20 {
			return fmt.Errorf("it shows %v", root)
		}
		return nil
	})
	s.berth(0, []string{"status"}, "VM web: somebody has made disk web-root smaller", "48 MiB", "56 MiB",
		"'berth disk grow web-root 58720256'")
	s.does("vm", "accept", "web")
	if said := s.does("status"); strings.Contains(said, "web-root") {
		t.Errorf("accepted, the status says\n%s", said)
	}
	if root := s.root("web"); root.GetShrunkBytes() != 0 || root.GetCapacityBytes() != 48<<20 {
		t.Errorf("accepted, it shows %v", root)
	}
	s.does("disk", "grow", "web-root", "60M")
	s.does("vm", "migrate", "web", "--to", source.Name, "--copy-storage")
	if moved := s.diskTick("web"); moved.Size != 60*units.MiB {
		t.Errorf("back where it was the guest says %+v", moved)
	}
	s.does("vm", "stop", "web", "--force")
	s.does("vm", "delete", "web", "--yes")
	s.must(s.nothingLeft(s.Context()))
}
