package storage

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"berth/integration/lab"
)

// Twenty VMs of one customer, asked for at once: none has started when the last one is placed, and yet each pod, each
// cluster and each host gets its share.
func TestTwentyVMsAtOnceSpreadEvenly(t *testing.T) {
	s := begin(t)
	const vms = 20
	var all errgroup.Group
	for i := range vms {
		all.Go(func() error {
			_, err := s.lab.Berth(s.Context(), "vm", "start", fmt.Sprintf("web%d", i), "--memory", "64M",
				"--vdc", "acme-home", "--offer", "spread", "--root-size", "1M")
			return err
		})
	}
	s.must(all.Wait())
	for host, names := range s.running() {
		if len(names) != vms/len(s.lab.Hosts) {
			t.Errorf("virsh shows on %s: %q, want %d", host, names, vms/len(s.lab.Hosts))
		}
	}
	// A volume is in a pool of the pod that its VM is in.
	for _, h := range s.lab.Hosts {
		for _, name := range s.running()[h.Name] {
			s.has(
				h, map[bool]string{true: "rack", false: "local"}[strings.HasSuffix(s.root(name).GetPool(), "-rack")], s.root(name).GetVolume(),
				true,
			)
		}
	}
	said := s.berth(0, []string{"customer", "spread", "acme"}, "20", "pods", "2 of 2", "clusters", "nodes", "4 of 4", "5")
	for _, secret := range []string{"node1", "east", "home"} {
		if strings.Contains(said, secret) {
			t.Errorf("the customer is told the name %q:\n%s", secret, said)
		}
	}

	// One that is stopped and started comes back to its host, wherever others of the account are.
	host := s.host("web7")
	s.does("vm", "stop", "web7", "--force")
	s.does("vm", "start", "web7")
	if again := s.host("web7"); again != host {
		t.Errorf("web7 ran on %s and was started again on %s", host.Name, again.Name)
	}
	// The one of the account that comes next goes where one is missing.
	s.does("vm", "stop", "web7", "--force")
	s.does("vm", "start", "late", "--memory", "64M", "--vdc", "acme-home", "--offer", "spread")
	if got := s.host("late"); got != host {
		t.Errorf("late went to %s, and %s has one VM less than the others: %v", got.Name, host.Name, s.running())
	}
	s.berth(0, []string{"decision", "show", "last"}, "1st of 2 clusters by user-dispersing", "9 of 19")
}

// An image that is in a pool of each pod lets disks that are copies of it go to both; each is a copy of the one that is near.
func TestDisksOfAnImageInTwoPodsSpread(t *testing.T) {
	s := begin(t)
	for _, pool := range []string{"east-rack", "west-rack"} {
		s.does("image", "import", lab.DiskImage, "--name", "both", "--pool", pool)
	}
	s.berth(0, []string{"image", "show", "both"}, "east-rack", "west-rack")
	var all errgroup.Group
	for i := range 4 {
		all.Go(func() error {
			_, err := s.lab.Berth(s.Context(), "vm", "start", fmt.Sprintf("web%d", i), "--memory", "64M",
				"--vdc", "acme-home", "--offer", "spread", "--image", "both")
			return err
		})
	}
	s.must(all.Wait())
	for i := range 4 {
		name := fmt.Sprintf("web%d", i)
		host, disk := s.host(name), s.root(name)
		side := map[string]string{"node1": "east", "node2": "east", "node3": "west", "node4": "west"}[host.Name]
		pool, of := "rack", "/racks/"+side+"/"
		if !strings.HasSuffix(disk.GetPool(), "-rack") {
			pool = "local"
		}
		if info := s.info(host, pool, disk.GetVolume()); !strings.Contains(info.Backing, of) {
			t.Errorf("%s runs on %s and its disk is a copy of %q, want one of %s", name, host.Name, info.Backing, of)
		}
	}
	for host, names := range s.running() {
		if len(names) != 1 {
			t.Errorf("virsh shows on %s: %q, want one", host, names)
		}
	}
}

// A pod or a cluster that is named binds, whatever else is emptier.
func TestANamedPlaceBinds(t *testing.T) {
	s := begin(t)
	west := []string{"node3", "node4"}
	for i, place := range [][]string{{"--pod", "pod-west"}, {"--cluster", "west"}, {"--pod", "pod-west"}} {
		name := fmt.Sprintf("web%d", i)
		s.does(append([]string{"vm", "start", name, "--memory", "64M", "--vdc", "acme-home", "--offer", "spread"}, place...)...)
		if host := s.host(name); !slices.Contains(west, host.Name) {
			t.Errorf("with %v it went to %s", place, host.Name)
		}
	}
	s.does("pod", "add", "pod-empty", "--zone", "home")
	s.refuses([]refusal{
		{
			"a pod without clusters",
			[]string{"vm", "start", "nowhere", "--memory", "64M", "--pod", "pod-empty"},
			1,
			[]string{"pod-empty", "no clusters"},
		},
		{"a pod that does not exist", []string{"vm", "start", "nowhere", "--memory", "64M", "--pod", "ghost"}, 1, []string{`"ghost"`}},
		{"a node that runs VMs", []string{"node", "set", s.host("web0").Name, "--cluster", "east"}, 1, []string{"web"}},
	})
}
