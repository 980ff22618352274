// Package fence runs fence agents: the programs fence_* that switch machines off by their management board, power strip or
// hypervisor, and tell whether they are on. It runs them as fence-agents defines it: arguments as lines NAME=VALUE on the
// standard input, and what is to be done as action=off or action=status.
//
// Only programs of a few directories of the machine are run, by name. Their output is kept for people, bounded and without
// the secrets that they were given.
package fence
