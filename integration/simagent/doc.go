// Package simagent is a node without a hypervisor. Its connection is the real agent's (package agent/session): it enrols
// with a token, speaks mutual TLS, finds the leader, reports and reconnects exactly as a node does. What stands behind
// that is a set of domains in memory, and every order is done at once.
//
// It exists to time and to load coordinators: a start on it costs the node nothing, so all the time that a client waits is
// the coordinators'. It proves nothing about libvirt, QEMU, the agent's journal or a crash of the agent, and no test of
// those may use it. Its messages are smaller than a node's: it sends no capabilities, pools or networks.
package simagent
