package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// berth runs the command line on the operator's machine and checks its exit code and that it says all of these.
func (s *site) berth(code int, args []string, says ...string) string {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), commandLimit)
	defer cancel()
	result, err := s.lab.CLI(ctx, args...)
	said := result.Stdout + result.Stderr
	if err != nil || result.Code != code {
		s.Fatalf("berth %s: exit code %d, want %d (%v)\n%s", strings.Join(args, " "), result.Code, code, err, said)
	}
	s.says("berth "+strings.Join(args, " "), said, says...)
	return said
}

// does runs a command that has to work.
func (s *site) does(args ...string) string {
	s.Helper()
	return s.berth(0, args)
}

// says checks that a command has said all of these.
func (s *site) says(command, said string, words ...string) {
	s.Helper()
	for _, word := range words {
		if !strings.Contains(said, word) {
			s.Errorf("%s does not say %q:\n%s", command, word, said)
		}
	}
}

// refusal is a command that has to be refused.
type refusal struct {
	why  string // the case's name
	args []string
	code int
	says []string
}

// refuses checks commands that have to be refused. None of them may leave a volume.
func (s *site) refuses(all []refusal) {
	s.Helper()
	for _, r := range all {
		s.Run(r.why, func(t *testing.T) {
			(&site{T: t, lab: s.lab}).berth(r.code, r.args, r.says...)
		})
	}
	s.must(s.nothingLeft(s.Context()))
}

// running is a command on a terminal of its own that has not ended yet.
type running struct {
	*site
	name     string
	cmd      *exec.Cmd
	terminal *os.File // where somebody types
	said     said
	over     chan error // how it ended; filled once
}

// said is what a command has printed so far.
type said struct {
	sync.Mutex
	text bytes.Buffer
}

func (t *said) Write(b []byte) (int, error) {
	t.Lock()
	defer t.Unlock()
	return t.text.Write(b)
}

func (t *said) String() string {
	t.Lock()
	defer t.Unlock()
	return t.text.String()
}

// starts begins a command on a terminal of its own, and does not wait for it.
func (s *site) starts(args ...string) *running {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Context()), commandLimit)
	s.Cleanup(cancel)
	r := &running{site: s, name: "berth " + strings.Join(args, " "), over: make(chan error, 1)}
	cmd, err := s.lab.Operator.Command(ctx, append([]string{"berth"}, args...)...)
	s.must(err)
	terminal, inside, err := openTerminal()
	s.must(err)
	r.cmd, r.terminal = cmd, terminal
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inside, inside, inside
	cmd.Env = append(cmd.Env, "TERM=xterm")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	s.must(cmd.Start())
	s.must(inside.Close())
	go func() {
		_, _ = io.Copy(&r.said, terminal) // it fails once the command has closed its side
		terminal.Close()
		r.over <- r.cmd.Wait()
	}()
	return r
}

// openTerminal makes a pseudo terminal of 100 columns: the side of the person, and that of the program.
func openTerminal() (person, program *os.File, err error) {
	person, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	control, err := person.SyscallConn()
	if err != nil {
		return nil, nil, errors.Join(err, person.Close())
	}
	var number int
	ioctls := control.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err != nil {
			return
		}
		if err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 100}); err != nil {
			return
		}
		number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
	})
	if err = errors.Join(ioctls, err); err == nil {
		program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, person.Close())
	}
	return person, program, nil
}

// types sends keys to the command.
func (r *running) types(keys string) {
	r.Helper()
	_, err := r.terminal.WriteString(keys)
	r.must(err)
}

// shows waits until the command has printed a text.
func (r *running) shows(text string) {
	r.Helper()
	r.comes(r.name+" shows "+text, func() error {
		if said := r.said.String(); !strings.Contains(said, text) {
			return fmt.Errorf("it says:\n%s", said)
		}
		return nil
	})
}

// ends waits for the command and checks its exit code and that it has said all of these.
func (r *running) ends(code int, says ...string) string {
	r.Helper()
	err := <-r.over
	text := r.said.String()
	if got := r.cmd.ProcessState.ExitCode(); got != code {
		r.Fatalf("%s: exit code %d, want %d (%v)\n%s", r.name, got, code, err, text)
	}
	r.says(r.name, text, says...)
	return text
}
