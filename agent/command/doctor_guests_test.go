package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/fake"
	"berth/shared/domxml"
)

// told are findings as they stand in the table.
func told(findings ...finding) string {
	var lines []string
	for _, f := range findings {
		lines = append(lines, strings.Join([]string{f.check, string(f.verdict), f.result, f.next}, "|"))
	}
	return strings.Join(lines, "\n")
}

// What keeps a guest on its host is asked libvirt, and what may cost its writes.
func TestTheDoctorTellsOfGuestsThatCannotMove(t *testing.T) {
	domain := hypervisor.Domain{
		Name: "web1", Autostart: true, Managed: true,
		Devices: []domxml.Device{{Kind: domxml.DiskDevice, Key: "vda"}, {Kind: domxml.DiskDevice, Key: "vdb", Unsafe: true}},
		Bindings: []domxml.Binding{
			{Kind: domxml.MediaBinding, What: "cdrom", Name: "sda", Source: domxml.Source{Path: "/srv/x.iso"}},
			{Kind: domxml.JobBinding, What: "backup"},
		},
	}
	const want = "guest web1|warn|libvirt starts it when this host boots, even if it runs elsewhere by then|virsh autostart --disable web1\n" +
		"guest web1|warn|moves only to hosts that have the same file: media cdrom sda (/srv/x.iso)|berth vm media eject web1\n" +
		"guest web1|warn|cannot move while it runs: job backup|" +
		"'berth vm show' says what lets it go; a drain leaves it here\n" +
		"guest web1|warn|disk vdb has cache mode unsafe: what the guest has synced is lost with the host's power|" +
		"virsh edit web1: cache='none', then stop and start it"
	if got := told(examineGuest(&domain)...); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := told(examineGuest(&hypervisor.Domain{Name: "db1"})...); got != "" {
		t.Errorf("of one that has nothing: %s", got)
	}
}

func TestTheDoctorLooksForALockManager(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "etc/libvirt/qemu.conf")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                             "disk locks|warn|QEMU's own locks alone",
		"# lock_manager = \"lockd\"\n": "disk locks|warn|QEMU's own locks alone",
		"user = \"root\"\nlock_manager=\"lockd\"": "disk locks|ok|libvirt's lock manager lockd",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := told(examineLocks(root)); !strings.HasPrefix(got, want) {
			t.Errorf("of %q: %s", text, got)
		}
	}
	if got := told(examineLocks(t.TempDir())); !strings.HasPrefix(got, "disk locks|warn|QEMU's own") {
		t.Errorf("without a file: %s", got)
	}
}

func TestTheDoctorFindsGuestsThatLibvirtForgot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const uuid = "11111111-2222-4333-8444-555555555555"
		h := fake.NewWire().Host("a")
		read := func() string {
			return told(examineGuests(t.Context(), h)...)
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
