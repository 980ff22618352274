package hypervisor

import (
	"errors"
	"testing"
)

func TestOurWordsComeFirst(t *testing.T) {
	for _, c := range []struct {
		err   error
		cause error
		want  string
	}{
		{
			Said(ErrNoMemory, "cannot set up guest memory"), ErrNoMemory,
			"not enough memory on the node: free memory on the node, or choose another one; libvirt says: cannot set up guest memory",
		},
		{
			Said(ErrUnsafe, "Unsafe migration"), ErrUnsafe,
			"the hypervisor would risk what is on a disk: make it a volume of a shared pool, or shut the guest down; " +
				"libvirt says: Unsafe migration",
		},
		{
			SaidOf(ErrUnavailable, "qemu:///system", "Failed to connect socket"), ErrUnavailable,
			"hypervisor is not reachable: qemu:///system: see `systemctl status libvirtd` on the node; " +
				"libvirt says: Failed to connect socket",
		},
	} {
		if !errors.Is(c.err, c.cause) || c.err.Error() != c.want {
			t.Errorf("got %q, want %q", c.err, c.want)
		}
	}
}
