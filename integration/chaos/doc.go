// Package chaos does to a lab of real hypervisors and coordinators what bad luck, bad input and people with virsh do to a
// site, and checks what Berth promises for it: a clear answer, nothing half done, and every VM running exactly once. Where a
// test itself runs a guest twice, the second copy has to be suspended.
//
// Most of a test is waiting, for a lease to run out or for libvirt to lose patience. So there are a few labs, and as many
// tests at a time. Each test finds its lab whole and empty and leaves it so; one that cannot is at fault itself, and the next
// one gets a new lab. The flag -long runs every fault at every moment of a migration instead of a few of them.
package chaos
