// Package webhook sends what happens to other programs: events, and operations that have ended, as signed JSON by POST.
//
// Only the leader sends. It reads on in its history from where the record of a webhook says, so nothing is kept in memory that a
// receiver has not taken yet but a bounded window, and the next leader goes on without a gap. Each delivery has an ID that follows from the
// log: what is sent twice has the same. What is about one thing (a VM, a node) is sent in order, one after the other. What a receiver
// does not take is tried again, and in the end put on a bounded list with the reason.
package webhook
