package cli

import (
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

	berthv1 "berth/shared/gen/berth/v1"
)

// openTerminal opens a pseudo terminal: what a program writes to the second file is read from the first, and what is
// written to the first is what its user types.
func openTerminal(t *testing.T) (user, tty *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = user.Close() })
	raw, err := user.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var number int
	var setErr error
	err = raw.Control(func(fd uintptr) {
		number, setErr = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		setErr = errors.Join(setErr, unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0),
			unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	})
	if err := errors.Join(err, setErr); err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tty.Close() })
	return user, tty
}

// screen is what a terminal has shown so far.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
	done chan struct{} // closed when nothing more will come
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// await returns when the screen has shown the text, or the context ends.
func (s *screen) await(ctx context.Context, text string) error {
	for !strings.Contains(s.String(), text) {
		if !pause(ctx, 10*time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil
}

func terminal(t *testing.T) (tty *os.File, shown *screen) {
	t.Helper()
	user, tty := openTerminal(t)
	shown = &screen{done: make(chan struct{})}
	go func() {
		defer close(shown.done)
		_, _ = io.Copy(shown, user) // ends with EIO when the last writer has closed
	}()
	return tty, shown
}

// A person who watches a migration sees a bar with its figures, full at the end, and the result below it.
func TestMigrationShowsABarOnATerminal(t *testing.T) {
	tty, shown := terminal(t)
	f := steady()
	f.watchOp = func(ctx context.Context, r *berthv1.WatchOperationRequest, send send) error {
		for _, step := range []struct {
			sent int64
			show string
		}{{20, " 16% [="}, {60, " 47% [="}, {120, " 94% [="}} {
			err := send(&berthv1.WatchOperationResponse{
				Operation: cannedOperation("migrate", running),
				Progress: &berthv1.MigrationStats{
					ElapsedSeconds: 0.3, DataTotalBytes: 128 << 20, DataProcessedBytes: step.sent << 20,
					DataRemainingBytes: (128 - step.sent) << 20, MemoryBps: 70 << 20,
				},
			})
			if err := errors.Join(err, shown.await(ctx, step.show)); err != nil {
				return err
			}
		}
		return migrates()(ctx, r, send)
	}
	w, _ := newWorld(t, f)
	var out strings.Builder
	exit := w.runTo(t.Context(), &out, tty, "vm", "migrate", "web1", "--best", "--timeout", "10s")
	_ = tty.Close()
	<-shown.done
	if exit != Done || !strings.HasPrefix(out.String(), "vm/web1 running on node2: moved from node1") {
		t.Errorf("exit %d, %q", exit, out.String())
	}
	for _, want := range []string{
		"web1 node1 -> node2", "60 MiB sent, 68 MiB left, 70 MiB/s, 300ms",
		"100%", "132 MiB sent, 70 MiB/s, downtime 185ms, hand-over 45ms",
	} {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("the screen never showed %q", want)
		}
	}
	if t.Failed() {
		t.Logf("the screen at the end: %q", shown.String()[max(0, len(shown.String())-500):])
	}
}

// A terminal that cannot move its cursor gets lines.
func TestADumbTerminalGetsLines(t *testing.T) {
	f := steady()
	f.watchOp = migrates()
	w, _ := newWorld(t, f)
	w.env = map[string]string{"TERM": "dumb"}
	tty, shown := terminal(t)
	if exit := w.runTo(t.Context(), io.Discard, tty, "vm", "migrate", "web1", "--best"); exit != Done {
		t.Errorf("exit %d", exit)
	}
	_ = tty.Close()
	<-shown.done
	if got := shown.String(); got != "vm/web1: migrating from node1 to node2 (operation 3nqk7d2m0x1ab)\r\n" {
		t.Errorf("the screen showed %q", got)
	}
}

// What cannot be taken back is asked for where somebody can answer.
func TestConfirmation(t *testing.T) {
	for reply, want := range map[string]Exit{"y\n": Done, "YES\n": Done, "n\n": Failed, "\n": Failed, "what?\n": Failed} {
		f := steady()
		w, _ := newWorld(t, f)
		user, tty := openTerminal(t)
		if _, err := user.WriteString(reply); err != nil {
			t.Fatal(err)
		}
		w.in = tty
		said := w.run("vm", "delete", "web1")
		if said.exit != want || !strings.HasPrefix(said.errOut, "Forget vm/web1? Disks that were made for it go with it. [y/N] ") {
			t.Errorf("%q: exit %d, %q", reply, said.exit, said.errOut)
		}
		if deleted := len(asked[berthv1.DeleteVMRequest](f)) == 1; deleted != (want == Done) {
			t.Errorf("%q: deleted is %v", reply, deleted)
		}
	}
}
