// Package machine is the machines of a run, and what is real on them: their libvirt, which has the races of the real one (FAULTS.md,
// "What libvirt does by itself"), guests and migrations, the disk with the agent's journal, the fence device and the watchdog. The
// links between them are cut, daemons and agents die, and power goes off, as who plays the run says.
//
// What an agent does comes in through Libvirt and Journal, and what happens around it goes out through Agent. Witness is asked before
// guests are touched, and told when they run.
package machine
