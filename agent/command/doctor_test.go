package command

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/agent/hypervisor"
	"berth/agent/tasks"
)

func TestTheDoctorLooksAtPools(t *testing.T) {
	found := func(string) (string, error) { return "/usr/bin/qemu-img", nil }
	missing := func(string) (string, error) { return "", errors.New("not in the path") }
	read := func(info hypervisor.HostInfo, find func(string) (string, error)) string {
		var lines []string
		for _, f := range examineStorage(info, find) {
			lines = append(lines, strings.Join([]string{f.check, string(f.verdict), f.result, f.next}, "|"))
		}
		return strings.Join(lines, "\n")
	}
	pools := []hypervisor.Pool{{Name: "a", Active: true}, {Name: "b"}, {Name: "c", Active: true}}
	const sleeping = "storage pool|warn|b is not active|virsh pool-start b\n"
	for _, c := range []struct {
		what string
		got  string
		want string
	}{
		{"no pools", read(hypervisor.HostInfo{}, missing), ""},
		{"pools", read(hypervisor.HostInfo{Pools: pools}, found), sleeping + "storage pools|ok|a, c|"},
		{
			"no qemu-img", read(hypervisor.HostInfo{Pools: pools}, missing),
			sleeping + "storage pools|ok|a, c|\n" +
				"qemu-img|warn|not found: libvirt makes no qcow2 volumes without it|install qemu-utils (Debian) or qemu-img",
		},
		{
			"a listing that fails", read(
				hypervisor.HostInfo{Errors: []hypervisor.ReadingError{{Reading: "storage_pools", Err: errors.New("it hangs")}}}, found,
			),
			"storage_pools|warn|it hangs|the node takes no VM that needs it",
		},
	} {
		if c.got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.what, c.got, c.want)
		}
	}
}

// A pool that the cluster calls shared, and that this host has for itself, is told of where the host is looked at. So are locks that do not
// reach it.
func TestTheDoctorTellsOfPoolsThatAreCalledShared(t *testing.T) {
	file := filepath.Join(t.TempDir(), "shared-pools.json")
	pools := []hypervisor.Pool{{Name: "alone"}, {Name: "deaf"}, {Name: "fine"}, {Name: "local"}}
	read := func() string { return told(examineShared(pools, tasks.NewSharedPools(file))...) }
	if got := read(); got != "" {
		t.Errorf("before anything was tried: %s", got)
	}
	const seen = `{"alone":{"at":"2026-11-24T12:00:00Z"},"deaf":{"at":"2026-11-24T12:00:00Z","found":true},` +
		`"fine":{"at":"2026-11-24T12:00:00Z","found":true,"held":true},"gone":{"at":"2026-11-24T12:00:00Z"}}`
	if err := os.WriteFile(file, []byte(seen), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "shared pool alone|FAIL|it is called shared, and at 2026-11-24 12:00:00 UTC this host did not see what another one had " +
		"just made there|mount the same storage here as elsewhere, or declare the pool anew with --scope local: 'berth pool show' says who " +
		"sees what\n" +
		"shared pool deaf|warn|this host sees the files of others, and at 2026-11-24 12:00:00 UTC not their locks: two QEMUs could write " +
		"to one disk|mount it with locks (NFS: without nolock), or set lock_manager in /etc/libvirt/qemu.conf\n" +
		"shared pool fine|ok|this host saw the files and the locks of another one at 2026-11-24 12:00:00 UTC|"
	if got := read(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := read(); !strings.HasPrefix(got, "shared pools|warn|read "+file) {
		t.Errorf("of a file that is damaged: %s", got)
	}
}
