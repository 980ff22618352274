// Package agents is the coordinator's end of the agents' streams. Each node has one session, with the leader only: reports
// go to the inventory, orders go out, answers go to whoever drives the operations.
//
// Server lives as long as the process; Lead and Follow open and close it for sessions. A follower sends agents to the
// leader. Every session has one goroutine that reads, the request's own, and one that writes; end is the only way to stop
// both.
package agents
