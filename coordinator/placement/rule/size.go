package rule

import (
	"fmt"

	"berth/shared/units"
)

// coarse is the size from which on whole GiB are precise enough.
const coarse = 16 * units.GiB

// Rounded cuts a size down to what WholeUnits prints, so that the printed size fits.
func Rounded(size units.Bytes) units.Bytes {
	if size >= coarse {
		return size / units.GiB * units.GiB
	}
	return size / units.MiB * units.MiB
}

// WholeUnits prints a rounded size.
func WholeUnits(size units.Bytes) string {
	if size >= coarse && size%units.GiB == 0 {
		return fmt.Sprintf("%d GiB", size/units.GiB)
	}
	return fmt.Sprintf("%d MiB", size/units.MiB)
}
