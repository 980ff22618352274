// Package doorkeeper bounds the connections of a listener, so that nobody who only connects keeps others out. Who has not proved who it
// is counts for its address and for all strangers together, and the oldest gives way to the newest: an honest handshake takes
// milliseconds, and what stays without saying anything is what takes the places. Who has proved it counts for its certificate. Files are
// left over for the coordinator's own work.
package doorkeeper
