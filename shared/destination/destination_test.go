package destination

import (
	"errors"
	"testing"
)

func TestANodeIsReachedByItsNameOrWhereItCallsFrom(t *testing.T) {
	const from = "::ffff:10.0.0.2"
	for _, c := range []struct {
		name, reported, want string
		believed             bool
	}{
		{"hv2", "qemu+tls://hv2/system", "qemu+tls://hv2/system", true},
		{"hv2", "qemu+tls://HV2:16515/system", "qemu+tls://HV2:16515/system", true},
		{"hv2", "qemu+tls://hv2.example.com/system", "qemu+tls://hv2.example.com/system", true},
		{"hv2.example.com", "qemu+tls://hv2.elsewhere.com/system", "qemu+tls://hv2.example.com/system", false},
		{"hv2.example.com", "qemu+tls://hv2/system", "qemu+tls://hv2/system", true},
		{"hv2", "qemu+tls://10.0.0.2/system", "qemu+tls://10.0.0.2/system", true},
		{"hv2", "", "qemu+tls://hv2/system", false},
		{"hv2", "qemu+tls://hv3/system", "qemu+tls://hv2/system", false},
		{"hv2", "qemu+tls://hv21/system", "qemu+tls://hv2/system", false},
		{"hv2", "qemu+tls://10.0.0.3/system", "qemu+tls://hv2/system", false},
		{"hv2", "qemu+ext:///system?command=/tmp/x", "qemu+tls://hv2/system", false},
		{"hv2", "qemu+ext://hv2/system?command=/tmp/x", "qemu+tls://hv2/system", false},
		{"hv2", "qemu+tcp://hv2/system", "qemu+tls://hv2/system", false},
	} {
		if uri, believed := URI(c.name, c.reported, from); uri != c.want || believed != c.believed {
			t.Errorf("%s says %q: %s, believed %t, want %s, %t", c.name, c.reported, uri, believed, c.want, c.believed)
		}
	}
	if uri, _ := URI("hv2", "qemu+tls://10.0.0.2/system", ""); uri != "qemu+tls://hv2/system" {
		t.Errorf("nobody knows from where it calls, and it is %s", uri)
	}
}

func TestOnlyLibvirtOfAnotherMachineIsADestination(t *testing.T) {
	for _, uri := range []string{
		"qemu+tls://hv2/system", "qemu+tls://hv2.example.com:17000/system", "qemu+tls://10.0.0.2/system", "qemu+tls://[fd00::2]/system",
		"qemu+tls://[fd00::2]:17000/system", "qemu+tls://rack_7-hv2/system",
	} {
		if err := Check(uri, "10.9.0.2"); err != nil {
			t.Errorf("%s: %v", uri, err)
		}
	}
	for _, uri := range []string{
		"", "qemu:///system", "qemu+ext:///system?command=/bin/sh", "qemu+tcp://hv2/system", "qemu+ssh://hv2/system",
		"qemu+libssh2://hv2/system", "qemu+unix:///system?socket=/x", "test:///default", "QEMU+TLS://hv2/system", "qemu+tls:///system",
		"qemu+tls://hv2/session", "qemu+tls://hv2/system/", "qemu+tls://hv2/system?no_verify=1", "qemu+tls://hv2/system#x",
		"qemu+tls://hv2/system?", "qemu+tls://root@hv2/system", "qemu+tls://hv2:0/system", "qemu+tls://hv2:99999/system",
		"qemu+tls://hv2:/system", "qemu+tls://127.0.0.1/system", "qemu+tls://[::1]/system", "qemu+tls://0.0.0.0/system",
		"qemu+tls://localhost/system", "qemu+tls://-x/system", "qemu+tls://h;reboot/system", "qemu+tls://h%20x/system", "qemu+tls://hv2\n/system",
		"qemu+tls://[fe80::1%25eth0]/system", "qemu+tls://255.255.255.255/system", "qemu+tls://224.0.0.1/system",
	} {
		if err := Check(uri, ""); !errors.Is(err, ErrAddress) {
			t.Errorf("%q: %v", uri, err)
		}
	}
	for _, data := range []string{"hv2", "127.0.0.1", "::", "239.1.1.1", "10.0.0.2:80", "10.0.0.2/x", "fe80::1%eth0"} {
		if err := Check("qemu+tls://hv2/system", data); !errors.Is(err, ErrAddress) {
			t.Errorf("memory to %q: %v", data, err)
		}
	}
}
