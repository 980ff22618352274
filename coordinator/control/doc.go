// Package control is what only the leader does: place, drive operations to their end, watch nodes.
//
// Placer serialises decide-and-commit. Driver sends the orders that each live operation's record asks for and feeds the
// agents' answers to operation.Step. Both start from the replicated state alone after a barrier, and stop when the
// leadership is lost.
package control
