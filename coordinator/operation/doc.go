// Package operation has the pure state machines of everything that Berth does to a VM: start, stop, migrate, delete,
// adopt, release; and what an operator decides about one that no rule could end.
//
// An Operation is a replicated record. Orders tells, from the record alone, what the agents should be doing now, so a
// new leader or a reconnected agent needs no other memory: the same orders are sent again, and an agent that knows the
// operation and step answers as before. Step takes one answer and returns the next record, and what becomes of the VM's
// disks with it. Nothing here waits, sends or reads a clock.
package operation
