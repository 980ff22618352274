package inventory

import (
	"cmp"
	"net"
	"net/url"
	"slices"
	"strings"
)

// libvirtPorts are where a libvirt daemon listens for other nodes, by the transport of its URI.
var libvirtPorts = map[string]string{"tls": "16514", "tcp": "16509", sshTransport: sshPort}

const (
	sshTransport = "ssh"
	sshPort      = "22"
)

// peers are where other nodes reach a host: its libvirt, and its SSH server if it has one. By commas; empty: not known.
func peers(migrationURI, migrationHost string) string {
	uri, err := url.Parse(migrationURI)
	if err != nil || uri.Hostname() == "" {
		return ""
	}
	_, transport, _ := strings.Cut(uri.Scheme, "+")
	port := cmp.Or(uri.Port(), libvirtPorts[transport], libvirtPorts["tls"])
	all := []string{net.JoinHostPort(uri.Hostname(), port), net.JoinHostPort(uri.Hostname(), sshPort)}
	if migrationHost != "" {
		all = append(all, net.JoinHostPort(migrationHost, port), net.JoinHostPort(migrationHost, sshPort))
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ",")
}
