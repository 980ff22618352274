package processes

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"berth/agent/hypervisor"
)

const guestUUID = "5e2f5d0a-3b51-4c8e-9d27-5d8f8a3f0001"

// host is a made /proc and /sys/fs/cgroup.
func host(t *testing.T, processes map[int][]string, scopes map[string][]int) Seen {
	t.Helper()
	s := Seen{Proc: t.TempDir(), Cgroups: t.TempDir()}
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for pid, args := range processes {
		text := ""
		if len(args) > 0 {
			text = strings.Join(args, "\x00") + "\x00"
		}
		write(filepath.Join(s.Proc, strconv.Itoa(pid), "cmdline"), text)
	}
	write(filepath.Join(s.Proc, "self", "cmdline"), "qemu-system-x86_64\x00-uuid\x00nobody\x00")
	for name, pids := range scopes {
		var lines strings.Builder
		for _, pid := range pids {
			lines.WriteString(strconv.Itoa(pid) + "\n")
		}
		write(filepath.Join(s.Cgroups, "machine.slice", name, "cgroup.procs"), "")
		write(filepath.Join(s.Cgroups, "machine.slice", name, "libvirt", "emulator", "cgroup.procs"), lines.String())
	}
	return s
}

func TestProcessesOfGuests(t *testing.T) {
	const upper = "AAAAAAAA-2222-4333-8444-555555555555"
	s := host(t, map[int][]string{
		1: {"/sbin/init"}, 2: nil, // a kernel thread has no command line
		10: {"/usr/bin/qemu-system-x86_64", "-name", "guest=web-1,debug-threads=on", "-S", "-uuid", guestUUID, "-display", "none"},
		11: {"/usr/libexec/qemu-kvm", "-name", "old", "-smbios", "type=1,manufacturer=X,uuid=" + upper},
		12: {"grep", "--", "-uuid", guestUUID},
		13: {"/usr/bin/qemu-system-x86_64", "-name", "guest=no identity"},
		14: {"swtpm", "socket"},
	}, map[string][]int{
		`machine-qemu\x2d3\x2dweb\x2d1.scope`:  {10},
		`machine-qemu\x2d4\x2dgone.scope`:      {},
		`machine-qemu\x2d5\x2dleft.over.scope`: {14},
		`machine-lxc\x2d6\x2dother.scope`:      {14},
	})
	got, err := s.Processes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, func(a, b hypervisor.Process) int { return cmp.Compare(a.PID, b.PID) })
	want := []hypervisor.Process{
		{PID: 10, UUID: guestUUID, Name: "web-1"},
		{PID: 11, UUID: strings.ToLower(upper), Name: "old"},
		{PID: 14, Name: "left.over", Scope: `machine-qemu\x2d5\x2dleft.over.scope`},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// Where the processes of others are hidden an empty list would be a false proof.
func TestHiddenProcessesAreNoProof(t *testing.T) {
	s := host(t, map[int][]string{20: {"berth-agent"}}, nil)
	if got, err := s.Processes(t.Context()); !errors.Is(err, hypervisor.ErrUnavailable) || !strings.Contains(err.Error(), "hidepid") {
		t.Errorf("got %+v, %v", got, err)
	}
}
