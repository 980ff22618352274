package seed

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const userData = "#cloud-config\npackages: [nginx]\n"

// The kernel and blkid say what the image is, as they do in a guest.
func TestImageAsTheKernelReadsIt(t *testing.T) {
	image := filepath.Join(t.TempDir(), "seed.iso")
	large := userData + strings.Repeat("# filler\n", 1000)
	if err := os.WriteFile(image, Image("11111111-2222-4333-8444-555555555555", `we"b`, large), 0o600); err != nil {
		t.Fatal(err)
	}
	if blkid, err := exec.LookPath("blkid"); err == nil {
		out, err := exec.Command(blkid, "-p", "-o", "export", image).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "LABEL=CIDATA\n") || !strings.Contains(string(out), "TYPE=iso9660\n") {
			t.Errorf("blkid: %v\n%s", err, out)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can mount it")
	}
	folder := t.TempDir()
	if out, err := exec.Command("mount", "-o", "loop,ro", image, folder).CombinedOutput(); err != nil {
		t.Skipf("it cannot be mounted here: %v: %s", err, out)
	}
	defer func() {
		if out, err := exec.Command("umount", folder).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}()
	for name, want := range map[string]string{
		"user-data": large,
		"meta-data": "instance-id: \"11111111-2222-4333-8444-555555555555\"\nlocal-hostname: \"we\\\"b\"\n",
	} {
		if got, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(got) != want {
			t.Errorf("%s: %v, %d bytes: %.80q", name, err, len(got), got)
		}
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 2 {
		t.Errorf("%v: %v", entries, err)
	}
}

func TestImageIsWholeSectorsAndAlwaysTheSame(t *testing.T) {
	for _, length := range []int{0, 1, sector - 1, sector, sector + 1, 64 << 10} {
		data := strings.Repeat("x", length)
		image := Image("id", "name", data)
		want := (atFiles + 1 + (length+sector-1)/sector) * sector
		if len(image) != want {
			t.Errorf("%d bytes of user data: %d, want %d", length, len(image), want)
		}
		if length > 0 && !bytes.HasPrefix(image[(atFiles+1)*sector:], []byte(data)) {
			t.Errorf("%d bytes of user data are not where they belong", length)
		}
		if !bytes.Equal(image, Image("id", "name", data)) {
			t.Error("another image of the same")
		}
	}
}
