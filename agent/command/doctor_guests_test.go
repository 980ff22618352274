package command

import (
	"strings"
	"testing"
	"testing/synctest"

	"berth/agent/hypervisor/fake"
)

func TestTheDoctorFindsGuestsThatLibvirtForgot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const uuid = "11111111-2222-4333-8444-555555555555"
		h := fake.NewWire().Host("a")
		read := func() string {
			f := examineGuests(t.Context(), h)
			return strings.Join([]string{f.check, string(f.verdict), f.result, f.next}, "|")
		}
		if err := h.Start(t.Context(), `<domain type="kvm"><name>web1</name><uuid>`+uuid+`</uuid><memory>65536</memory><vcpu>1</vcpu>`+
			`<os><type>hvm</type></os></domain>`); err != nil {
			t.Fatal(err)
		}
		if got, want := read(), "guests|ok|libvirt lists every guest that has a process|"; got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
		h.Forget(uuid)
		const want = "guests|FAIL|web1 (" + uuid + "): process 1207 runs it, libvirt does not list it|" +
			"shut the guest down from inside, or kill 1207"
		if got := read(); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	})
}
