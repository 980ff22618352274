package hoststat

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	// probeEvery is between two tries of the same thing, and probeLimit how long one may take before it counts as hanging.
	probeEvery = 5 * time.Second
	probeLimit = 15 * time.Second
)

// Health tries again and again what a host needs to be of use: that its disk takes a write, and that its storage answers. What hangs in
// the kernel cannot be ended, so each thing has one try under way at most, and nobody waits for it.
type Health struct {
	now func() time.Time

	mu    sync.Mutex
	tries map[string]*try // by what is tried, for people
	pools map[string]bool // those of them that are pools
}

// try is one thing that is tried.
type try struct {
	do    func() error
	began time.Time // of the try that is under way; zero: none is
	bad   time.Time // since when it fails; zero: it does not
	why   string
}

// NewHealth makes a Health that writes into a directory.
func NewHealth(directory string) *Health {
	return &Health{now: time.Now, pools: map[string]bool{}, tries: map[string]*try{
		"the disk of " + directory: {do: func() error { return writeTo(filepath.Join(directory, "alive")) }},
	}}
}

// writeTo writes the same byte of a file again, which needs no room, and waits until the disk has it.
func writeTo(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteAt([]byte{'1'}, 0)
	if synced := file.Sync(); err == nil {
		err = synced
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

// Pools names the folders of the host's storage pools, by the pools' names.
func (h *Health) Pools(folders map[string]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	present := map[string]bool{}
	for name, folder := range folders {
		what := fmt.Sprintf("storage pool %s (%s)", name, folder)
		present[what] = true
		if h.tries[what] == nil {
			h.tries[what] = &try{do: func() error {
				var is syscall.Statfs_t
				err := syscall.Statfs(folder, &is)
				if err == syscall.ENOENT || err == syscall.EACCES {
					return nil // libvirt tells of a pool that is not there
				}
				return err
			}}
		}
	}
	for what := range h.pools {
		if !present[what] {
			delete(h.tries, what)
		}
	}
	h.pools = present
}

// Run tries all until the context ends.
func (h *Health) Run(ctx context.Context) {
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for {
		h.look()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look begins all tries of which none is under way.
func (h *Health) look() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range h.tries {
		if !one.began.IsZero() {
			continue
		}
		one.began = h.now()
		go func() {
			err := one.do()
			h.mu.Lock()
			defer h.mu.Unlock()
			switch {
			case err == nil || os.IsPermission(err):
				one.bad, one.why = time.Time{}, ""
			case one.bad.IsZero():
				one.bad, one.why = one.began, err.Error()
			}
			one.began = time.Time{}
		}()
	}
}

// Ailing says what is wrong, and since when; nothing where all is well.
func (h *Health) Ailing() (reasons []string, since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(h.tries)) {
		one := h.tries[what]
		at, why := one.bad, one.why
		if hangs := !one.began.IsZero() && h.now().Sub(one.began) > probeLimit; hangs {
			why = fmt.Sprintf("no answer within %s", probeLimit)
			if at.IsZero() {
				at = one.began
			}
		}
		if at.IsZero() {
			continue
		}
		reasons = append(reasons, what+": "+why)
		if since.IsZero() || at.Before(since) {
			since = at
		}
	}
	return reasons, since
}
