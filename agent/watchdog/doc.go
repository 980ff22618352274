// Package watchdog resets the host when its agent has heard no leader for too long, so that a leader knows, from the passing
// of time alone, that nothing runs there any more.
//
// The device is opened with the first lease that a leader gives, and petted only while a lease lasts. An agent that ends leaves
// the device armed: if it is not back before its time is over, the host is reset. Only a leader disarms it, after it has
// written down that the host's silence proves nothing from then on.
package watchdog
