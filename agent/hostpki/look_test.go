package hostpki

import (
	"os"
	"strings"
	"testing"
	"time"

	"berth/shared/pki"
)

// issued is what a host gets from a cluster's authorities. Where shared, there is one authority and one key, as an older tool made them.
func issued(t *testing.T, shared bool) Material {
	t.Helper()
	authorities, err := pki.NewHypervisors("c1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pairs := map[pki.Purpose]Pair{}
	for purpose, authority := range authorities {
		request, key, err := pki.NewRequest("hv1")
		if err != nil {
			t.Fatal(err)
		}
		certificate, err := authority.Sign(request, "hv1", []string{"hv1"}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		pairs[purpose] = Pair{CA: authority.CertificatePEM(), Certificate: certificate, Key: key}
	}
	if shared {
		pairs[pki.Data] = pairs[pki.Control]
	}
	return Material{Control: pairs[pki.Control], Data: pairs[pki.Data], Names: []string{"hv1"}}
}

func found(faults []Fault, part string) *Fault {
	for i := range faults {
		if strings.Contains(faults[i].Text, part) {
			return &faults[i]
		}
	}
	return nil
}

func TestWhatIsWrongIsNamedWithTheCommandThatMendsIt(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, h *Host)
		says  string
		next  string
		grave bool
	}{
		{"an older tool's files", func(t *testing.T, h *Host) {
			m := issued(t, true)
			for _, f := range files {
				h.put(t, f.path, string(f.data(&m)))
			}
		}, "server-key.pem is libvirt's key too", mend, true},
		{"one authority", func(t *testing.T, h *Host) {
			m := issued(t, true)
			h.put(t, ControlCA, string(m.Data.CA))
			h.put(t, DataCA, string(m.Data.CA))
		}, "is of an authority that libvirt trusts", mend, true},
		{"a key that others read", func(t *testing.T, h *Host) {
			if err := os.Chmod(h.path(ControlKey), 0o640); err != nil {
				t.Fatal(err)
			}
		}, "can be read by others than root", mend, true},
		{"no list", func(t *testing.T, h *Host) { h.put(t, h.ConfigPath(), "listen_tls = 1\n") }, "has no tls_allowed_dn_list", mend, false},
		{"an end that is near", func(_ *testing.T, h *Host) {
			h.Now = func() time.Time { return time.Now().Add(pki.HypervisorValidity - 24*time.Hour) }
		}, "servercert.pem ends on", renewAgain, false},
		{"an authority's end that is not far", func(_ *testing.T, h *Host) {
			h.Now = func() time.Time { return h.certificates(DataCA)[0].NotAfter.Add(-pki.AuthorityNotice + time.Hour) }
		}, DataCA + ": the authority ends on", "see 'berth status' on a coordinator; all that it has signed ends then", false},
		{"an end that was", func(_ *testing.T, h *Host) {
			h.Now = func() time.Time { return time.Now().Add(pki.HypervisorValidity + time.Hour) }
		}, "server-cert.pem ended on", renewAgain, true},
		{"a file that is missing", func(t *testing.T, h *Host) {
			if err := os.Remove(h.path(DataCA)); err != nil {
				t.Fatal(err)
			}
		}, DataCA + " is missing", mend, true},
		{"libvirt that trusts all", func(t *testing.T, h *Host) {
			h.put(t, h.ConfigPath(), "tls_no_verify_certificate = 1\ntls_allowed_dn_list = [\"CN=hv1\"]\n")
		}, "are not verified", "take tls_no_verify_certificate out", true},
		{"QEMU that trusts all", func(t *testing.T, h *Host) {
			h.put(t, "/etc/libvirt/qemu.conf", "migrate_tls_x509_verify = 0\n")
		}, "lets anybody send guests", "take it out, and restart libvirt", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHost(t)
			install(t, h, issued(t, false), false)
			if faults := h.Look(); len(faults) != 0 {
				t.Fatalf("a host that was just set up: %+v", faults)
			}
			c.spoil(t, h)
			faults := h.Look()
			if fault := found(faults, c.says); fault == nil || fault.Next != c.next || fault.Grave != c.grave {
				t.Errorf("want %q, %q, grave %t; found %+v", c.says, c.next, c.grave, faults)
			}
			if c.next != mend {
				return
			}
			install(t, h, issued(t, false), true)
			if faults := h.Look(); len(faults) != 0 {
				t.Errorf("after %s: %+v", mend, faults)
			}
		})
	}
	if fault := found(newHost(t).Look(), "have no certificates"); fault == nil || fault.Next != "berth-agent libvirt-tls setup" {
		t.Errorf("a bare host: %+v", fault)
	}
}
