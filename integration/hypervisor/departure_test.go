package hypervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/libvirt"
	"berth/integration/lab"
	"berth/shared/domxml"
	"berth/shared/units"
)

// attempts are many: on a busy machine libvirtd may be as fast as the one that waits for the end of the process.
const attempts = 10

// A guest that stands still is not waited for longer than its process lives: libvirtd says 200 ms later that it has gone.
func TestGuestHasLeftBeforeLibvirtdSaysSo(t *testing.T) {
	l, bench := raise(t)
	guest := domxml.Identity{UUID: "6e0f5d0a-3b51-4c8e-9d27-5d8f8a3f0004", Name: "leaving", Mark: domxml.Mark{Epoch: 1, Operation: "op"}}
	xml, err := domxml.Render(domxml.Spec{MemoryBytes: int64(64 * units.MiB), VCPUs: 1}, guest,
		domxml.Machine{DomainType: bench.DomainType, Arch: "x86_64", Type: "pc"})
	if err != nil {
		t.Fatal(err)
	}
	if err := bench.Source.Hypervisor.Start(t.Context(), xml); err != nil {
		t.Fatal(err)
	}
	for attempt := range attempts {
		from, to := l.Hosts[attempt%2], l.Hosts[1-attempt%2]
		if leftEarly(t, from, to, guest, uint64(attempt+1)) {
			return
		}
	}
	t.Errorf("%d guests were waited for until libvirtd said that they had gone", attempts)
}

// leftEarly migrates the guest and tells whether it had left before libvirtd said so. It ends when libvirtd has.
func leftEarly(t *testing.T, from, to *lab.Host, guest domxml.Identity, epoch uint64) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	source, target := openWithProcess(t, from, guest.UUID), open(t, to)
	over := make(chan struct{}, 1)
	go func() {
		_ = source.Subscribe(ctx, func(event hypervisor.Event) {
			if event.UUID == guest.UUID && event.Kind == hypervisor.EventStopped {
				over <- struct{}{}
			}
		})
	}()
	live, err := source.XML(ctx, guest.UUID)
	if err != nil {
		t.Fatal(err)
	}
	guest.Mark.Epoch = epoch + 1
	if live, err = domxml.WithIdentity(live, guest); err != nil {
		t.Fatal(err)
	}
	err = source.Migrate(ctx, guest.UUID, hypervisor.MigrateOptions{
		TargetURI: "qemu+tls://" + to.Name + "/system", DomainXML: live, Paused: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	seen, err := source.Lookup(ctx, guest.UUID)
	early := err == nil && seen.State == hypervisor.Absent && seen.JobActive
	if !early && !errors.Is(err, hypervisor.ErrNotFound) {
		t.Errorf("it has left and is here: %+v, %v", seen, err)
	}
	for _, process := range from.QEMUs() {
		if process.UUID == guest.UUID {
			t.Errorf("it has left and has a process: %+v", process)
		}
	}
	if err := target.Resume(ctx, guest.UUID, guest.Mark.Epoch); err != nil {
		t.Fatal(err)
	}
	select {
	case <-over:
	case <-ctx.Done():
		t.Fatal("libvirtd never said that it has gone")
	}
	return early
}

// openWithProcess is open for somebody who sees the guest's process, which is outside of the host under another number.
func openWithProcess(t *testing.T, host *lab.Host, guest string) *libvirt.Hypervisor {
	t.Helper()
	dir := t.TempDir()
	for _, process := range host.QEMUs() {
		if process.UUID != guest {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, process.Name+".pid"), fmt.Append(nil, process.PID), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return openWith(t, host, libvirt.Options{RunDir: dir, VirtType: "qemu"})
}
