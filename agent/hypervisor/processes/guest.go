package processes

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"berth/agent/procfs"
)

// clockTick is what /proc counts CPU time in. It is 100 a second on every Linux, whatever the kernel's own rate.
const clockTick = 10 * time.Millisecond

var pageSize = int64(os.Getpagesize())

// Process is a guest's QEMU, held by its open stat file: reading that is one system call, and it fails, instead of
// telling of somebody else, when the process is gone and its number is used again.
type Process struct {
	stat  *os.File
	tasks string   // folder of its threads
	vcpus []string // schedstat files of the threads that are vCPUs
	group string   // folder of its control group; empty: none was found yet
}

// ErrNotHere means that the guest's process cannot be seen from here: it is in another namespace, hidden, or gone.
var ErrNotHere = errors.New("the guest's process is not to be seen")

// PIDOf is the number that libvirt has written down of a domain's process. The error is ErrNotHere.
func PIDOf(runDir, name string) (int, error) {
	text, err := os.ReadFile(filepath.Join(runDir, name+".pid"))
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNotHere, err)
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNotHere, err)
	}
	return pid, nil
}

// Find opens the process of a domain.
func Find(runDir, name, uuid string) (*Process, error) {
	pid, err := PIDOf(runDir, name)
	if err != nil {
		return nil, err
	}
	folder := fmt.Sprintf("/proc/%d", pid)
	stat, err := os.Open(folder + "/stat")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotHere, err)
	}
	// The file may be an old one's, and the number of another PID namespace: only the process itself knows its guest.
	line, err := os.ReadFile(folder + "/cmdline")
	if err != nil || !bytes.Contains(line, []byte(uuid)) {
		_ = stat.Close()
		return nil, fmt.Errorf("%w: process %d is not it", ErrNotHere, pid)
	}
	return &Process{stat: stat, tasks: folder + "/task"}, nil
}

// Close lets go of it.
func (p *Process) Close() { _ = p.stat.Close() }

// Usage is what the process has used of the CPU, and the memory that it holds.
func (p *Process) Usage(buffer []byte) (cpu time.Duration, rss int64, err error) {
	n, err := p.stat.ReadAt(buffer, 0)
	if n == 0 {
		return 0, 0, fmt.Errorf("%w: %w", ErrNotHere, err)
	}
	return parseStat(buffer[:n])
}

// parseStat reads a line of /proc/PID/stat. The name in parentheses may hold anything, so counting begins after it.
func parseStat(line []byte) (cpu time.Duration, rss int64, err error) {
	const user, system, resident = 11, 12, 21 // in proc(5): 14, 15 and 24
	at := 0
	for field := range bytes.FieldsSeq(line[bytes.LastIndexByte(line, ')')+1:]) {
		switch at {
		case user, system, resident:
			number, err := strconv.ParseInt(string(field), 10, 64)
			if err != nil {
				return 0, 0, fmt.Errorf("%w: %w", ErrNotHere, err)
			}
			if at == resident {
				return cpu, number * pageSize, nil
			}
			cpu += time.Duration(number) * clockTick
		}
		at++
	}
	return 0, 0, fmt.Errorf("%w: its stat has %d fields", ErrNotHere, at)
}

// Delay is how long the vCPUs were ready and waited for a CPU, all together: what the guest sees as stolen time.
func (p *Process) Delay(vcpus int) (time.Duration, error) {
	if len(p.vcpus) != vcpus { // the first time, or one was plugged in
		if err := p.findVCPUs(); err != nil {
			return 0, err
		}
	}
	var sum time.Duration
	var buffer [procfs.Longest]byte
	for _, path := range p.vcpus {
		text, err := procfs.Read(path, buffer[:])
		if err != nil {
			p.vcpus = nil // unplugged: look anew
			return 0, err
		}
		one, err := parseSchedstat(text)
		if err != nil {
			return 0, err
		}
		sum += one
	}
	if len(p.vcpus) == 0 {
		return 0, ErrNotHere
	}
	return sum, nil
}

// findVCPUs finds the threads that libvirt has QEMU name after their vCPUs: "CPU 0/KVM".
func (p *Process) findVCPUs() error {
	threads, err := os.ReadDir(p.tasks)
	if err != nil {
		return err
	}
	p.vcpus = nil
	for _, thread := range threads {
		name, err := os.ReadFile(filepath.Join(p.tasks, thread.Name(), "comm"))
		if err == nil && strings.HasPrefix(string(name), "CPU ") {
			p.vcpus = append(p.vcpus, filepath.Join(p.tasks, thread.Name(), "schedstat"))
		}
	}
	return nil
}

// parseSchedstat reads the second number: nanoseconds spent waiting on a run queue.
func parseSchedstat(text []byte) (time.Duration, error) {
	at := 0
	for field := range bytes.FieldsSeq(text) {
		if at == 1 {
			waited, err := strconv.ParseInt(string(field), 10, 64)
			return time.Duration(waited), err
		}
		at++
	}
	return 0, fmt.Errorf("schedstat %q has no delay", text)
}
