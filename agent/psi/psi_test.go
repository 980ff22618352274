package psi

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const text = "some avg10=12.50 avg60=1.00 avg300=0.10 total=123\nfull avg10=0.25 avg60=0.00 avg300=0.00 total=4\n"

func write(t *testing.T, folder, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRead(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "cpu", text)
	if got, err := Read(filepath.Join(folder, "cpu")); err != nil || *got != (Pressure{SomeAvg10: 12.5, FullAvg10: 0.25}) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := Read(filepath.Join(folder, "missing")); got != nil || err != nil {
		t.Errorf("without the file: %v, %v", got, err)
	}
	for _, wrong := range []string{"some", "some avg10=x\n"} {
		write(t, folder, "wrong", wrong)
		if got, err := Read(filepath.Join(folder, "wrong")); err == nil {
			t.Errorf("%q: %v", wrong, got)
		}
	}
}

// A group tells everything or nothing: a figure that is missing must not read as 0.
func TestOfGroup(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"cpu.pressure", "memory.pressure"} {
		write(t, folder, name, text)
	}
	if got, err := OfGroup(folder); got != nil || err != nil {
		t.Errorf("a group without pressure on I/O: %v, %v", got, err)
	}
	write(t, folder, "io.pressure", "some avg10=3.00 avg60=0 avg300=0 total=1\nfull avg10=2.00 avg60=0 avg300=0 total=1\n")
	want := &All{CPU: Pressure{12.5, 0.25}, Memory: Pressure{12.5, 0.25}, IO: Pressure{3, 2}}
	if got, err := OfGroup(folder); err != nil || !cmp.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	write(t, folder, "io.pressure", "garbage\n")
	if got, err := OfGroup(folder); err == nil {
		t.Errorf("garbage: %v", got)
	}
}

func TestMount(t *testing.T) {
	const (
		v1      = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
		unified = "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:4 - cgroup2 cgroup2 rw\n"
		v2      = "30 23 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
		part    = "30 23 0:26 /system.slice /sys/fs/cgroup ro,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	)
	for text, want := range map[string]string{
		"": "", v1: "", v1 + unified: "/sys/fs/cgroup/unified", v2: "/sys/fs/cgroup", part: "", "x - cgroup2 y\n": "",
	} {
		if got := Mount(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestGuestGroup(t *testing.T) {
	const scope = `/machine.slice/machine-qemu\x2d3\x2dweb\x2d1.scope`
	for text, want := range map[string]string{
		"":                                    "",
		"0::" + scope + "/libvirt/emulator\n": scope,
		"0::" + scope + "\n":                  scope,
		"9:name=systemd:" + scope + "\n8:pids:/\n0::" + scope + "\n":         scope,
		"9:name=systemd:" + scope + "\n4:memory:" + scope + "\n0::/\n":       "",
		"0::/machine/qemu-3-web-1.libvirt-qemu/libvirt/emulator\n":           "/machine/qemu-3-web-1.libvirt-qemu",
		"0::/customers/qemu-3-web.libvirt-qemu/libvirt/emulator\n":           "/customers/qemu-3-web.libvirt-qemu",
		"0::/system.slice/libvirtd.service\n":                                "",
		"0::/\n":                                                             "",
		`0::/../machine.slice/machine-qemu\x2d3\x2dweb.scope/libvirt` + "\n": "",
	} {
		if got := GuestGroup(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
