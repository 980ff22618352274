package storage

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"berth/integration/lab"
)

// FAULTS.md, W9. The host that a guest leaves with its disk dies when the guest has switched over and nobody there has heard so. The disk
// on the other host may be the only one that has what the guest wrote last: here the first one comes back without its disks. It stays
// whatever a person decides about the guest, until somebody decides about the disks.
func TestTheLastCopyOfADiskStaysUntilTheOtherIsSeen(t *testing.T) {
	s := begin(t)
	before := s.boots("web", "--root-size", "40M", "--pool", "east-own")
	source := s.host("web")
	target := s.other(source)
	volume := s.root("web").GetVolume()
	s.Cleanup(func() {
		if err := s.revive(context.WithoutCancel(s.Context()), source); err != nil {
			s.Error(err)
		}
	})

	moving := s.starts("vm", "migrate", "web", "--to", target.Name, "--copy-storage", "--bandwidth", "16M")
	s.comes("its memory is being copied, so the disk is there", func() error {
		migration, err := source.Migration("web")
		if err == nil && (migration.Status != "active" || migration.Done() < 0.1) {
			err = fmt.Errorf("%.0f %% is copied, the source's QEMU says %q", 100*migration.Done(), migration.Status)
		}
		return err
	})
	s.must(s.lab.HoldAnswers(s.Context(), target, source))
	s.comes("the guest has switched over", func() error {
		state, err := target.Virsh(s.Context(), "domstate", "--reason", "web")
		if err == nil && !strings.Contains(state, "paused (user)") {
			err = fmt.Errorf("on %s it is %s", target.Name, strings.TrimSpace(state))
		}
		return err
	})
	s.must(source.PowerOff())
	s.must(s.lab.Release(s.Context()))
	s.comes(source.Name+" is silent", func() error {
		if text := s.does("node", "show", source.Name); !strings.Contains(text, "unreachable") {
			return fmt.Errorf("it is not:\n%s", text)
		}
		return nil
	})
	s.does("node", "fence", source.Name, "--confirmed-off", "--yes")
	moving.ends(1, "operation resolve")
	id := s.vm("web").GetOperationId()
	s.must(s.revive(s.Context(), source))
	s.berth(1, []string{"operation", "resolve", id, "--keep", "source"}, "does not run the copy that is to be kept", "--keep none")
	s.berth(1, []string{"operation", "resolve", id, "--keep", "none"}, "is paused there", "virsh destroy web")
	if _, err := target.Virsh(s.Context(), "destroy", "web"); err != nil {
		t.Fatal(err)
	}
	s.must(poll(s.Context(), waitLimit, func() error {
		_, err := s.lab.Berth(s.Context(), "operation", "resolve", id, "--keep", "none")
		return err
	}))
	left := "may be the last copy of its disks"
	if text := s.does("vm", "show", "web"); !strings.Contains(text, "whole copies of them on "+target.Name) {
		t.Errorf("it does not tell of the copies:\n%s", text)
	}
	s.berth(1, []string{"vm", "start", "web"}, "no such volume")
	s.berth(0, []string{"vm", "show", "web"}, left, "--keep target")
	s.berth(0, []string{"status"}, left)
	s.must(s.hasCopy(target))
	s.does("operation", "resolve", id, "--keep", "target")
	after := s.startsAgain("web")
	if after.Still != before.Still || !after.Intact || after.Found < before.Number {
		t.Errorf("the disk has %+v, and had %+v", after, before)
	}
	s.must(s.onlyOn(target, volume))
	s.does("vm", "stop", "web", "--force")
	s.does("vm", "delete", "web", "--yes")
	s.must(s.nothingLeft(s.Context()))
}

// hasCopy is an error where a host's own pool has no volume.
func (s *site) hasCopy(host *lab.Host) error {
	for _, volume := range s.volumes(host) {
		if strings.HasPrefix(volume, "local/") {
			return nil
		}
	}
	return fmt.Errorf("%s has no volume of it", host.Name)
}

// revive gives a host its power back, and waits until Berth has it again.
func (s *site) revive(ctx context.Context, host *lab.Host) error {
	if err := host.PowerOn(ctx); err != nil {
		return err
	}
	if host.Pid(lab.Libvirtd) == 0 {
		if err := host.StartLibvirtd(ctx); err != nil {
			return err
		}
	}
	if host.Pid(lab.Agent) == 0 {
		if err := host.StartAgent(ctx); err != nil {
			return err
		}
	}
	return s.lab.AwaitReady(ctx)
}
