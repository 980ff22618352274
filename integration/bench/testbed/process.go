package testbed

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"berth/integration/bench/report"
)

// Process is a program that the bench has started and ends.
type Process struct {
	Cmd   *exec.Cmd
	log   string
	ended chan struct{}
}

// StartProcess runs a program with its output in a file.
func StartProcess(log, name string, args ...string) (*Process, error) {
	output, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer output.Close()
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = output, output
	// Ctrl-C is for the bench, which then ends its processes; a bench that is killed takes them along.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{Cmd: cmd, log: log, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // it is ended by signals
		close(p.ended)
	}()
	return p, nil
}

// PID is its process ID.
func (p *Process) PID() int { return p.Cmd.Process.Pid }

// End sends a signal and waits until the process is gone.
func (p *Process) End(signal os.Signal) error {
	if err := p.Cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(20 * time.Second):
		return errors.Join(fmt.Errorf("process %d ignores %v", p.PID(), signal), p.Cmd.Process.Kill())
	}
}

// Alive is nil as long as the process runs, else an error with the end of its log.
func (p *Process) Alive() error {
	select {
	case <-p.ended:
		text, _ := os.ReadFile(p.log)
		return fmt.Errorf("%s has ended:\n%s", p.Cmd.Path, text[max(0, len(text)-2000):])
	default:
		return nil
	}
}

// clockTicks is USER_HZ, which is 100 on every Linux that Go runs on. It is the resolution of cpuTime, so it takes many
// repetitions to time something short.
const clockTicks = 100

// CPUTime is the user and system time that a process has used (proc(5), fields 14 and 15 of stat).
func CPUTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	user, err := strconv.ParseInt(fields[14-3], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[15-3], 10, 64)
	return time.Duration(user+system) * time.Second / clockTicks, err
}

// CPUTimes is the sum over several processes.
func CPUTimes(pids ...int) (time.Duration, error) {
	var sum time.Duration
	for _, pid := range pids {
		one, err := CPUTime(pid)
		if err != nil {
			return 0, err
		}
		sum += one
	}
	return sum, nil
}

// Memory is what a process has resident, in bytes.
type Memory struct {
	All float64
	own float64 // anonymous: not pages of files, which it shares with whoever else uses them
}

func (m Memory) String() string {
	return fmt.Sprintf("%s, %s of it its own", report.Megabytes(m.All), report.Megabytes(m.own))
}

// Resident reads a process's memory (proc(5), VmRSS and RssAnon of status).
func Resident(pid int) (m Memory, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return m, err
	}
	for _, field := range []struct {
		name  string
		value *float64
	}{{"VmRSS", &m.All}, {"RssAnon", &m.own}} {
		_, line, _ := strings.Cut(string(text), "\n"+field.name+":")
		var kibibytes float64
		if _, err := fmt.Sscanf(line, "%f kB", &kibibytes); err != nil {
			return m, fmt.Errorf("%s of process %d: %w", field.name, pid, err)
		}
		*field.value = kibibytes * 1024
	}
	return m, nil
}

// TracerOf is the process that traces another (proc(5), TracerPid of status); 0: none does.
func TracerOf(pid int) (tracer int, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, line, _ := strings.Cut(string(text), "\nTracerPid:")
	if _, err := fmt.Sscan(line, &tracer); err != nil {
		return 0, fmt.Errorf("tracer of process %d: %w", pid, err)
	}
	return tracer, nil
}
