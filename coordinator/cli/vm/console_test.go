package vm_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pause"
	"berth/shared/rpc"
)

// What is piped in is typed, and what the guest answers is printed as it is.
func TestAConsoleInAPipe(t *testing.T) {
	f := clitest.Steady()
	w, _ := clitest.NewSite(t, f)
	w.In = strings.NewReader("uname\r\x1dnot this")
	said := w.Run("vm", "console", "web1", "--force")
	if said.Exit != term.Done || !strings.HasPrefix(said.Out, "uname\r") || strings.Contains(said.Out, "not this") {
		t.Errorf("%+v", said)
	}
	if !strings.Contains(said.ErrOut, "Ctrl-] leaves it") {
		t.Errorf("the way out is not told: %q", said.ErrOut)
	}
	if first := clitest.Asked[berthv1.ConsoleRequest](f)[0]; first.GetVm() != "web1" || !first.GetForce() {
		t.Errorf("asked for %v", first)
	}
	w.In = strings.NewReader("stop\r")
	if said := w.Run("vm", "console", "web1", "-q"); said.Exit != term.Done || said.Out != "bye" || said.ErrOut != "" {
		t.Errorf("the guest ends it: %+v", said)
	}
	f.OnConsole = func(*connect.BidiStream[berthv1.ConsoleRequest, berthv1.ConsoleResponse]) error {
		return rpc.Errorf(connect.CodeFailedPrecondition, &berthv1.ErrorDetail{Code: rpc.Busy, NextStep: "--force takes it"}, "somebody has it")
	}
	w.In = strings.NewReader("")
	if said := w.Run("vm", "console", "web1"); said.Exit != term.Failed || !strings.Contains(
		said.ErrOut, "berth: somebody has it\nnext step: --force takes it",
	) {
		t.Errorf("a refusal: %+v", said)
	}
	f.OnConsole = func(stream *connect.BidiStream[berthv1.ConsoleRequest, berthv1.ConsoleResponse]) error {
		return errors.Join(
			stream.Send(&berthv1.ConsoleResponse{Data: []byte("login: ")}), connect.NewError(connect.CodeUnavailable, errors.New("gone")),
		)
	}
	if said := w.Run("vm", "console", "web1"); said.Exit != term.Failed || said.Out != "login: " || !strings.Contains(
		said.ErrOut, "the console was cut off",
	) {
		t.Errorf("cut off: %+v", said)
	}
}

// On a terminal every key goes to the guest, Ctrl-C too; afterwards the terminal is as it was, whoever ended it.
func TestAConsoleOnATerminal(t *testing.T) {
	for name, last := range map[string]string{"the person leaves": "\x1d", "the guest stops": "stop\r"} {
		t.Run(name, func(t *testing.T) {
			user, tty := clitest.OpenTerminal(t)
			before, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			w, _ := clitest.NewSite(t, clitest.Steady())
			w.In = tty
			shown := &clitest.Screen{}
			ended := make(chan term.Exit, 1)
			go func() { ended <- w.RunTo(t.Context(), shown, io.Discard, "vm", "console", "web1") }()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			for now := before; now.Lflag&unix.ICANON != 0; { // what is typed too early would not come as keys
				if !pause.For(ctx, 10*time.Millisecond) {
					t.Fatal("the terminal was not set up")
				}
				if now, err = unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := user.WriteString("\x03"); err != nil {
				t.Fatal(err)
			}
			if err := shown.Await(ctx, "\x03"); err != nil {
				t.Fatalf("Ctrl-C did not reach the guest: %q", shown)
			}
			if _, err := user.WriteString(last); err != nil {
				t.Fatal(err)
			}
			select {
			case exit := <-ended:
				if exit != term.Done {
					t.Errorf("exit %d", exit)
				}
			case <-ctx.Done():
				t.Fatal("it did not end")
			}
			after, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("the terminal is not as it was (-before +after):\n%s", diff)
			}
			_, _ = user.WriteString("\n") // for whoever still reads
		})
	}
}
