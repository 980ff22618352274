// Package testbed raises what is measured: coordinators as processes, bare Raft members for comparison, a simulated fleet, and labs.
package testbed
