package command

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/agent/hypervisor/fake"
	"berth/agent/hypervisor/statusfiles"
	"berth/agent/jobs"
	"berth/shared/domxml"
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
		service := &statusfiles.Service{Folder: t.TempDir(), Log: hclog.NewNullLogger()}
		go func() { ended <- passStatusFiles(ctx, service, me.Username, socket) }()
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
		err := passStatusFiles(t.Context(), &statusfiles.Service{Folder: t.TempDir(), Log: hclog.NewNullLogger()}, tc.account, tc.listen)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}

// A guest was moved to another file and ended while the agent was away. Before it tells anybody that the guest is gone the next agent knows
// what it ran with; one that has left for another node ran on there.
func TestAnAgentHearsTheLastWordsOfGuestsBeforeItBegins(t *testing.T) {
	folder, keep, socket := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "status-files.sock")
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	service := &statusfiles.Service{Folder: folder, Keep: keep, Log: hclog.NewNullLogger()}
	go func() { ended <- passStatusFiles(ctx, service, me.Username, socket) }()
	defer func() { cancel(); <-ended }()
	const stays, leaves = "11111111-2222-4333-8444-555555555555", "22222222-2222-4333-8444-555555555555"
	for name, uuid := range map[string]string{"stays": stays, "leaves": leaves} {
		text := fmt.Sprintf(`<domstatus><domain type='kvm'><name>%s</name><uuid>%s</uuid><metadata>
<berth:vm xmlns:berth="%s" epoch="7" operation="op" node="n1"/></metadata><memory unit='KiB'>65536</memory><vcpu>1</vcpu><os><type>hvm</type></os>
<devices><disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='/srv/copy.qcow2'/><target dev='vda' bus='virtio'/></disk>
</devices></domain></domstatus>`, name, uuid, domxml.Namespace)
		if err := os.WriteFile(filepath.Join(folder, name+".xml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for kept := 0; kept < 2; time.Sleep(time.Millisecond) {
		entries, err := os.ReadDir(keep)
		if err != nil {
			t.Fatal(err)
		}
		kept = 0
		for _, entry := range entries {
			if strings.HasPrefix(entry.Name(), "live-") {
				kept++
			}
		}
	}
	for _, name := range []string{"stays", "leaves"} {
		if err := os.Remove(filepath.Join(folder, name+".xml")); err != nil {
			t.Fatal(err)
		}
	}
	work, err := jobs.Open(jobs.Config{
		Journal: filepath.Join(t.TempDir(), "journal"), Hypervisor: fake.NewWire().Host("n1"), NodeID: "n1", Logger: hclog.NewNullLogger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer work.Close()
	left := func(_ context.Context, uuid, _ string) bool { return uuid == leaves }
	hearLastWords(t.Context(), socket, left, work.Saw, hclog.NewNullLogger())
	runs := work.LastRuns()
	if len(runs) != 1 || runs[0].UUID != stays || runs[0].Epoch != 7 ||
		runs[0].Devices.GetDevices()[0].GetSource().GetPath() != "/srv/copy.qcow2" {
		t.Errorf("it tells %v", runs)
	}
}
