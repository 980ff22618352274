package destination

import (
	"net/netip"
	"strings"
	"testing"
)

// A node writes where others send its guests, and root on the source opens that. What is taken names another machine's libvirt and nothing
// else, and is what the node on record is called, or where it calls from.
func FuzzURI(f *testing.F) {
	f.Add("hv2", "qemu+tls://hv2.example.com:17000/system", "10.0.0.2", "10.9.0.2")
	f.Add("hv2", "qemu+tls://[fd00::2]/system", "fd00::2", "")
	f.Add("hv2", "qemu+tls://10.0.0.2/system", "::ffff:10.0.0.2", "fd00::9")
	f.Add("hv2.example.com", "qemu+ext:///system?command=/bin/sh", "", "hv3")
	f.Fuzz(func(t *testing.T, name, reported, from, data string) {
		uri, believed := URI(name, reported, from)
		if believed {
			host := strings.ToLower(Host(name, reported, from))
			named := host == strings.ToLower(name) || strings.HasPrefix(strings.ToLower(name), host+".") ||
				strings.HasPrefix(host, strings.ToLower(name)+".")
			address, err := netip.ParseAddr(host)
			calls, _ := netip.ParseAddr(from)
			if err != nil && !named || err == nil && address.Unmap() != calls.Unmap() {
				t.Errorf("%q, which calls from %q, is sent guests at %q", name, from, uri)
			}
		}
		if Check(uri, "") == nil && (!strings.HasPrefix(uri, "qemu+tls://") || !strings.HasSuffix(uri, "/system") ||
			strings.ContainsAny(uri, "?#@%;&|$`'\"\\<>() \t\r\n\x00") || strings.Count(uri, "/") != 3) {
			t.Errorf("guests may be sent to %q", uri)
		}
		if believed && Check(uri, "") != nil {
			t.Errorf("%q is believed, and refused afterwards", uri)
		}
		if data != "" && CheckData(data) == nil {
			if address, err := netip.ParseAddr(data); err != nil || address.IsLoopback() || address.IsUnspecified() || address.IsMulticast() {
				t.Errorf("memory may be sent to %q", data)
			}
		}
	})
}
