package api

import (
	"fmt"
	"net/netip"
	"regexp"

	"berth/coordinator/cluster"
)

var (
	uuidText = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	hostText = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$`)
)

// checkName judges the name that somebody wants to give. A UUID is no name: it would be taken for an ID.
func checkName(thing, name string) error {
	if name == "" {
		return fmt.Errorf("the %s has no name", thing)
	}
	if uuidText.MatchString(name) {
		return fmt.Errorf("the %s name %q looks like a UUID, which is kept for IDs", thing, name)
	}
	return cluster.ValidateName(thing, name)
}

// checkHost judges a host name or IP address that goes into a certificate.
func checkHost(host string) error {
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	if len(host) > 253 || !hostText.MatchString(host) {
		return fmt.Errorf("%q is neither a host name nor an IP address", host)
	}
	return nil
}

// limited reads the limit of a list: fallback if none is given, most at the most.
func limited(limit int32, fallback, most int) (int, error) {
	switch {
	case limit < 0:
		return 0, fmt.Errorf("a limit of %d is negative", limit)
	case limit == 0:
		return fallback, nil
	default:
		return min(int(limit), most), nil
	}
}
