package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A lab's processes are seen from outside, where each has another process ID than inside. They are found by their PID
// namespace, which no other process can be in, and signalled through a pidfd, which cannot hit a later process that got
// the same ID.

// findRole is the live process that runs as a role with these first arguments, or 0.
func findRole(role string, args ...string) int {
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range paths {
		pid, _ := strconv.Atoi(filepath.Base(path))
		if hasRole(pid, role, args...) {
			return pid
		}
	}
	return 0
}

func hasRole(pid int, role string, args ...string) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && strings.HasPrefix(string(text), role+"\x00"+strings.Join(args, "\x00")+"\x00")
}

// processes remembers where a machine's processes were found, because looking for one reads something of every process
// here. What is remembered is checked before it is believed. The zero value is ready.
type processes struct {
	first atomic.Int64 // process 1

	mu     sync.Mutex
	outers map[int]int // the ID here by the ID there
}

// role is findRole, for one role.
func (p *processes) role(role string, args ...string) int {
	if pid := int(p.first.Load()); pid != 0 && hasRole(pid, role, args...) {
		return pid
	}
	pid := findRole(role, args...)
	p.first.Store(int64(pid))
	return pid
}

// outer is the ID here of a process that has another one in its namespace, 0 if it has ended.
func (p *processes) outer(namespace string, inner int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pid := p.outers[inner]; pid != 0 && innerPid(pid) == inner {
		if found, err := pidNamespace(pid); err == nil && found == namespace {
			return pid
		}
	}
	p.outers = map[int]int{}
	for _, pid := range processesIn(namespace) {
		if inner := innerPid(pid); inner != 0 {
			p.outers[inner] = pid
		}
	}
	return p.outers[inner]
}

// pidNamespace identifies the PID namespace of a process.
func pidNamespace(pid int) (string, error) {
	return os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
}

// processesIn lists all live processes of a PID namespace, not those of namespaces below it.
func processesIn(namespace string) []int {
	var pids []int
	links, _ := filepath.Glob("/proc/[0-9]*/ns/pid")
	for _, link := range links {
		found, err := os.Readlink(link)
		if err != nil || found != namespace {
			continue
		}
		pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
		pids = append(pids, pid)
	}
	return pids
}

// innerPid is the ID that a process has in its own PID namespace, 0 if it has ended.
func innerPid(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil || bytes.Contains(text, []byte("\nState:\tZ")) {
		return 0
	}
	_, line, _ := bytes.Cut(text, []byte("\nNSpid:"))
	line, _, _ = bytes.Cut(line, []byte("\n"))
	fields := strings.Fields(string(line))
	if len(fields) == 0 {
		return 0
	}
	inner, _ := strconv.Atoi(fields[len(fields)-1])
	return inner
}

// argumentsIn is the command line in a file of /proc, empty if the process has ended.
func argumentsIn(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// signalIn sends a signal to a process if it still lives in the namespace.
func signalIn(namespace string, pid int, signal syscall.Signal) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if found, err := pidNamespace(pid); err != nil || found != namespace {
		return fmt.Errorf("signal process %d: %w", pid, os.ErrProcessDone)
	}
	return unix.PidfdSendSignal(fd, signal, nil, 0)
}

// errTimeout is the cause of every wait that took too long.
var errTimeout = errors.New("timed out")

// await asks until it is done, and returns the error of that answer. When time runs out, the error has the last one.
func await(ctx context.Context, what string, limit time.Duration, ask func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	pause := 2 * time.Millisecond
	for {
		done, err := ask()
		if done {
			return err
		}
		select {
		case <-ctx.Done():
			if err != nil {
				return fmt.Errorf("wait for %s: %w: %w", what, context.Cause(ctx), err)
			}
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		case <-time.After(pause):
		}
		pause = min(2*pause, 100*time.Millisecond)
	}
}
