package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
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

// terminal is one whose screen can be looked at when everything has been written.
func terminal(t *testing.T) (tty *os.File, screen func() string) {
	t.Helper()
	user, tty := openTerminal(t)
	read := make(chan string, 1)
	go func() {
		var all strings.Builder
		_, _ = io.Copy(&all, user) // ends with EIO when the last writer has closed
		read <- all.String()
	}()
	return tty, func() string {
		_ = tty.Close()
		return <-read
	}
}

// A person who watches a migration sees a bar with its figures, full at the end, and the result below it.
func TestMigrationShowsABarOnATerminal(t *testing.T) {
	f := steady()
	f.watchOp = func(ctx context.Context, r *berthv1.WatchOperationRequest, send send) error {
		op := cannedOperation("migrate", running)
		for i := range 6 {
			stats := &berthv1.MigrationStats{
				ElapsedSeconds: float64(i) / 10, DataTotalBytes: 128 << 20, DataProcessedBytes: int64(i*20) << 20,
				DataRemainingBytes: int64(128-i*20) << 20, MemoryBps: 70 << 20,
			}
			if err := send(&berthv1.WatchOperationResponse{Operation: op, Progress: stats}); err != nil {
				return err
			}
			time.Sleep(60 * time.Millisecond) // the bar is drawn ten times a second
		}
		return migrates()(ctx, r, send)
	}
	w, _ := newWorld(t, f)
	tty, screen := terminal(t)
	var out strings.Builder
	exit := w.runTo(t.Context(), &out, tty, "vm", "migrate", "web1", "--best")
	shown := screen()
	if exit != Done || !strings.HasPrefix(out.String(), "vm/web1 running on node2: moved from node1") {
		t.Errorf("exit %d, %q", exit, out.String())
	}
	for _, want := range []string{
		"web1 node1 -> node2", " 47% [=", "60 MiB sent, 68 MiB left, 70 MiB/s, 300ms",
		"100%", "132 MiB sent, 70 MiB/s, downtime 185ms, hand-over 45ms",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("the screen never showed %q:\n%q", want, shown)
		}
	}
	if t.Failed() || testing.Verbose() {
		t.Logf("screen:\n%s", shown)
	}
}

// A terminal that cannot move its cursor gets lines.
func TestADumbTerminalGetsLines(t *testing.T) {
	f := steady()
	f.watchOp = migrates()
	w, _ := newWorld(t, f)
	w.env = map[string]string{"TERM": "dumb"}
	tty, screen := terminal(t)
	if exit := w.runTo(t.Context(), io.Discard, tty, "vm", "migrate", "web1", "--best"); exit != Done {
		t.Errorf("exit %d", exit)
	}
	if shown := screen(); shown != "vm/web1: migrating from node1 to node2 (operation 3nqk7d2m0x1ab)\r\n" {
		t.Errorf("the screen showed %q", shown)
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
		if said.exit != want || !strings.HasPrefix(said.errOut, "Forget vm/web1? Its disks stay. [y/N] ") {
			t.Errorf("%q: exit %d, %q", reply, said.exit, said.errOut)
		}
		if deleted := len(asked[berthv1.DeleteVMRequest](f)) == 1; deleted != (want == Done) {
			t.Errorf("%q: deleted is %v", reply, deleted)
		}
	}
}
