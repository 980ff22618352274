// Package hypervisortest has one suite that every hypervisor.Hypervisor must pass: the fake in unit tests, libvirt in the
// lab. What holds for one then holds for the other, so the agent can be tested on the fake.
package hypervisortest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
)

// Host is one hypervisor under test.
type Host struct {
	Hypervisor hypervisor.Hypervisor
	URI        string // by which the other host's libvirtd reaches it

	// Forget restarts the daemon in a way that it does not know a guest any more, whose process runs on. EndProcess ends that
	// process.
	Forget, EndProcess func(t *testing.T, name, uuid string)
}

// Bench is what a case works on: two hosts that can migrate to each other, fresh or not.
type Bench struct {
	Source, Target Host
	DomainType     string // of the guests that the cases start: kvm or qemu
	Pool           string // each host has a storage pool of its own by this name, with 64 MiB to spare
	Shared         string // both hosts see the same storage pool by this name
}

// Case is one promise.
type Case struct {
	Name string
	Run  func(t *testing.T, bench Bench)
}

// Run checks every case on a bench of its own. For virtual time, wrap Cases instead.
func Run(t *testing.T, open func(t *testing.T) Bench) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) { c.Run(t, open(t)) })
	}
}

// Cases are all promises.
func Cases() []Case {
	return []Case{
		{"host", host},
		{"life of a domain", life},
		{"two domains never share a UUID or name", clashes},
		{"XML that is none", malformed},
		{"what is not there", absent},
		{"another epoch is not touched", otherEpoch},
		{"states that do not fit", wrongState},
		{"a suspended domain waits", suspend},
		{"a guest restarts in place", reboot},
		{"marks come and go", marks},
		{"what a domain would be started with", describe},
		{"definitions outlive their domains", definitions},
		{"migration leaves it paused on the target", migrate},
		{"migration takes the definition along", migrateDefinition},
		{"figures are those of the last migration", back},
		{"migration can be aborted", abort},
		{"migration to where it runs already", clash},
		{"migration into the void", unreachable},
		{"a guest that was forgotten is not absent", forgotten},
		{"a definition of a guest that was forgotten is not off", forgottenDefinition},
		{"an ended context", ended},
		{"what a node reports of itself", reports},
		{"life of a volume", volumeLife},
		{"thin copies", thinCopies},
		{"what is beside a volume", besideVolume},
		{"pools that are not there", noPool},
		{"volumes that cannot be", refusedVolumes},
		{"uploads", uploads},
		{"uploads that fail leave nothing", brokenUploads},
		{"a shared pool is seen by both", sharedPool},
		{"a lock is seen by both hosts of a shared pool", sharedLock},
		{"a volume in use is not removed", inUse},
		{"what a guest runs with can be started with", devices},
		{"a device is attached while it runs", changing},
		{"its size is changed while it runs", resizing},
		{"snapshots of disks", snapshots},
		{"what keeps a guest on its host is told", bindings},
		{"disks grow under a running guest", growing},
		{"a disk without its volume", lostVolume},
		{"migration copies disks", copyDisks},
		{"migration that copies disks can be aborted", abortCopy},
		{"migration leaves shared disks where they are", shareDisks},
		{"migration leaves no local disk behind", forgottenDisk},
		{"console", consoles},
	}
}

// patience is far beyond what any step takes, also under software emulation on a busy machine.
const patience = 60 * time.Second

// guest is a small VM of a case: firmware only, so there is something to migrate and nothing to boot.
type guest struct {
	id  domxml.Identity
	xml string
}

func newGuest(t *testing.T, bench Bench) guest {
	t.Helper()
	id := domxml.Identity{UUID: newUUID(), Mark: domxml.Mark{Epoch: 1, Operation: "op-start", Node: "source"}}
	id.Name = "suite-" + id.UUID[:8]
	xml, err := domxml.Render(domxml.Spec{MemoryBytes: 64 << 20, VCPUs: 1}, id,
		domxml.Machine{DomainType: bench.DomainType, Arch: "x86_64", Type: "pc"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, host := range []Host{bench.Source, bench.Target} {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			domain, err := host.Hypervisor.Lookup(ctx, id.UUID)
			if err == nil && domain.State != hypervisor.Shutoff {
				err = host.Hypervisor.Destroy(ctx, id.UUID, domain.Epoch)
			}
			if err == nil && domain.Persistent {
				err = host.Hypervisor.Undefine(ctx, id.UUID, domain.Epoch)
			}
			if err != nil && !errors.Is(err, hypervisor.ErrNotFound) {
				t.Errorf("clean up: %v", err)
			}
			cancel()
		}
	})
	return guest{id, xml}
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func (g guest) start(t *testing.T, on hypervisor.Hypervisor) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := on.Start(ctx, g.xml); err != nil {
		t.Fatal(err)
	}
}

// moved is the guest's live XML with the target's mark.
func (g guest) moved(t *testing.T, on hypervisor.Hypervisor, epoch uint64) string {
	t.Helper()
	xml, err := on.XML(t.Context(), g.id.UUID)
	if err != nil {
		t.Fatal(err)
	}
	id := g.id
	id.Mark = domxml.Mark{Epoch: epoch, Operation: "op-migrate", Node: "target"}
	if xml, err = domxml.WithIdentity(xml, id); err != nil {
		t.Fatal(err)
	}
	return xml
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %q", what, err, want)
	}
}

// eventually waits until the domain looks as the check wants it.
func eventually(t *testing.T, on hypervisor.Hypervisor, uuid, what string, check func(hypervisor.Domain, error) bool) {
	t.Helper()
	var domain hypervisor.Domain
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if domain, err = on.Lookup(t.Context(), uuid); check(domain, err) {
			return
		}
	}
	t.Fatalf("domain never became %s: %+v, %v", what, domain, err)
}

func isAbsent(_ hypervisor.Domain, err error) bool { return errors.Is(err, hypervisor.ErrNotFound) }

func inState(state hypervisor.State) func(hypervisor.Domain, error) bool {
	return func(d hypervisor.Domain, err error) bool { return err == nil && d.State == state }
}

// listener keeps the events of one domain.
type listener struct {
	mu     sync.Mutex
	events []hypervisor.Event
}

func listen(t *testing.T, on hypervisor.Hypervisor, uuid string) *listener {
	t.Helper()
	l := &listener{}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = on.Subscribe(ctx, func(e hypervisor.Event) {
			if e.UUID == uuid {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.events = append(l.events, e)
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	time.Sleep(50 * time.Millisecond) // until it is subscribed
	return l
}

func (l *listener) await(t *testing.T, kind, detail string) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		l.mu.Lock()
		found := slices.ContainsFunc(l.events, func(e hypervisor.Event) bool { return e.Kind == kind && e.Detail == detail })
		l.mu.Unlock()
		if found {
			return
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Errorf("no event %s (%s), only %+v", kind, detail, l.events)
}

// stands checks that the last event of what the guest does, before it stopped, is not that it runs.
func (l *listener) stands(t *testing.T, where string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var last hypervisor.Event
	for _, e := range l.events {
		if e.Kind == hypervisor.EventStarted || e.Kind == hypervisor.EventResumed || e.Kind == hypervisor.EventSuspended {
			last = e
		}
	}
	if last.Kind != hypervisor.EventSuspended && last.Detail != hypervisor.DetailMigrated {
		t.Errorf("on %s the guest stands still, and was last told to have %s: %+v", where, last.Kind, l.events)
	}
}
