package fence

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/coordinator/model"
)

// served has a service listen that runs the fence agents of the Runner's directories, and gives a Runner that asks it.
func served(t *testing.T, r *Runner) *Runner {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "socket")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer conn.Close()
				_ = serve(t.Context(), conn, r.Directories) // whoever asked has been told
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		work.Wait()
	})
	return &Runner{Socket: socket, Directories: []string{"/nowhere"}}
}

// Who asks the service has only the programs of the service's folders run, and is told in time what is wrong.
func TestTheServiceRunsNothingElse(t *testing.T) {
	r := agent(t, `touch ran; exit 0`)
	asks := served(t, r)
	for what, text := range map[string]string{
		"no request":          "GET / HTTP/1.1\r\n\r\n",
		"another action":      `{"device":{"method":"command","program":"fence_test"},"action":"on"}`,
		"two actions":         `{"device":{"method":"command","program":"fence_test","arguments":{"action":"off"}},"action":"status"}`,
		"a line in an answer": `{"device":{"method":"command","program":"fence_test","arguments":{"plug":"a\nb=c"}},"action":"off"}`,
		"a path":              `{"device":{"method":"command","program":"../fence_test"},"action":"off"}`,
		"a shell":             `{"device":{"method":"command","program":"/bin/sh"},"action":"off"}`,
		"too much":            `{"device":{"program":"` + strings.Repeat("x", maxRequest) + `"}}`,
	} {
		conn, err := net.Dial("unix", asks.Socket)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(conn, text) }() // which the service may not read to its end
		said, err := io.ReadAll(conn)
		if !strings.Contains(string(said), `"error":"`) {
			t.Errorf("%s is answered %q, %v", what, said, err)
		}
		conn.Close()
	}
	if _, err := os.Stat(filepath.Join(r.Directories[1], "ran")); !os.IsNotExist(err) {
		t.Errorf("something was run: %v", err)
	}
}

// Where nothing listens, or what does ends, nothing is run by the coordinator itself instead.
func TestWithoutItsServiceNothingIsRun(t *testing.T) {
	r := agent(t, `touch ran; exit 0`)
	r.Socket = filepath.Join(t.TempDir(), "socket")
	wants := func(next string) {
		t.Helper()
		_, err := r.On(t.Context(), device(time.Second))
		if !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), next) {
			t.Errorf("error %v, want one that says %s", err, next)
		}
	}
	wants("systemctl status berth-fence.socket")
	listener, err := net.Listen("unix", r.Socket)
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	})
	wants("journalctl -u 'berth-fence@*'")
	listener.Close()
	work.Wait()
	if _, err := os.Stat(filepath.Join(r.Directories[1], "ran")); !os.IsNotExist(err) {
		t.Errorf("the coordinator has run it: %v", err)
	}
}

// A service that says nothing holds nobody up for longer than the device may take, and one that says too much fills no memory.
func TestAServiceThatDoesNotAnswerIsNotWaitedFor(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "socket")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		silent, err := listener.Accept()
		if err != nil {
			return
		}
		defer silent.Close()
		loud, err := listener.Accept()
		if err != nil {
			return
		}
		defer loud.Close()
		_, _ = io.WriteString(loud, `{"said":"`+strings.Repeat("x", 4*maxAnswer))
	})
	defer work.Wait()
	defer listener.Close()
	r := &Runner{Socket: socket}
	if _, err := r.On(t.Context(), device(time.Second)); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "no answer within 1s") {
		t.Errorf("it says nothing: %v", err)
	}
	if _, err := r.On(t.Context(), device(time.Second)); !errors.Is(err, ErrUnknown) {
		t.Errorf("it says too much: %v", err)
	}
}

// Devices that tell nothing are not asked about, and errors keep what they are.
func TestWhatTheServiceSaysOfIdentities(t *testing.T) {
	asks := served(t, &Runner{Directories: []string{t.TempDir()}})
	for device, says := range map[*model.FenceDevice]string{
		{Method: model.FenceCommand, Program: "fence_apc"}:     "does not tell which machine",
		{Method: model.FenceCommand, Program: "fence_ipmilan"}: "ipmitool is not on",
	} {
		if id, err := asks.Identity(t.Context(), *device); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %q, %v", device.Program, id, err)
		}
	}
}
