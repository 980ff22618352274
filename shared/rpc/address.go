package rpc

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// The ports on which coordinators listen unless their configuration says otherwise.
const (
	PortAPI   = 7420
	PortAgent = 7421
	PortRaft  = 7422
	// PortConsole is for browsers.
	PortConsole = 7423
)

// ErrAddress reports a text that is not HOST or HOST:PORT.
var ErrAddress = errors.New("not an address")

// Address completes HOST[:PORT] with the default port. HOST is a name, an IPv4 address or an IPv6 address; the latter
// needs brackets only before a port. The error is ErrAddress.
func Address(text string, defaultPort int) (string, error) {
	host, port := text, strconv.Itoa(defaultPort)
	switch inside, bracketed := strings.CutPrefix(text, "["); {
	case bracketed && strings.HasSuffix(inside, "]"):
		host = strings.TrimSuffix(inside, "]")
	case bracketed, strings.Count(text, ":") == 1:
		var err error
		if host, port, err = net.SplitHostPort(text); err != nil {
			return "", fmt.Errorf("%w: %q, want HOST or HOST:PORT", ErrAddress, text)
		}
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return "", fmt.Errorf("%w: %q, the port has to be 1 to 65535", ErrAddress, text)
	}
	if !isHost(host) {
		return "", fmt.Errorf("%w: %q, want HOST or HOST:PORT", ErrAddress, text)
	}
	return net.JoinHostPort(host, port), nil
}

func isHost(host string) bool {
	if strings.Contains(host, ":") {
		return net.ParseIP(host) != nil
	}
	return host != "" && !strings.ContainsAny(host, " \t\r\n/@?#[]%")
}
