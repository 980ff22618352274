package model

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

func TestUUIDsAreOfVersion4AndKeepTheirBits(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	if got := NewUUID(0x0123456789abcdef, 0xfedcba9876543210); got != "01234567-89ab-4def-bedc-ba9876543210" {
		t.Errorf("NewUUID: %s", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		if id := NewUUID(rapid.Uint64().Draw(t, "high"), rapid.Uint64().Draw(t, "low")); !form.MatchString(id) {
			t.Errorf("%s is no UUID of version 4", id)
		}
	})
}
