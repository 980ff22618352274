// Package wire turns the coordinator's model into the messages of the API and of the agents' protocol, and back. It decides
// nothing: what a state is called or which figure is shown is settled before. A zero time and a missing reading stay absent
// in the message.
package wire

// SchemaVersion is the version of the messages that people's scripts read with -o json. It changes only when a field
// changes its meaning; new fields do not count.
const SchemaVersion = "1"
