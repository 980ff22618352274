package rpc

import (
	"errors"
	"testing"
)

func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"c1": "c1:7420", "c1:99": "c1:99", "10.0.0.1": "10.0.0.1:7420", "c1.example:7420": "c1.example:7420",
		"::1": "[::1]:7420", "[::1]": "[::1]:7420", "[fd00::1]:7": "[fd00::1]:7",
	} {
		if got, err := Address(text, PortAPI); err != nil || got != want {
			t.Errorf("Address(%q) = %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", ":7420", "c1:", "c1:0", "c1:65536", "c1:x", "https://c1", "c1/x", "a b", "1:2:3", "[::1", "[c1]x", "user@c1",
	} {
		if got, err := Address(text, PortAPI); !errors.Is(err, ErrAddress) {
			t.Errorf("Address(%q) = %q, %v, want ErrAddress", text, got, err)
		}
	}
}
