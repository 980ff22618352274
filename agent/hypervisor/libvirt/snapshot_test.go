package libvirt

import (
	"context"
	"errors"
	"slices"
	"testing"

	libvirtgo "libvirt.org/go/libvirt"
	"libvirt.org/go/libvirtxml"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/disksnapshot"
)

// A libvirtd that hung may come back when whoever asked has long left: then nothing is restored any more.
func TestNoRestoreBeginsLate(t *testing.T) {
	conn, err := libvirtgo.NewConnect("test:///default")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = conn.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	const late = "<domain type='test'><name>late</name><memory>1024</memory><os><type>hvm</type></os></domain>"
	err = restore(ctx, conn, &libvirtxml.Domain{}, late, "tag1")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if d, err := conn.LookupDomainByName("late"); err == nil {
		free(d)
		t.Error("it was defined all the same")
	}
}

func TestWhatIsUntouchedKeepsItsCause(t *testing.T) {
	err := explain(untouched(untouched(libvirtgo.Error{Code: libvirtgo.ERR_NO_MEMORY, Message: "m"})))
	const words = "nothing was changed: not enough memory on the node: free memory on the node, or choose another one; libvirt says: m"
	if !errors.Is(err, hypervisor.ErrUntouched) || !errors.Is(err, hypervisor.ErrNoMemory) || err.Error() != words {
		t.Errorf("got %v", err)
	}
}

// What a dead libvirtd or host has left is taken away when the agent connects, but neither what a call works with nor somebody's own domain
// that only has such a name.
func TestHelpersThatAreLeftAreTakenAway(t *testing.T) {
	h := open(t, "test:///default")
	await(t, "connected", func() bool { up, _ := h.Connected(); return up })
	var uuids []string
	define := func(name, uuid string) {
		t.Helper()
		if err := act(t.Context(), h.connection, &h.calls, func(conn *libvirtgo.Connect) error {
			d, err := conn.DomainDefineXML("<domain type='test'><name>" + name + "</name><uuid>" + uuid +
				"</uuid><memory>1024</memory><os><type>hvm</type></os></domain>")
			if err != nil {
				return err
			}
			defer free(d)
			return d.Create()
		}); err != nil {
			t.Fatal(err)
		}
		uuids = append(uuids, uuid)
	}
	for _, tag := range []string{"left", "used"} {
		helper, _, err := disksnapshot.HelperFor(hypervisor.DiskSnapshot{Tag: tag, Files: []string{"/srv/a"}})
		if err != nil {
			t.Fatal(err)
		}
		define(helper.Name, helper.UUID)
	}
	define("berth-snapshot-mine", "11111111-2222-4333-8444-555555555555")
	there := func() (all []bool) {
		for _, uuid := range uuids {
			err := act(t.Context(), h.connection, &h.calls, func(conn *libvirtgo.Connect) error {
				d, err := lookup(conn, uuid)
				if err == nil {
					free(d)
				}
				return err
			})
			all = append(all, err == nil)
		}
		return all
	}
	release := h.helpers.Use(uuids[1])
	if left, err := h.sweep(t.Context()); err != nil || left != 1 || !slices.Equal(there(), []bool{false, true, true}) {
		t.Errorf("left %d, %v, there are %v", left, err, there())
	}
	release()
	h.keepSweeping(t.Context())
	if !slices.Equal(there(), []bool{false, false, true}) {
		t.Errorf("there are %v", there())
	}
}
