// Package manual runs the commands of the manual (packaging/docs/manual) as they stand there, page after page, from an empty cluster.
// The coordinator is the real program. The nodes are the agent's own packages on hypervisors in memory, so no host is needed.
package manual
