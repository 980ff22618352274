// Package history keeps what a member's state has applied for longer than the state does: events, decisions with what they were made of,
// and operations that have ended. It is beside Raft: no snapshot has it, and nothing that is decided waits for it or reads it.
//
// What it has follows from the log alone, so it is the same on every member. Rows are in the order of the log and are named by their
// place there, never by time. Store keeps them in segments: files of checked blocks, each of which says which entries of the log it
// covers, whole. So a restart knows where to go on, and a missing part is a range of entries that another member can be asked for.
// Keeper follows the state, fills what is missing, and drops what is old or too much.
package history
