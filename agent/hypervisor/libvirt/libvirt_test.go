package libvirt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
)

func open(t *testing.T, uri string) *Hypervisor {
	t.Helper()
	h := Open(uri, hclog.NewNullLogger())
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func await(t *testing.T, what string, check func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if check() {
			return
		}
	}
	t.Fatalf("never %s", what)
}

// libvirt's own test driver needs no daemon, so the reading paths run against the real library.
func TestReadsFromTheTestDriver(t *testing.T) {
	h := open(t, "test:///default")
	await(t, "connected", func() bool { up, _ := h.Connected(); return up })
	domains, err := h.Domains(t.Context())
	if err != nil || len(domains) != 1 {
		t.Fatalf("got %+v, %v, want the one domain that the driver comes with", domains, err)
	}
	d := domains[0]
	if d.Name != "test" || d.State != hypervisor.Running || d.MemoryBytes != 8<<30 || d.VCPUs != 2 || d.Managed || !d.Persistent {
		t.Errorf("got %+v", d)
	}
	info, err := h.Host(t.Context())
	if err != nil || info.MemoryBytes <= 0 || info.CPUs <= 0 || len(info.Errors) > 0 {
		t.Errorf("host: %+v, %v", info, err)
	}
	stats, _, err := h.Stats(t.Context())
	if err != nil || len(stats) != 1 || stats[0].CPUTime == nil || *stats[0].VCPUs != 2 {
		t.Errorf("stats: %+v, %v", stats, err)
	}
	if err := h.Destroy(t.Context(), d.UUID, 1); !errors.Is(err, hypervisor.ErrOtherEpoch) {
		t.Errorf("destroy of a domain that is not ours: %v", err)
	}
}

func TestEventsFromTheTestDriver(t *testing.T) {
	h := open(t, "test:///default")
	await(t, "connected", func() bool { up, _ := h.Connected(); return up })
	events := make(chan hypervisor.Event, 16)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = h.Subscribe(ctx, func(e hypervisor.Event) { events <- e }) }()
	for subscribed := false; !subscribed; {
		h.Publish(hypervisor.Event{Kind: "are you there?"})
		select {
		case <-events:
			subscribed = true
		case <-time.After(time.Millisecond):
		}
	}
	domains, err := h.Domains(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The driver keeps its domains in one connection's memory, but all connections of a process share them.
	if err := h.Shutdown(t.Context(), domains[0].UUID); err != nil {
		t.Fatal(err)
	}
	e := hypervisor.Event{}
	for deadline := time.After(20 * time.Second); e.UUID == ""; {
		select {
		case e = <-events:
		case <-deadline:
			t.Fatal("no event")
		}
	}
	if e.UUID != domains[0].UUID || e.Name != "test" || e.Kind != "stopped" || e.Detail != "shut down" {
		t.Errorf("got %+v", e)
	}
}

func TestNoDaemon(t *testing.T) {
	h := open(t, "qemu+unix:///system?socket="+filepath.Join(t.TempDir(), "nobody"))
	await(t, "tried", func() bool { _, err := h.Connected(); return err != nil && strings.Contains(err.Error(), "nobody") })
	if up, err := h.Connected(); up || !errors.Is(err, hypervisor.ErrUnavailable) {
		t.Errorf("got %v, %v", up, err)
	}
	if _, err := h.Domains(t.Context()); !errors.Is(err, hypervisor.ErrUnavailable) {
		t.Errorf("Domains: %v", err)
	}
	err := h.Start(t.Context(), "<domain type='qemu'><name>a</name><memory>1</memory></domain>")
	if !errors.Is(err, hypervisor.ErrUnavailable) || errors.Is(err, hypervisor.ErrAmbiguous) {
		t.Errorf("Start: got %v: nothing was sent, so nothing is in doubt", err)
	}
}

// A daemon that takes connections and never says a word must hold nobody up.
func TestStuckDaemon(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stuck")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	h := open(t, "qemu+unix:///system?socket="+path)
	start := time.Now()
	if _, err := h.Domains(t.Context()); !errors.Is(err, hypervisor.ErrUnavailable) {
		t.Errorf("Domains: %v", err)
	}
	if took := time.Since(start); took > queryTimeout+time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestAbandonedCallIsNeverBegun(t *testing.T) {
	p := &pool{uri: "test:///default"}
	if err := eventLoop(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, began, err := ask(ctx, p, func(*libvirtgo.Connect) (int, error) { t.Error("called"); return 0, nil })
	if began || !errors.Is(err, context.Canceled) {
		t.Errorf("began %v, %v", began, err)
	}
	p.drain(true)
}

func TestHungCallIsLeftBehind(t *testing.T) {
	p := &pool{uri: "test:///default"}
	if err := eventLoop(); err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, began, err := ask(ctx, p, func(*libvirtgo.Connect) (int, error) { <-release; return 1, nil })
	if !began || !errors.Is(err, errHung) {
		t.Errorf("began %v, %v", began, err)
	}
	for range maxCalls - 1 {
		if _, err := p.enter(); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := ask(t.Context(), p, func(*libvirtgo.Connect) (int, error) { return 1, nil }); !errors.Is(err, hypervisor.ErrUnavailable) {
		t.Errorf("one call too many: %v", err)
	}
	close(release)
	await(t, "given back", func() bool { n, _ := p.waiting(); return n == maxCalls-1 })
	p.drain(true)
}

func TestVersions(t *testing.T) {
	if err := judgeVersions(9_000_000, 6_000_000, MinVersion); err != nil {
		t.Error(err)
	}
	err := judgeVersions(5_010_002, 9_000_000, MinVersion)
	if !errors.Is(err, hypervisor.ErrTooOld) || !strings.Contains(err.Error(), "5.10.2") || !strings.Contains(err.Error(), "6.0.0") {
		t.Errorf("got %v, want both versions named", err)
	}
}

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]uint32{"9.0.0": 9_000_000, "6.10.2": 6_010_002, "11": 11_000_000} {
		if got, err := ParseVersion(text); err != nil || got != want || !strings.HasPrefix(versionText(got), text) {
			t.Errorf("%s: got %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "new", "9.x", "-1", "4000.0.0"} {
		if got, err := ParseVersion(text); err == nil {
			t.Errorf("%q: got %d, want an error", text, got)
		}
	}
}

func TestTooOld(t *testing.T) {
	h := OpenWith("test:///default", hclog.NewNullLogger(), Options{MinVersion: 99_000_000})
	t.Cleanup(func() { _ = h.Close() })
	await(t, "refused", func() bool { _, err := h.Connected(); return errors.Is(err, hypervisor.ErrTooOld) })
	if _, err := h.Domains(t.Context()); !errors.Is(err, hypervisor.ErrTooOld) {
		t.Errorf("Domains: %v", err)
	}
}

// While libvirtd owes the answer to a start, "not there" is not known, whoever asks.
func TestUnansweredStartIsNotAbsent(t *testing.T) {
	h := open(t, "test:///default")
	await(t, "connected", func() bool { up, _ := h.Connected(); return up })
	const uuid = "11111111-2222-4333-8444-555555555555"
	if _, err := h.Lookup(t.Context(), uuid); !errors.Is(err, hypervisor.ErrNotFound) {
		t.Fatalf("before: %v", err)
	}
	h.starting.Store(uuid, time.Now().Add(-time.Minute))
	if _, err := h.Lookup(t.Context(), uuid); !errors.Is(err, hypervisor.ErrUnavailable) {
		t.Errorf("Lookup: %v", err)
	}
	if _, err := h.Domains(t.Context()); !errors.Is(err, hypervisor.ErrUnavailable) {
		t.Errorf("Domains: %v", err)
	}
	h.starting.Delete(uuid)
	if _, err := h.Domains(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestExplain(t *testing.T) {
	for _, c := range []struct {
		code    libvirtgo.ErrorNumber
		message string
		want    error
	}{
		{libvirtgo.ERR_NO_DOMAIN, "m", hypervisor.ErrNotFound},
		{libvirtgo.ERR_OPERATION_TIMEOUT, "m", hypervisor.ErrBusy},
		{libvirtgo.ERR_OPERATION_ABORTED, "m", hypervisor.ErrAborted},
		{libvirtgo.ERR_MIGRATE_UNSAFE, "m", hypervisor.ErrUnsafe},
		{libvirtgo.ERR_ACCESS_DENIED, "m", hypervisor.ErrDenied},
		{libvirtgo.ERR_INTERNAL_ERROR, "qemu: Cannot allocate memory", hypervisor.ErrNoMemory},
		{libvirtgo.ERR_INTERNAL_ERROR, "No space left on device", hypervisor.ErrNoSpace},
	} {
		err := explain(fmt.Errorf("call: %w", libvirtgo.Error{Code: c.code, Message: c.message}))
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.message) {
			t.Errorf("code %d: got %v, want %v", c.code, err, c.want)
		}
	}
}

// libvirt's words never reach a user bare: ours are before them, with what can be done, whatever its number is.
func TestNoUserReadsLibvirtsWordsAlone(t *testing.T) {
	const words = "some words"
	for number := libvirtgo.ERR_OK; number < 200; number++ {
		for _, err := range []error{
			explain(libvirtgo.Error{Code: number, Message: words}),
			unanswered(libvirtgo.Error{Code: number, Message: words}), // on its way to explain
			unreachable("connecting", libvirtgo.Error{Code: number, Message: words}),
			untouched(libvirtgo.Error{Code: number, Message: words}),
		} {
			ours, theirs, is := strings.Cut(explain(err).Error(), "; libvirt says: ")
			cause, step, advised := strings.Cut(ours, ": ")
			if !is || theirs != words || !advised || cause == "" || step == "" || strings.Contains(ours, "virError") {
				t.Errorf("number %d: %q", number, explain(err))
			}
		}
	}
	plain := explain(libvirtgo.Error{Code: libvirtgo.ERR_OPERATION_FAILED, Message: words})
	if !errors.Is(plain, hypervisor.ErrFailed) {
		t.Errorf("got %q: this number means nothing by itself", plain)
	}
	for cause := range causes {
		if err := hypervisor.Said(cause, words); !strings.Contains(err.Error(), ": ") {
			t.Errorf("%q has no next step", err)
		}
	}
}

// QEMU's words about a disk that another process has locked become an error that names the disk, and libvirt's own text is gone.
func TestADiskThatAnotherQEMUHasIsHeld(t *testing.T) {
	for _, lock := range []string{`"write"`, `shared "write"`, `"consistent read"`} {
		err := explain(libvirtgo.Error{Code: libvirtgo.ERR_INTERNAL_ERROR, Message: "internal error: process exited while connecting to " +
			"monitor: 2026-11-24T12:00:00.1Z qemu-system-x86_64: -blockdev {...}: Failed to get " + lock + " lock\n" +
			"Is another process using the image [/srv/images/db [1.qcow2]?"})
		if !errors.Is(err, hypervisor.ErrHeld) || err.Error() != "disk /srv/images/db [1.qcow2 is held by another QEMU" {
			t.Errorf("%s: %v", lock, err)
		}
	}
}

func TestStates(t *testing.T) {
	for _, c := range []struct {
		state  libvirtgo.DomainState
		reason int
		want   hypervisor.State
		words  string
	}{
		{libvirtgo.DOMAIN_RUNNING, int(libvirtgo.DOMAIN_RUNNING_BOOTED), hypervisor.Running, "booted"},
		{libvirtgo.DOMAIN_BLOCKED, 0, hypervisor.Running, "unknown"},
		{libvirtgo.DOMAIN_SHUTDOWN, 0, hypervisor.Running, "shutting down"},
		{libvirtgo.DOMAIN_NOSTATE, 0, hypervisor.Running, "unknown"},
		{libvirtgo.DOMAIN_PAUSED, int(libvirtgo.DOMAIN_PAUSED_USER), hypervisor.Paused, "user"},
		{libvirtgo.DOMAIN_PAUSED, int(libvirtgo.DOMAIN_PAUSED_MIGRATION), hypervisor.PausedMigration, "migration"},
		{libvirtgo.DOMAIN_PAUSED, int(libvirtgo.DOMAIN_PAUSED_POSTCOPY_FAILED), hypervisor.PausedMigration, "post-copy failed"},
		{libvirtgo.DOMAIN_PAUSED, int(libvirtgo.DOMAIN_PAUSED_STARTING_UP), hypervisor.Starting, "starting up"},
		{libvirtgo.DOMAIN_PAUSED, int(libvirtgo.DOMAIN_PAUSED_CRASHED), hypervisor.Crashed, "guest panicked"},
		{libvirtgo.DOMAIN_SHUTOFF, int(libvirtgo.DOMAIN_SHUTOFF_MIGRATED), hypervisor.Shutoff, "migrated"},
		{libvirtgo.DOMAIN_CRASHED, 0, hypervisor.Crashed, "crashed"},
		{libvirtgo.DOMAIN_PMSUSPENDED, 0, hypervisor.Paused, "suspended by the guest"},
	} {
		if state, words := stateOf(c.state, c.reason); state != c.want || words != c.words {
			t.Errorf("%d/%d: got %s, %q, want %s, %q", c.state, c.reason, state, words, c.want, c.words)
		}
	}
}

func TestDataURI(t *testing.T) {
	for _, c := range []struct{ target, address, want string }{
		{"qemu+tls://host-b.example/system", "", "tcp://host-b.example"},
		{"qemu+tls://host-b:16514/system", "", "tcp://host-b"},
		{"qemu+tls://host-b/system", "10.0.0.2", "tcp://10.0.0.2"},
		{"qemu+tls://host-b/system", "fd00::2", "tcp://[fd00::2]"},
		{"qemu+tls://[fd00::3]/system", "", "tcp://[fd00::3]"},
	} {
		got, err := dataURI(hypervisor.MigrateOptions{TargetURI: c.target, DataAddress: c.address})
		if err != nil || got != c.want {
			t.Errorf("%s, %q: got %q, %v, want %q", c.target, c.address, got, err, c.want)
		}
	}
	if _, err := dataURI(hypervisor.MigrateOptions{TargetURI: "qemu:///system"}); !errors.Is(err, hypervisor.ErrUnsupported) {
		t.Errorf("a URI without a host: %v", err)
	}
}

// What was just read of a guest is not asked for once more: its devices are those of the document.
func TestADocumentThatWasJustReadIsNotReadAgain(t *testing.T) {
	h := open(t, "test:///default")
	await(t, "connected", func() bool { up, _ := h.Connected(); return up })
	const before, after = "/guest/diskimage1", "/srv/new.raw"
	_, err := query(t.Context(), h.connection, func(conn *libvirtgo.Connect) (struct{}, error) {
		d, err := conn.LookupDomainByName("test")
		if err != nil {
			return struct{}{}, err
		}
		defer free(d)
		text, err := d.GetXMLDesc(0)
		if err != nil {
			return struct{}{}, err
		}
		said, err := attachedBy(d, strings.ReplaceAll(text, before, after))
		if err != nil || len(said.Devices) == 0 || said.Devices[0].Source.Path != after {
			t.Errorf("by its document it has %+v, %v", said.Devices, err)
		}
		asked, err := attachedTo(d)
		if err != nil || len(asked.Devices) == 0 || asked.Devices[0].Source.Path != before {
			t.Errorf("libvirt says that it has %+v, %v", asked.Devices, err)
		}
		return struct{}{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
