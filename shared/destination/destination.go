// Package destination says at which addresses a guest's new node is reached, and judges them. What a node reports of itself is not
// enough: the source's libvirt, which is root there, opens the address, and some of libvirt's transports run a program.
package destination

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// ErrAddress says that a guest must not be sent to an address.
var ErrAddress = errors.New("not an address that a guest may be sent to")

const (
	scheme = "qemu+tls"
	path   = "/system"
	// longest is how long a host name may be (RFC 1035).
	longest = 253
)

// hostText matches host names. Underscores are no part of them, but of names of machines that people give.
var hostText = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`)

// URI is where the libvirt of a node is reached, by the name on record and what the node says of itself. The reported host counts only
// if it is that name, the same without its domain, or the address that the node's agent calls from. Else it is the name, and believed
// is false. A longer name is not believed: its domain may be anybody's.
func URI(name, reported, from string) (uri string, believed bool) {
	host, port, err := parse(reported)
	if err != nil || !same(name, host, from) {
		return build(name, ""), false
	}
	return build(host, port), true
}

// Host is the host of what URI gives.
func Host(name, reported, from string) string {
	uri, _ := URI(name, reported, from)
	host, _, err := parse(uri)
	if err != nil {
		return name
	}
	return host
}

// Check judges a URI and the address of the memory stream (empty: the host of the URI) before anything is opened. The error is ErrAddress.
func Check(uri, data string) error {
	if _, _, err := parse(uri); err != nil {
		return err
	}
	return CheckData(data)
}

// CheckData judges an address for memory streams. Empty is one: that of the URI. The error is ErrAddress.
func CheckData(data string) error {
	if data == "" {
		return nil
	}
	address, err := netip.ParseAddr(data)
	switch {
	case err != nil || address.Zone() != "":
		return fmt.Errorf("%w: %q, want an IP address", ErrAddress, data)
	case !distant(address):
		return fmt.Errorf("%w: %s is not one of another machine alone", ErrAddress, data)
	}
	return nil
}

// parse takes apart a URI that is qemu+tls://HOST[:PORT]/system, and nothing else.
func parse(uri string) (host, port string, err error) {
	parsed, err := url.Parse(uri)
	if err != nil {
		return "", "", fmt.Errorf("%w: %q is no URI", ErrAddress, uri)
	}
	host, port = parsed.Hostname(), parsed.Port()
	if port != "" {
		if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
			return "", "", fmt.Errorf("%w: %q, the port has to be 1 to 65535", ErrAddress, uri)
		}
	}
	if uri != build(host, port) {
		return "", "", fmt.Errorf("%w: %q, want %s://HOST%s", ErrAddress, uri, scheme, path)
	}
	if address, err := netip.ParseAddr(host); err == nil {
		if address.Zone() != "" || !distant(address) {
			return "", "", fmt.Errorf("%w: %q, %s is not one of another machine alone", ErrAddress, uri, host)
		}
		return host, port, nil
	}
	if len(host) > longest || !hostText.MatchString(host) || strings.EqualFold(host, "localhost") {
		return "", "", fmt.Errorf("%w: %q, %q is not the name of another machine", ErrAddress, uri, host)
	}
	return host, port, nil
}

// build is the inverse of parse.
func build(host, port string) string {
	switch {
	case port != "":
		host = net.JoinHostPort(host, port)
	case strings.Contains(host, ":"):
		host = "[" + host + "]"
	}
	return scheme + "://" + host + path
}

func same(name, host, from string) bool {
	if address, err := netip.ParseAddr(host); err == nil {
		calls, err := netip.ParseAddr(from)
		return err == nil && address.Unmap() == calls.Unmap()
	}
	// A node is on record by its host's name up to the first dot, and its certificate may have the whole name. Who answers there is for
	// libvirt's certificates to say.
	name, host = strings.ToLower(name), strings.ToLower(host)
	return host == name || strings.HasPrefix(name, host+".") || strings.HasPrefix(host, name+".")
}

// distant tells that an address can be another machine's, and one machine's alone.
func distant(address netip.Addr) bool {
	return !address.IsLoopback() && !address.IsUnspecified() && !address.IsMulticast() &&
		address.Unmap() != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}
