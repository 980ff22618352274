package lab

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	berthv1 "berth/shared/gen/berth/v1"
)

// What whoever breaks out of a guest has: QEMU's account, and the keys that it reads. No libvirt takes them, nor a host that the list
// does not name. Migrations, which need both, work: their memory goes over TLS, because QEMU's configuration here forces it.
func TestQEMUsKeysOpenNoLibvirt(t *testing.T) {
	l := raise(t, Options{Hosts: 2, Coordinators: 1})
	ctx := t.Context()
	a, b := l.Hosts[0], l.Hosts[1]
	// no_verify: the caller's own look at the server is not what is asked here.
	knock := func(pkipath string) (string, error) {
		return a.Exec(ctx, "virsh", "-q", "-c", "qemu+tls://"+b.Name+"/system?no_verify=1&pkipath="+pkipath, "list", "--all")
	}
	path := func(name, ca, certificate, key string) string {
		folder := "/var/tmp/" + name
		script := fmt.Sprintf("mkdir -p %[1]s && cp %[2]s %[1]s/cacert.pem && cp %[3]s %[1]s/clientcert.pem && cp %[4]s %[1]s/clientkey.pem",
			folder, ca, certificate, key)
		if _, err := a.Exec(ctx, "sh", "-c", script); err != nil {
			t.Fatal(err)
		}
		return folder
	}
	libvirts := path("libvirts", "/etc/pki/CA/cacert.pem", "/etc/pki/libvirt/clientcert.pem", "/etc/pki/libvirt/private/clientkey.pem")
	qemus := path("qemus", "/etc/pki/qemu/ca-cert.pem", "/etc/pki/qemu/client-cert.pem", "/etc/pki/qemu/client-key.pem")
	if _, err := knock(libvirts); err != nil {
		t.Fatalf("libvirt's own keys do not open it, so the rest would show nothing: %v", err)
	}
	if out, err := knock(qemus); err == nil {
		t.Errorf("QEMU's keys open the other libvirt:\n%s", out)
	}
	// libvirt's keys are root's. An account of QEMU's kind does not read them.
	for _, file := range []string{"/etc/pki/libvirt/private/clientkey.pem", "/etc/pki/libvirt/private/serverkey.pem"} {
		if _, err := a.Exec(ctx, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cat", file); err == nil {
			t.Errorf("any account reads %s", file)
		}
	}
	if _, err := l.Berth(ctx, "vm", "start", "first", "--memory", "128M", "--node", a.Name); err != nil {
		t.Fatal(err)
	}
	for _, to := range []*Host{b, a, b} {
		if _, err := l.Berth(ctx, "vm", "migrate", "first", "--to", to.Name); err != nil {
			t.Fatal(err)
		}
	}

	// A node that has left is refused from the moment that the others have been told, with certificates that are still valid.
	if err := a.StopAgent(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Berth(ctx, "node", "delete", a.Name, "--yes"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Exec(ctx, "berth-agent", "libvirt-tls", "renew"); err != nil {
		t.Fatal(err)
	}
	if err := b.RestartLibvirtd(ctx); err != nil {
		t.Fatal(err)
	}
	if out, err := knock(libvirts); err == nil {
		t.Errorf("a node that was removed opens libvirt:\n%s", out)
	}
}

// A guest goes back and forth while the authorities of libvirt and QEMU are replaced: with both hosts of before, with one of each, and with
// both after it. In the end nobody is let in with what the old one has signed.
func TestGuestsMoveWhileLibvirtsAuthorityIsReplaced(t *testing.T) {
	l := raise(t, Options{Hosts: 2, Coordinators: 1})
	ctx := t.Context()
	do := l.doing(t)
	a, b := l.Hosts[0], l.Hosts[1]
	const kept = "/var/tmp/before"
	if _, err := a.Exec(ctx, "sh", "-c", "mkdir -p "+kept+" && cp /etc/pki/CA/cacert.pem /etc/pki/libvirt/clientcert.pem "+
		"/etc/pki/libvirt/private/clientkey.pem "+kept); err != nil {
		t.Fatal(err)
	}
	knock := func() error {
		_, err := a.Exec(ctx, "virsh", "-q", "-c", "qemu+tls://"+b.Name+"/system?no_verify=1&pkipath="+kept, "list", "--all")
		return err
	}
	if err := knock(); err != nil {
		t.Fatalf("the certificates of before are refused, so the rest would show nothing: %v", err)
	}
	do("vm", "start", "first", "--memory", "128M", "--node", a.Name)
	do("ca", "rotate", "libvirt")
	do("ca", "rotate", "qemu")
	// states are those of an authority, the oldest first.
	states := func(name string) string {
		var list berthv1.ListAuthoritiesResponse
		if err := l.Ask(ctx, &list, "ca", "list"); err != nil {
			t.Fatal(err)
		}
		var are []string
		for _, one := range list.GetAuthorities() {
			if one.GetName() == name {
				are = append(are, one.GetState())
			}
		}
		return strings.Join(are, " ")
	}
	var met []string
	for turn := 0; states("libvirt") != "retired issuing" || states("qemu") != "retired issuing"; turn++ {
		if turn > 20 {
			t.Fatalf("it does not end: libvirt %s, QEMU %s\n%s", states("libvirt"), states("qemu"), do("ca", "list"))
		}
		host := l.Hosts[turn%2]
		said, err := host.Exec(ctx, "berth-agent", "libvirt-tls", "renew")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(said, "next: restart") {
			if err := host.RestartLibvirtd(ctx); err != nil {
				t.Fatal(err)
			}
		}
		phase := states("libvirt")
		for _, to := range []*Host{b, a} {
			if _, err := l.Berth(ctx, "vm", "migrate", "first", "--to", to.Name); err != nil {
				t.Fatalf("%s, after %s has renewed: to %s: %v", phase, host.Name, to.Name, err)
			}
		}
		if !slices.Contains(met, phase) {
			met = append(met, phase)
		}
	}
	t.Logf("a guest moved in the phases %q", met)
	if !slices.Contains(met, "issuing announced") || !slices.Contains(met, "outgoing issuing") {
		t.Errorf("a guest has moved in the phases %q only", met)
	}
	for _, host := range l.Hosts {
		said, err := host.Exec(ctx, "berth-agent", "libvirt-tls", "renew") // trusts the new one alone
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(said, "next: restart") {
			if err := host.RestartLibvirtd(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, to := range []*Host{b, a} {
		do("vm", "migrate", "first", "--to", to.Name)
	}
	if knock() == nil {
		t.Error("libvirt lets in who has a certificate by the authority that is retired")
	}
}
