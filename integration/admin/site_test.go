package admin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"berth/integration/lab"
	"berth/integration/writer"
)

// How long things may take on two busy CPUs. None of these is a promise.
const (
	raiseLimit   = 3 * time.Minute
	commandLimit = 90 * time.Second
	quietLimit   = 2 * time.Minute
	startLimit   = 240 * time.Second
	cutLength    = 8 * time.Second
)

// Where the guests' disks are: in a pool that is declared as shared, or in a folder that each host has for itself.
const (
	sharedDir = lab.SharedDir + "/admin"
	localDir  = "/var/tmp/admin"
)

func TestMain(m *testing.M) {
	lab.Child()
	code := m.Run()
	fmt.Println(lab.Watched("admin"))
	os.Exit(code)
}

// site is the lab that all seeds share.
type site struct {
	lab   *lab.Lab
	watch *lab.Observer

	breaking sync.RWMutex // one fault at a time, and none while a guest is raised
	mu       sync.Mutex
	faults   []span
	spent    map[string]time.Duration // by all seeds, by what they did
}

// took notes how long a part of a seed took.
func (s *site) took(what string, length time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spent == nil {
		s.spent = map[string]time.Duration{}
	}
	s.spent[what] += length
}

// span is a time in which a fault lasted, to its mending.
type span struct{ from, to time.Time }

// raise gives the test a lab whose hosts share a pool.
func raise(t *testing.T, name string) *site {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), raiseLimit)
	defer cancel()
	l, err := lab.Up(ctx, lab.Options{Name: name, Hosts: 3, Coordinators: 3, Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{lab: l, watch: l.Observe()}
	t.Cleanup(func() {
		s.watch.Stop()
		for _, fault := range append(s.watch.Errors(), l.Down()) {
			if fault != nil {
				t.Error(fault)
			}
		}
	})
	if err := s.furnish(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *site) furnish(ctx context.Context) error {
	all, together := errgroup.WithContext(ctx)
	all.Go(func() error { return writer.Make(together, s.lab) })
	for _, h := range s.lab.Hosts {
		all.Go(func() error {
			if err := os.MkdirAll(h.Path(localDir), 0o755); err != nil {
				return err
			}
			return h.AddPool(together, "admin", sharedDir)
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	_, err := s.lab.Berth(ctx, "pool", "add", "admin", "--cluster", "default", "--scope", "shared")
	return err
}

// fail makes a fault at the host, and mends it.
func (s *site) fail(ctx context.Context, what string, h *lab.Host) error {
	s.breaking.Lock()
	defer s.breaking.Unlock()
	one := span{from: time.Now()}
	defer func() {
		one.to = time.Now()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.faults = append(s.faults, one)
	}()
	switch what {
	case "kill the agent":
		return errors.Join(h.KillAgent(), h.StartAgent(ctx))
	case "restart libvirtd":
		return errors.Join(h.Kill(lab.Libvirtd), h.StartLibvirtd(ctx))
	case "kill the leader":
		leader, err := s.lab.Leader(ctx)
		if err != nil {
			return err
		}
		return errors.Join(leader.Kill(), pause(ctx, 2*time.Second), leader.Start(ctx))
	case "cut the host off":
		return errors.Join(h.CutLink(ctx), pause(ctx, cutLength), h.RestoreLink(ctx))
	default:
		return fmt.Errorf("there is no fault %q", what)
	}
}

// faulty are the times in which there was a fault anywhere.
func (s *site) faulty() []span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]span(nil), s.faults...)
}

// pause waits, unless the context ends.
func pause(ctx context.Context, length time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(length):
		return nil
	}
}

// poll asks until the answer is no error, or time runs out; the error is then the last one.
func poll(ctx context.Context, limit, every time.Duration, ask func() error) error {
	begun := time.Now()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		if time.Since(begun) > limit {
			return fmt.Errorf("not within %s: %w", limit, err)
		}
		if ended := pause(ctx, every); ended != nil {
			return errors.Join(err, ended)
		}
	}
}
