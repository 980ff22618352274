package volumes

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const userData = "#cloud-config\npackages: [nginx]\n"

// isoinfo and blkid say what the image is, as kernel and cloud-init read it in a guest: by its Rock Ridge names.
func TestImageAsOthersReadIt(t *testing.T) {
	isoinfo, err := exec.LookPath("isoinfo")
	if err != nil {
		t.Fatalf("%v: run 'make deps', which installs genisoimage", err)
	}
	image := filepath.Join(t.TempDir(), "seed.iso")
	large := userData + strings.Repeat("# filler\n", 1000)
	if err := os.WriteFile(image, SeedImage("11111111-2222-4333-8444-555555555555", `we"b`, large), 0o600); err != nil {
		t.Fatal(err)
	}
	if blkid, err := exec.LookPath("blkid"); err == nil {
		out, err := exec.Command(blkid, "-p", "-o", "export", image).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "LABEL=CIDATA\n") || !strings.Contains(string(out), "TYPE=iso9660\n") {
			t.Errorf("blkid: %v\n%s", err, out)
		}
	}
	read := func(arguments ...string) string {
		t.Helper()
		var stderr bytes.Buffer
		command := exec.Command(isoinfo, append([]string{"-R", "-i", image}, arguments...)...)
		command.Stderr = &stderr
		out, err := command.Output()
		if err != nil {
			t.Fatalf("isoinfo %q: %v: %s", arguments, err, stderr.String())
		}
		return string(out)
	}
	if about := read("-d"); !strings.Contains(about, "Volume id: CIDATA\n") || !strings.Contains(
		about, "Rock Ridge signatures version 1 found",
	) {
		t.Errorf("isoinfo: %s", about)
	}
	files := map[string]string{
		"/user-data": large,
		"/meta-data": "instance-id: \"11111111-2222-4333-8444-555555555555\"\nlocal-hostname: \"we\\\"b\"\n",
	}
	for name, want := range files {
		if got := read("-x", name); got != want {
			t.Errorf("%s: %d bytes: %.80q", name, len(got), got)
		}
	}
	listed := strings.Fields(read("-f"))
	slices.Sort(listed)
	if want := slices.Sorted(maps.Keys(files)); !slices.Equal(listed, want) {
		t.Errorf("it has %q, want %q", listed, want)
	}
}

func TestImageIsWholeSectorsAndAlwaysTheSame(t *testing.T) {
	for _, length := range []int{0, 1, sector - 1, sector, sector + 1, 64 << 10} {
		data := strings.Repeat("x", length)
		image := SeedImage("id", "name", data)
		want := (atFiles + 1 + (length+sector-1)/sector) * sector
		if len(image) != want {
			t.Errorf("%d bytes of user data: %d, want %d", length, len(image), want)
		}
		if length > 0 && !bytes.HasPrefix(image[(atFiles+1)*sector:], []byte(data)) {
			t.Errorf("%d bytes of user data are not where they belong", length)
		}
		if !bytes.Equal(image, SeedImage("id", "name", data)) {
			t.Error("another image of the same")
		}
	}
}
