package rpc

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// resolver answers as a test says.
type resolver struct {
	found  []string
	err    error
	silent bool
}

func (r *resolver) resolve(ctx context.Context, _ string) ([]string, error) {
	if r.silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return r.found, r.err
}

// names are Names with a resolver of a test. What is dialled is kept, and answered only at one address.
func names(path string, r *resolver, dialled *[]string, answers string) *Names {
	n := NewNames(path)
	n.resolve = r.resolve
	n.dial = func(_ context.Context, _, address string) (net.Conn, error) {
		*dialled = append(*dialled, address)
		if address != answers {
			return nil, errors.New("refused")
		}
		here, _ := net.Pipe()
		return here, nil
	}
	return n
}

// The DNS is away: what a name resolved to last is dialled, also by another process, and within a moment.
func TestNamesAreRemembered(t *testing.T) {
	gone := errors.New("server misbehaving")
	for name, away := range map[string]*resolver{
		"the resolver fails":     {err: gone},
		"the resolver is silent": {silent: true},
		"it knows no address":    {},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "addresses.yaml")
			synctest.Test(t, func(t *testing.T) {
				var dialled []string
				there := names(path, &resolver{found: []string{"10.0.0.2", "10.0.0.1"}}, &dialled, "10.0.0.1:7421")
				if _, err := there.DialContext(t.Context(), "tcp", "c1.example:7421"); err != nil {
					t.Fatal(err)
				}
				dialled = nil
				later := names(path, away, &dialled, "10.0.0.1:7421")
				began := time.Now()
				if _, err := later.DialContext(t.Context(), "tcp", "c1.example:7421"); err != nil {
					t.Errorf("it was not reached: %v", err)
				}
				if took := time.Since(began); took > resolveWithin {
					t.Errorf("it took %s", took)
				}
				if !slices.Equal(dialled, []string{"10.0.0.1:7421"}) {
					t.Errorf("dialled %v", dialled)
				}
				if _, err := later.DialContext(t.Context(), "tcp", "c9.example:7421"); err == nil {
					t.Error("a name that was never resolved was reached")
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

func TestWhatTheResolverSaysComesFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "addresses.yaml")
	var dialled []string
	r := &resolver{found: []string{"10.0.0.1"}}
	n := names(path, r, &dialled, "10.0.0.9:7420")
	_, _ = n.DialContext(t.Context(), "tcp", "c1:7420")
	r.found = []string{"10.0.0.9"}
	_, err := n.DialContext(t.Context(), "tcp", "c1:7420")
	if err != nil || !slices.Equal(dialled, []string{"10.0.0.1:7420", "10.0.0.9:7420"}) {
		t.Errorf("dialled %v: %v", dialled, err)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), "10.0.0.9") || strings.Contains(string(text), "10.0.0.1\n") {
		t.Errorf("the file has %q, %v", text, err)
	}
	r.found, r.err = nil, errors.New("no such host")
	dialled = nil
	if _, err := n.DialContext(t.Context(), "tcp", "10.0.0.9:7420"); err != nil || len(dialled) != 1 {
		t.Errorf("an address is not dialled as it is: %v, %v", dialled, err)
	}
}

// A file that is damaged, or cannot be written, is as good as none.
func TestAFileThatCannotBeUsedIsNoneAtAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "addresses.yaml")
	if err := os.WriteFile(path, []byte("c1: [not an address]\nc2: 7\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var dialled []string
	n := names(path, &resolver{err: errors.New("gone")}, &dialled, "")
	if _, err := n.DialContext(t.Context(), "tcp", "c1:7420"); err == nil || len(dialled) > 0 {
		t.Errorf("dialled %v: %v", dialled, err)
	}
	n = names("/proc/nowhere/addresses.yaml", &resolver{found: []string{"10.0.0.1"}}, &dialled, "10.0.0.1:7420")
	if _, err := n.DialContext(t.Context(), "tcp", "c1:7420"); err != nil {
		t.Error(err)
	}
}
