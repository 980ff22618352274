package command

import (
	"errors"
	"strings"
	"testing"

	"berth/agent/hypervisor"
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
