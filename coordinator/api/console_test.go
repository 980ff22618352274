package api

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// shout is a guest that says everything once more, louder, until somebody types q.
func shout(_ context.Context, _ string, _ bool, stream io.ReadWriteCloser) error {
	defer stream.Close()
	typed := make([]byte, 100)
	for {
		n, err := stream.Read(typed)
		if errors.Is(err, io.EOF) || string(typed[:n]) == "q" {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := stream.Write([]byte(strings.ToUpper(string(typed[:n])))); err != nil {
			return err
		}
	}
}

type consoleClient = connect.BidiStreamForClient[berthv1.ConsoleRequest, berthv1.ConsoleResponse]

func say(t *testing.T, console *consoleClient, text, want string) {
	t.Helper()
	if err := console.Send(&berthv1.ConsoleRequest{Data: []byte(text)}); err != nil {
		t.Fatal(err)
	}
	if heard, err := console.Receive(); err != nil || string(heard.GetData()) != want {
		t.Fatalf("%q was answered with %q, %v; want %q", text, heard.GetData(), err, want)
	}
}

// A follower passes both directions on, key by key, and whoever ends it ends it for all.
func TestAConsoleThroughAFollower(t *testing.T) {
	c := newCloud(t, 3)
	leading := c.leader()
	leading.addVM(model.VM{ID: "u1", Name: "web", Holder: ""})
	var asked []string
	for _, m := range c.members {
		m.control.console = func(ctx context.Context, vm string, force bool, stream io.ReadWriteCloser) error {
			asked = append(asked, vm)
			if !force {
				return &lead.Error{Code: lead.Busy, Subject: "vm/web", Message: "somebody has it", NextStep: "--force takes it"}
			}
			return shout(ctx, vm, force, stream)
		}
	}
	client := c.follower().operator()
	open := func(force bool) *consoleClient {
		console := client.Console(t.Context())
		c.check(console.Send(&berthv1.ConsoleRequest{Vm: "web", Force: force}))
		t.Cleanup(func() {
			_ = console.CloseRequest()
			_ = console.CloseResponse()
		})
		return console
	}
	_, err := open(false).Receive()
	wantRefusal(t, err, rpc.Busy, "vm/web")

	console := open(true)
	say(t, console, "hello", "HELLO")
	say(t, console, "you", "YOU")
	c.check(console.Send(&berthv1.ConsoleRequest{Data: []byte("q")}))
	if _, err := console.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("the guest's end arrives as %v", err)
	}

	console = open(true)
	say(t, console, "hello", "HELLO")
	c.check(console.CloseRequest())
	if _, err := console.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("one's own end arrives as %v", err)
	}
	if strings.Join(asked, " ") != "u1 u1 u1" {
		t.Errorf("control was asked for %q", asked)
	}
	unknown := client.Console(t.Context())
	c.check(unknown.Send(&berthv1.ConsoleRequest{Vm: "db"}))
	_, err = unknown.Receive()
	wantRefusal(t, err, rpc.NotFound, "vm/db")
	_ = unknown.CloseRequest()
	_ = unknown.CloseResponse()
}

// A coordinator that stops lets consoles go, though neither side says a word.
func TestAConsoleEndsWithItsCoordinator(t *testing.T) {
	c := newCloud(t, 1)
	leading := c.leader()
	leading.addVM(model.VM{ID: "u1", Name: "web"})
	joined, released := make(chan struct{}), make(chan error, 1)
	leading.control.console = func(ctx context.Context, _ string, _ bool, stream io.ReadWriteCloser) error {
		close(joined)
		go func() {
			<-ctx.Done()
			_ = stream.Close()
		}()
		_, err := stream.Read(make([]byte, 1))
		released <- err
		return context.Cause(ctx)
	}
	console := leading.operator().Console(t.Context())
	c.check(console.Send(&berthv1.ConsoleRequest{Vm: "web"}))
	<-joined
	leading.api.Stop()
	select {
	case err := <-released:
		if err == nil {
			t.Error("somebody typed")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the console is still read")
	}
	if _, err := console.Receive(); rpc.Detail(err).GetCode() != rpc.Unavailable {
		t.Errorf("the caller was told %v", err)
	}
	_ = console.CloseRequest()
	_ = console.CloseResponse()
}
