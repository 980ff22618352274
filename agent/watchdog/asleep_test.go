package watchdog

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/agent/hypervisor"
	"berth/agent/hypervisor/fake"
)

// guests remember what was done to them.
type guests struct {
	mu  sync.Mutex
	did []string
}

func (g *guests) Pause(context.Context)  { g.add("pause") }
func (g *guests) Resume(context.Context) { g.add("resume") }

func (g *guests) add(what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.did = append(g.did, what)
}

func (g *guests) all() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.did)
}

// While a host sleeps its clock stands, and the leader counts on: what it has slept is taken off the lease, its guests are paused at
// once, and they run on when there is a lease again.
func TestAHostThatHasSleptBeyondItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, f, _, stop := armed(t)
		defer stop()
		var asleep atomic.Int64 // nanoseconds
		g := &guests{}
		w.mu.Lock()
		w.Slept, w.Guests = func() time.Duration { return time.Duration(asleep.Load()) }, g
		w.mu.Unlock()
		did := func(what string, want ...string) {
			t.Helper()
			time.Sleep(time.Second)
			synctest.Wait()
			if all := g.all(); !slices.Equal(all, want) {
				t.Errorf("%s: %v, want %v", what, all, want)
			}
		}
		w.Lease(time.Now().Add(time.Minute))
		asleep.Store(int64(30 * time.Second))
		did("a sleep that the lease outlasts")
		asleep.Store(int64(5 * time.Minute))
		did("a sleep beyond the lease", "pause")
		petted := f.lastPetted()
		did("still without a lease", "pause")
		if !f.lastPetted().Equal(petted) {
			t.Error("it is petted after its lease")
		}
		w.Lease(time.Now().Add(time.Minute))
		did("a lease again", "pause", "resume")
		if f.lastPetted().Equal(petted) {
			t.Error("it is not petted again")
		}
		time.Sleep(2 * time.Minute)
		did("a lease that ends while the host is awake", "pause", "resume")
	})
}

func TestTheGuestsThatWerePausedRunOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := fake.NewWire().Host("a")
		const own, other = "11111111-2222-4333-8444-555555555555", "11111111-2222-4333-8444-666666666666"
		for _, uuid := range []string{own, other} {
			if err := h.Start(t.Context(), `<domain type="kvm"><name>g-`+uuid[30:]+`</name><uuid>`+uuid+`</uuid><memory>65536</memory>`+
				`<vcpu>1</vcpu><os><type>hvm</type></os></domain>`); err != nil {
				t.Fatal(err)
			}
		}
		h.Edit(own, func(d *hypervisor.Domain) { d.Managed, d.Epoch = true, 3 })
		s := &Sleepers{Hypervisor: h, Logger: hclog.NewNullLogger()}
		are := func(what string, ownState hypervisor.State) {
			t.Helper()
			one, _ := h.Lookup(t.Context(), own)
			two, _ := h.Lookup(t.Context(), other)
			if one.State != ownState || two.State != hypervisor.Running {
				t.Errorf("%s: %s, and %s", what, one.State, two.State)
			}
		}
		s.Pause(t.Context())
		are("paused", hypervisor.Paused)
		s.Resume(t.Context())
		are("resumed", hypervisor.Running)
		s.Pause(t.Context())
		h.Edit(own, func(d *hypervisor.Domain) { d.Epoch = 4 })
		s.Resume(t.Context())
		are("under another epoch", hypervisor.Paused)
	})
}

func TestWatchdogsThatStandStillAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		flags, driver string
		says          string // empty: it is usable
	}{
		"of the board":      {"fpu vme sse", "iTCO_wdt", ""},
		"not known":         {"fpu vme sse", "", ""},
		"softdog":           {"fpu vme sse", "Software Watchdog", "softdog is a timer of the kernel that it is to watch: its silence"},
		"a virtual machine": {"fpu hypervisor sse", "i6300ESB timer", "this host is a virtual machine, whose watchdog stands still"},
	} {
		proc, sys := t.TempDir(), t.TempDir()
		if err := os.MkdirAll(filepath.Join(sys, "class/watchdog/watchdog0"), 0o755); err != nil {
			t.Fatal(err)
		}
		for path, text := range map[string]string{
			filepath.Join(proc, "cpuinfo"):                          "processor\t: 0\nflags\t\t: " + c.flags + "\n",
			filepath.Join(sys, "class/watchdog/watchdog0/identity"): c.driver + "\n",
		} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := Usable(HostOf(proc, sys, "/dev/watchdog"))
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "watchdog_unsafe")):
			t.Errorf("%s: %v", name, err)
		}
	}
}
