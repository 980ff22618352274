package answer

import (
	"fmt"
	"net/netip"
	"regexp"
	"time"

	"berth/coordinator/model"
)

var (
	// UUIDText matches a UUID as people write it.
	UUIDText = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	hostText = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$`)
)

// CheckName judges the name that somebody wants to give. A UUID is no name: it would be taken for an ID.
func CheckName(thing, name string) error {
	if name == "" {
		return fmt.Errorf("the %s has no name", thing)
	}
	if UUIDText.MatchString(name) {
		return fmt.Errorf("the %s name %q looks like a UUID, which is kept for IDs", thing, name)
	}
	return model.ValidateName(thing, name)
}

// CheckHost judges a host name or IP address that goes into a certificate.
func CheckHost(host string) error {
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	if len(host) > 253 || !hostText.MatchString(host) {
		return fmt.Errorf("%q is neither a host name nor an IP address", host)
	}
	return nil
}

// Limited reads the limit of a list: fallback if none is given, most at the most.
func Limited(limit int32, fallback, most int) (int, error) {
	switch {
	case limit < 0:
		return 0, fmt.Errorf("a limit of %d is negative", limit)
	case limit == 0:
		return fallback, nil
	default:
		return min(int(limit), most), nil
	}
}

// Farewell is how long the last message to a caller may take when a stream is ended from this side.
const Farewell = time.Second
