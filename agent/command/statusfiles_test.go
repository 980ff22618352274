package command

import (
	"context"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"berth/agent/hypervisor/statusfiles"
)

// The doctor says whether libvirt's status files come to the agent, and which command starts the service.
func TestTheDoctorLooksForTheServiceOfStatusFiles(t *testing.T) {
	const tells = "status files|warn|"
	socket := filepath.Join(t.TempDir(), "run", "status-files.sock")
	if got := told(examineStatusFiles(t.Context(), socket)); !strings.HasPrefix(got, tells) || !strings.HasSuffix(got, "|"+statusfiles.Start) {
		t.Errorf("without a service: %s", got)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // a socket that was left behind is in nobody's way
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- passStatusFiles(ctx, hclog.NewNullLogger(), t.TempDir(), me.Username, socket) }()
		for told(examineStatusFiles(t.Context(), socket)) != "status files|ok|libvirt's are passed on to the agent|" {
			select {
			case err := <-ended:
				t.Fatal(err)
			default:
			}
		}
		if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the socket has mode %v, %v", info.Mode(), err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	other, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := other.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	if got := told(examineStatusFiles(t.Context(), socket)); !strings.HasPrefix(got, tells) || !strings.HasSuffix(got, "berth-status-files") {
		t.Errorf("with another service: %s", got)
	}
	_ = other.Close()
}

func TestTheServiceOfStatusFilesSaysWhatItLacks(t *testing.T) {
	for _, tc := range []struct{ account, listen, want string }{
		{"nobody-of-this-name", "/nowhere/socket", "--account"}, {"root", "", statusfiles.Start},
	} {
		err := passStatusFiles(t.Context(), hclog.NewNullLogger(), t.TempDir(), tc.account, tc.listen)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}
