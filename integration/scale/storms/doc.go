// Package storms measures a whole site at a size: three coordinators as processes with their logs on a disk, simulated agents in further
// processes that call them over mutual TLS, and clients that start VMs. It kills the leader in the middle of starts, restarts all
// coordinators, and breaks the connections of all agents at once. All of that shares the processors of one machine.
package storms
