// Package fence runs fence agents: the programs fence_* that switch machines off by their management board, power strip or
// hypervisor, and tell whether they are on. It runs them as fence-agents defines it: arguments as lines NAME=VALUE on the
// standard input, and what is to be done as action=off or action=status.
//
// Only programs of a few directories of the machine are run, by name. Their output is kept for people, bounded and without
// the secrets that they were given.
//
// A fence agent is somebody else's program that speaks with a board which may be anybody's by now. It must not read what the coordinator
// reads, above all the key of the cluster's authority. So the coordinator runs none itself where a service manager is: Runner asks a
// socket, and for each call the service manager starts a process of another account (Command), which gets one request, runs one
// fence agent, answers, and ends with all that was started. Without such a socket Runner runs them as its own account.
package fence
