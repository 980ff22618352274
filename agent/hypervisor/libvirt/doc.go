// Package libvirt is the hypervisor seam on a real libvirtd. It is the only package of Berth that needs cgo; build it
// with the tag libvirt_dlopen, so that the library is opened at run time and a node without it gets a clean error.
//
// One connection watches: it brings the lifecycle events, and its end is how we know that libvirtd went away. Everything
// else takes a connection of its own from a small pool for as long as one call lasts, because libvirtd serves at most
// five calls a connection at a time and a call can hang: on a stopped guest, on a slow disk, on libvirtd itself. A C call
// cannot be interrupted, so each runs on a goroutine that is left behind at the caller's deadline; keepalive ends it 30 s
// later at the latest if libvirtd is the one that hangs, and a bound on all of them keeps the agent small if a guest is.
//
// What libvirtd tells late is looked at here: a guest's use of the CPU, and the end of its process when it has been handed
// over. Both need the process ID that libvirtd has written down, and no right; where it is not to be seen, libvirtd is asked.
//
// Calls to storage pools are apart from all others and few a pool: libvirtd works on each with one of its 20 threads, and
// holds the pool's lock, for as long as the file system below it does not answer.
package libvirt
