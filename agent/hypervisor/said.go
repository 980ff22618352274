package hypervisor

import (
	"errors"
	"fmt"
)

// ErrFailed is what the hypervisor's own words alone tell the cause of.
var ErrFailed = errors.New("the hypervisor could not do it")

// steps say what can be done about a cause that a hypervisor gave no more than its own words for. ErrUnsafe says it itself.
var steps = map[error]string{
	ErrFailed:       "`journalctl -u libvirtd` and the guest's log in /var/log/libvirt/qemu on the node have more",
	ErrUnavailable:  "see `systemctl status libvirtd` on the node",
	ErrNotFound:     "see with `virsh list --all` what the node has",
	ErrExists:       "see with `virsh list --all` and `virsh vol-list POOL` on the node what has the name or UUID",
	ErrInvalidXML:   "change the field of the VM that libvirt names",
	ErrNoMemory:     "free memory on the node, or choose another one",
	ErrBusy:         "try again when that job has ended",
	ErrInvalidState: "see with `virsh list --all` on the node which state it is in",
	ErrAborted:      "begin again if it is still wanted",
	ErrUnsupported:  "choose another node, or leave out what libvirt names",
	ErrDenied:       "`berth-agent doctor` on the node says which right the agent lacks",
	ErrNoPool:       "see `virsh pool-list --all` on the node: define the pool, and start it",
	ErrNoVolume:     "see `virsh vol-list POOL` on the node",
	ErrNoSpace:      "free space there, or choose another pool",
	ErrInUse:        "shut down what uses it",
}

// Said is an error that a hypervisor tells of in its own words, which no user is to read alone. Ours are first: the cause, one of
// the errors of this package, and what can be done. Where a text is cut, it is theirs.
func Said(cause error, words string) error { return SaidOf(cause, "", words) }

// SaidOf is Said with what the error is about, if that is not empty.
func SaidOf(cause error, about, words string) error {
	if about != "" {
		about = ": " + about
	}
	if step := steps[cause]; step != "" {
		about += ": " + step
	}
	return fmt.Errorf("%w%s; libvirt says: %s", cause, about, words)
}
