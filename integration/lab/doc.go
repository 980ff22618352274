// Package lab raises real hypervisors and coordinators on one machine and takes them away without a trace.
//
// A lab is a tree of Linux namespaces. The reaper, a process that is tied by a pipe to the one that raised the lab,
// starts the lab's init as process 1 of a new PID namespace with mount, network, UTS and IPC namespaces of its own; it
// holds a bridge. Every machine (host, coordinator, operator) is an init in namespaces of its own below that, with a
// cable to the bridge, an own address, an own /etc, /var and /run, and its own /proc. Nothing of this has a name outside:
// when the lab's init dies, the kernel ends every process, network and mount below it. So a lab cannot outlive a crashed
// test, two labs cannot meet, and powering a host off is killing one process.
//
//	reaper ── lab init (bridge lab0) ─┬─ operator      10.77.0.2     the CLI
//	                                  ├─ coord1 …      10.77.0.11 …  berth coordinator
//	                                  └─ node1 …       10.77.0.21 …  libvirtd, QEMU, berth-agent
//
// Hosts run the machine's own libvirtd and QEMU, with TLS for control and for the memory stream. What they believe to
// be their memory and load is shaped through their own /proc/meminfo and /proc/loadavg. Each has the storage pools "shared",
// with the same content on all of them, and "local" and "default" with its own, and a network "lab".
//
// A program or a test that raises a lab calls Child first in main or TestMain, because the lab's processes are the same
// program started again. All of it needs root on Linux and the packages that `make deps` installs.
package lab
