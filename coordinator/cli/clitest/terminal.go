package clitest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"berth/shared/pause"
)

// Until collects what is written, and calls then when a word has come.
type Until struct {
	bytes.Buffer
	Word string
	Then func()
}

func (u *Until) Write(p []byte) (int, error) {
	n, err := u.Buffer.Write(p)
	if strings.Contains(u.String(), u.Word) {
		u.Then()
	}
	return n, err
}

// OpenTerminal is NewTerminal for a test, which closes both sides at its end.
func OpenTerminal(t *testing.T) (user, tty *os.File) {
	t.Helper()
	user, tty, err := NewTerminal()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = user.Close()
		_ = tty.Close()
	})
	return user, tty
}

// NewTerminal opens a pseudo terminal: what a program writes to the second file is read from the first, and what is
// written to the first is what its user types.
func NewTerminal() (user, tty *os.File, err error) {
	user, err = os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	raw, err := user.SyscallConn()
	if err != nil {
		return nil, nil, errors.Join(err, user.Close())
	}
	var number int
	var setErr error
	err = raw.Control(func(fd uintptr) {
		number, setErr = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		setErr = errors.Join(setErr, unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0),
			unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	})
	if err = errors.Join(err, setErr); err == nil {
		tty, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, user.Close())
	}
	return user, tty, nil
}

// Screen is what a terminal has shown so far.
type Screen struct {
	mu   sync.Mutex
	text strings.Builder
	Done chan struct{} // closed when nothing more will come
}

func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *Screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// Await returns when the screen has shown the text, or the context ends.
func (s *Screen) Await(ctx context.Context, text string) error {
	for !strings.Contains(s.String(), text) {
		if !pause.For(ctx, 10*time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil
}

// Terminal is a terminal whose screen can be read.
func Terminal(t *testing.T) (tty *os.File, shown *Screen) {
	t.Helper()
	user, tty := OpenTerminal(t)
	shown = &Screen{Done: make(chan struct{})}
	go func() {
		defer close(shown.Done)
		_, _ = io.Copy(shown, user) // ends with EIO when the last writer has closed
	}()
	return tty, shown
}
