// Package control is what only the leader does: place, drive operations to their end, carry plans out, keep VMs well
// placed, watch nodes.
//
// Placer serialises decide-and-commit. Driver sends the orders that each live operation's record asks for and feeds the
// agents' answers to operation.Step. Executor begins the moves of a plan, each decided anew when its turn comes. The
// loops make a pass over each cluster every minute, and see what somebody else has stopped, moved or changed, and which VM runs twice. Images, sizes and deletions are
// written down before agents work on volumes, so that repeating the request finishes them. All of them start from the
// replicated state alone after a barrier, and stop when the leadership is lost.
package control
