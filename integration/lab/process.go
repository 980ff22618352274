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
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A lab's processes are seen from outside, where each has another process ID than inside. They are found by their PID
// namespace, which no other process can be in, and signalled through a pidfd, which cannot hit a later process that got
// the same ID.

// findRole is the live process that runs as a role with these first arguments, or 0.
func findRole(role string, args ...string) int {
	want := role + "\x00" + strings.Join(args, "\x00") + "\x00"
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err == nil && strings.HasPrefix(string(text), want) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			return pid
		}
	}
	return 0
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

// arguments is the command line of a process, empty if it has ended.
func arguments(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
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
