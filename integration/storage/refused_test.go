package storage

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"berth/integration/lab"
)

// What cannot work is refused with the reason, or explained, and leaves no volume in any pool.
func TestWhatCannotWorkLeavesNothingBehind(t *testing.T) {
	s := begin(t)
	start := func(flags ...string) []string {
		return append([]string{"vm", "start", "odd", "--memory", "64M", "--vdc", "acme-home"}, flags...)
	}
	s.does("network", "add", "nowhere", "--source", "ghost-net")
	s.does("network", "add", "nobridge", "--source", "bridge:ghost0")
	s.does("nic", "add", "nowhere", "--network", "nowhere")
	s.does("nic", "add", "nobridge", "--network", "nobridge")
	s.refuses([]refusal{
		{"a volume larger than the pool", start("--root-size", "1G", "--pool", "east-own"), 2, []string{"storage", "east-own"}},
		{"a network that no node has", start("--nic", "nowhere"), 2, []string{"network", "ghost-net"}},
		{"a bridge that no node has", start("--nic", "nobridge"), 2, []string{"network", "ghost0"}},
		{"smaller than its image", start("--image", bootImage, "--root-size", "8M"), 1, []string{bootImage}},
		{"a pool that does not exist", start("--root-size", "8M", "--pool", "ghost"), 1, []string{`"ghost"`}},
		{
			"a planner that does not exist",
			[]string{"offer", "add", "odd", "--for", "vm", "--planner", "user-shuffling"},
			64,
			[]string{"user-shuffling", "user-dispersing", "first-fit"},
		},
		{"a planner for what is not placed", []string{"offer", "add", "odd", "--for", "disk", "--planner", "first-fit"}, 1, []string{"planner"}},
		{
			"another planner",
			[]string{"apply", "-f", s.file("planner.yaml", "format: berth/estate/v1\noffers:\n  - {name: spread, for: vm, planner: first-fit}\n")},
			1,
			[]string{"planner", "placed anew"},
		},
	})

	// QEMU does not start: the kernel is not there. The volume was made before, and is gone again.
	s.berth(1, start("--kernel", "/var/lib/lab/nothing", "--root-size", "8M", "--pool", "east-rack"), "nothing")
	s.must(s.nothingLeft(s.Context()))
	if listed := s.does("disk", "list", "-o", "name"); strings.TrimSpace(listed) != "" {
		t.Errorf("a VM that never started has left %q", listed)
	}
}

// A pool that a node has lost is said by name, and what is not in it goes on.
func TestAPoolThatVanished(t *testing.T) {
	s := begin(t)
	east := s.lab.Hosts[:2]
	s.boots("web", "--pool", "east-rack")
	s.does("vm", "stop", "web", "--force")
	for _, h := range east {
		_, err := h.Virsh(s.Context(), "pool-destroy", "rack")
		s.must(err)
		s.Cleanup(func() { s.revives(h, "rack") })
	}
	s.comes("Berth sees that the pool is gone", func() error {
		_, err := s.lab.Berth(s.Context(), "vm", "start", "web", "--dry-run")
		if err == nil {
			return errStillThere
		}
		return nil
	})
	s.berth(2, []string{"vm", "start", "web"}, "storage", "rack")
	s.berth(0, []string{"pool", "show", "east-rack"}, "node1", "node2")
	s.berth(1, []string{"image", "import", lab.DiskImage, "--name", "late", "--pool", "east-rack"}, "east-rack")
	// The other pod is not touched by that.
	s.does("vm", "start", "other", "--memory", "64M", "--vdc", "acme-home", "--root-size", "1M")
	if pool := s.root("other").GetPool(); pool == "east-rack" {
		t.Errorf("a volume was made in %s", pool)
	}
	for _, h := range east {
		s.revives(h, "rack")
	}
	s.comes("the VM starts again", func() error {
		_, err := s.lab.Berth(s.Context(), "vm", "start", "web")
		return err
	})
}

var errStillThere = errors.New("the VM would start")

// revives starts a pool that was stopped.
func (s *site) revives(h *lab.Host, pool string) {
	s.Helper()
	listed, err := h.Virsh(context.Background(), "pool-list", "--name")
	if err == nil && !slices.Contains(strings.Fields(listed), pool) {
		_, err = h.Virsh(context.Background(), "pool-start", pool)
	}
	if err != nil {
		s.Error(err)
	}
}
