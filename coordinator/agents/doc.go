// Package agents is the coordinator's end of the agents' streams. Each node has one session, with the leader only: reports
// go to the inventory, orders go out, answers go to what drives the operations.
//
// Server lives as long as the process; Lead and Follow open and close it for sessions. A follower sends agents to the
// leader; where there is none it lets them wait, so that they are there as soon as there is one. Every session has one
// goroutine that reads, the request's own, and one that writes; end is the only way to stop both.
package agents
