// Package hypervisor holds the agent's seam to libvirt against real daemons: the suite that the fake keeps in unit tests,
// and what only real files can show.
package hypervisor
