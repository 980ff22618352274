package storage

import (
	"strings"
	"testing"

	"berth/integration/lab"
	"berth/shared/units"
)

// An image that says of itself that some of it is elsewhere, or that does not fit, is refused before it takes any room.
func TestImagesThatCannotBeTrustedAreRefused(t *testing.T) {
	s := begin(t)
	create := []string{"qemu-img", "create", "-q", "-f", "qcow2"}
	qcow2 := func(file string, argv ...string) string { return s.operatorMakes(file, append(create, argv...)...) }

	_, err := s.lab.Operator.Exec(s.Context(), "cp", lab.DiskImage, "/var/tmp/base.qcow2")
	s.must(err)
	backed := qcow2("backed.qcow2", "-b", "/var/tmp/base.qcow2", "-F", "qcow2")
	// QEMU takes the size last, so this one is put together by hand.
	_, err = s.lab.Operator.Exec(s.Context(), append(create, "-o", "data_file=/var/tmp/elsewhere.raw", "/var/tmp/split.qcow2", "16M")...)
	s.must(err)
	_, err = s.lab.Operator.Exec(s.Context(), append(create, "/var/tmp/wide.qcow2", "64T")...)
	s.must(err)
	_, err = s.lab.Operator.Exec(s.Context(), append(create, "/var/tmp/small.qcow2", "1M")...)
	s.must(err)
	text := s.file("text.qcow2", strings.Repeat("this is no disk\n", 5000))

	load := func(file string, flags ...string) []string {
		return append([]string{"image", "import", file, "--name", "odd", "--pool", "east-rack"}, flags...)
	}
	// The same once more is no other image.
	s.does("image", "import", lab.DiskImage, "--name", bootImage, "--pool", "east-rack")
	s.refuses([]refusal{
		{"a backing file", load(backed), 1, []string{"backing file", "qemu-img convert"}},
		{"an external data file", load("/var/tmp/split.qcow2"), 1, []string{"data file"}},
		{"a larger disk than the pool can ever hold", load("/var/tmp/wide.qcow2"), 1, []string{"east-rack", "64 TiB"}},
		{"no qcow2", load(text), 1, []string{"qcow2"}},
		{"a disk that looks like another format", load(lab.DiskImage, "--format", "raw"), 1, []string{"qcow2"}},
		{"no such file", load("/var/tmp/nothing.qcow2"), 1, []string{"nothing.qcow2"}},
		{"a pool that does not exist", []string{"image", "import", lab.DiskImage, "--name", "odd", "--pool", "ghost"}, 4, []string{`"ghost"`}},
		{"a name twice", []string{"image", "import", "/var/tmp/small.qcow2", "--name", bootImage, "--pool", "east-rack"}, 1, []string{bootImage}},
	})
	// More than a pool has: a raw file of zeros takes no room here, and all of its size there.
	big := "/var/tmp/big.raw"
	_, err = s.lab.Operator.Exec(s.Context(), "truncate", "-s", sized(int64(localRoom+64*units.MiB)), big)
	s.must(err)
	s.refuses([]refusal{
		{
			"larger than the pool",
			[]string{"image", "import", big, "--name", "odd", "--pool", "east-own", "--format", "raw"},
			1,
			[]string{"east-own"},
		},
	})
	if listed := s.does("image", "list", "-o", "name"); strings.TrimSpace(listed) != "image/"+bootImage {
		t.Errorf("after nothing but refusals the images are %q", listed)
	}
	// Nor does anything of them stay where the coordinator kept them meanwhile.
	s.spoolIsEmpty()
}

// A local pool gets an image on each of its nodes, and gives all of it back.
func TestAnImageOfALocalPoolIsOnEachNode(t *testing.T) {
	s := begin(t)
	s.does("image", "import", lab.DiskImage, "--name", "near", "--pool", "east-own")
	for _, h := range s.lab.Hosts[:2] {
		if got := s.volumes(h); !strings.Contains(strings.Join(got, " "), "local/berth-") {
			t.Errorf("%s has %q, want the image in its pool", h.Name, got)
		}
	}
	// A thin copy of it is made where the VM starts.
	s.boots("web", "--image", "near", "--pool", "east-own")
	if info := s.info(s.host("web"), "local", s.root("web").GetVolume()); info.Backing == "" {
		t.Errorf("the disk is %+v, want a thin copy", info)
	}
	s.berth(1, []string{"image", "delete", "near", "--yes"}, "web-root")
	s.must(s.remove(s.Context(), "web"))
	s.does("image", "delete", "near", "--yes")
	s.must(s.nothingLeft(s.Context()))
	s.spoolIsEmpty()
}

// spoolIsEmpty checks that no coordinator keeps a file of an image any longer than its import.
func (s *site) spoolIsEmpty() {
	s.Helper()
	for _, c := range s.lab.Coordinators {
		found, err := c.Exec(
			s.Context(), "find", "/var/lib/berth", "-type", "f", "-size", "+2M", "-not", "-name", "*.db", "-not", "-path", "*/raft/*",
		)
		s.must(err)
		if strings.TrimSpace(found) != "" {
			s.Errorf("%s still has %s", c.Name, found)
		}
	}
}
