package doorkeeper

import "syscall"

// Limits are numbers of connections on one listener.
type Limits struct {
	Address int // of one address, before they prove who they are
	All     int // of all addresses that nobody is known from, likewise
	Holder  int // of one certificate or session
	Known   int // of all certificates and sessions; members do not count
}

const (
	mostOfAddress = 512
	mostOfHolder  = 1024
	// MostOfAgent is how many connections one node's agent may have. It needs one, and two while it changes to another.
	MostOfAgent = 64
	// leastFiles is what is taken for the limit of files where the system does not tell it.
	leastFiles = 1024
)

// Files is how many files this process may have open.
func Files() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return leastFiles
	}
	return int(min(limit.Cur, 1<<20))
}

// Share is what one listener gets in a process that may have so many files open. A quarter of the files is for no listener.
type Share func(files int) Limits

// People is the share of the listener for operators and programs. They are few.
func People(files int) Limits { return limits(files/16, files/16) }

// Agents is the share of the listener for agents, which stay connected. There may be half as many of them as files.
func Agents(files int) Limits { return limits(files*3/32, files*17/32) }

// FilesFor is how many files a process has to be allowed for so many connections of agents.
func FilesFor(agents int) int {
	const whole = 1024
	return (agents*32/17/whole + 1) * whole
}

// limits are those of a listener with so many strangers and so many that are known.
func limits(strangers, known int) Limits {
	all := max(strangers, 1)
	half := max(all/2, 1)
	return Limits{Address: min(mostOfAddress, half), All: all, Holder: min(mostOfHolder, half), Known: max(known, 1)}
}
