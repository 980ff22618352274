// Package inventory keeps what agents report: inventory, telemetry, domains, progress and how well each node is heard.
// These are soft facts of the leader; they never go through Raft and are forgotten when the leadership is lost.
//
// A report counts only if its sequence is newer than the last one of the same incarnation and its session is the node's
// present one. All times are the coordinator's own.
package inventory
