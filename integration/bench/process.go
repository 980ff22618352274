package main

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
)

// process is a program that the bench has started and ends.
type process struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{}
}

// startProcess runs a program with its output in a file.
func startProcess(log, name string, args ...string) (*process, error) {
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
	p := &process{cmd: cmd, log: log, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // it is ended by signals
		close(p.ended)
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// end sends a signal and waits until the process is gone.
func (p *process) end(signal os.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(20 * time.Second):
		return errors.Join(fmt.Errorf("process %d ignores %v", p.pid(), signal), p.cmd.Process.Kill())
	}
}

// alive is nil as long as the process runs, else an error with the end of its log.
func (p *process) alive() error {
	select {
	case <-p.ended:
		text, _ := os.ReadFile(p.log)
		return fmt.Errorf("%s has ended:\n%s", p.cmd.Path, text[max(0, len(text)-2000):])
	default:
		return nil
	}
}

// clockTicks is USER_HZ, which is 100 on every Linux that Go runs on. It is the resolution of cpuTime, so it takes many
// repetitions to time something short.
const clockTicks = 100

// cpuTime is the user and system time that a process has used (proc(5), fields 14 and 15 of stat).
func cpuTime(pid int) (time.Duration, error) {
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

// cpuTimes is the sum over several processes.
func cpuTimes(pids ...int) (time.Duration, error) {
	var sum time.Duration
	for _, pid := range pids {
		one, err := cpuTime(pid)
		if err != nil {
			return 0, err
		}
		sum += one
	}
	return sum, nil
}

// memory is what a process has resident, in bytes.
type memory struct {
	all float64
	own float64 // anonymous: not pages of files, which it shares with whoever else uses them
}

func (m memory) String() string {
	return fmt.Sprintf("%s, %s of it its own", megabytes(m.all), megabytes(m.own))
}

// resident reads a process's memory (proc(5), VmRSS and RssAnon of status).
func resident(pid int) (m memory, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return m, err
	}
	for _, field := range []struct {
		name  string
		value *float64
	}{{"VmRSS", &m.all}, {"RssAnon", &m.own}} {
		_, line, _ := strings.Cut(string(text), "\n"+field.name+":")
		var kibibytes float64
		if _, err := fmt.Sscanf(line, "%f kB", &kibibytes); err != nil {
			return m, fmt.Errorf("%s of process %d: %w", field.name, pid, err)
		}
		*field.value = kibibytes * 1024
	}
	return m, nil
}

// tracerOf is the process that traces another (proc(5), TracerPid of status); 0: none does.
func tracerOf(pid int) (tracer int, err error) {
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
