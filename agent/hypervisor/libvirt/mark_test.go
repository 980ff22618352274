package libvirt

import (
	"errors"
	"strings"
	"testing"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
)

// libvirt's own test driver keeps metadata and definitions as the real one does; the suite has the rest.
func TestMarksOnTheTestDriver(t *testing.T) {
	h := open(t, "test:///default")
	await(t, "connected", func() bool { up, _ := h.Connected(); return up })
	id := domxml.Identity{UUID: "11111111-2222-4333-8444-555555555555", Name: "marked", Mark: domxml.Mark{Epoch: 1, Operation: "op1"}}
	xml, err := domxml.WithIdentity(`<domain type='test'><memory>1024</memory><os><type>hvm</type></os></domain>`, id)
	if err != nil {
		t.Fatal(err)
	}
	shows := func(state hypervisor.State, managed bool, epoch uint64) {
		t.Helper()
		for _, d := range domainsOf(t, h) {
			if d.UUID == id.UUID && (d.State != state || d.Managed != managed || d.Epoch != epoch) {
				t.Errorf("got %+v, want %s, %t, %d", d, state, managed, epoch)
			}
		}
		if d, err := h.Lookup(t.Context(), id.UUID); err != nil || d.State != state || d.Managed != managed || d.Epoch != epoch {
			t.Errorf("got %+v, %v, want %s, %t, %d", d, err, state, managed, epoch)
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(act(t.Context(), h.connection, &h.calls, func(conn *libvirtgo.Connect) error { // Define and Start of ours take KVM and QEMU only
		d, err := conn.DomainDefineXML(xml)
		if err != nil {
			return err
		}
		defer free(d)
		return d.Create()
	}))
	shows(hypervisor.Running, true, 1)
	do(h.Unmark(t.Context(), id.UUID, 1))
	shows(hypervisor.Running, false, 0)
	if err := h.Suspend(t.Context(), id.UUID, 1); !errors.Is(err, hypervisor.ErrOtherEpoch) {
		t.Errorf("suspend under an epoch that it has not: %v", err)
	}
	do(h.on(t.Context(), &h.calls, "autostart", id.UUID, nil, func(d *libvirtgo.Domain) error { return d.SetAutostart(true) }))
	autostarts(t, h, id.UUID, true)
	do(h.Mark(t.Context(), id.UUID, domxml.Mark{Epoch: 5, Operation: `<"o">`, Node: "n&1"}))
	shows(hypervisor.Running, true, 5)
	autostarts(t, h, id.UUID, false)
	do(h.Suspend(t.Context(), id.UUID, 5))
	do(h.Suspend(t.Context(), id.UUID, 5))
	shows(hypervisor.Paused, true, 5)
	text, err := h.Definition(t.Context(), id.UUID)
	if mark, ok := domxml.Metadata(text); err != nil || !ok || mark.Epoch != 5 || strings.Contains(text, " id=") {
		t.Errorf("its definition is %s, %v", text, err)
	}
	if err := h.Undefine(t.Context(), id.UUID, 5); !errors.Is(err, hypervisor.ErrInvalidState) {
		t.Errorf("undefine while it runs: %v", err)
	}
	do(h.Destroy(t.Context(), id.UUID, 5))
	shows(hypervisor.Shutoff, true, 5)
	// The driver knows of no firmware variables to keep.
	do(h.on(t.Context(), &h.calls, "undefine", id.UUID, nil, (*libvirtgo.Domain).Undefine))
}

func autostarts(t *testing.T, h *Hypervisor, uuid string, want bool) {
	t.Helper()
	for _, d := range domainsOf(t, h) {
		if d.UUID == uuid && d.Autostart != want {
			t.Errorf("the list says of its autostart %t", d.Autostart)
		}
	}
	if d, err := h.Lookup(t.Context(), uuid); err != nil || d.Autostart != want {
		t.Errorf("got autostart %t, %v", d.Autostart, err)
	}
}

func domainsOf(t *testing.T, h *Hypervisor) []hypervisor.Domain {
	t.Helper()
	domains, err := h.Domains(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return domains
}
