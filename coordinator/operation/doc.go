// Package operation has the state machines of everything that Berth does to a VM (start, stop, migrate, delete, adopt,
// release), and of a person's decision about an operation that no rule could end. It is pure.
//
// An Operation is a replicated record. Orders says, from the record alone, what the agents should be doing now. So a new
// leader and an agent that reconnects need no other memory: the same orders are sent again, and an agent that knows operation
// and step gives the same answer again. Step takes one answer and returns the next record, and with it where the VM's disks
// are. What depends on what an operation does stands in the file of its kind. Nothing here waits, sends or reads a clock.
package operation
