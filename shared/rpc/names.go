package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"berth/shared/config"
)

const (
	// resolveWithin is how long a resolver may be silent before the addresses are used that a name had last. It is far below what
	// a dial may take.
	resolveWithin = time.Second
	// namesKept and addressesKept bound what is remembered.
	namesKept     = 64
	addressesKept = 8
)

// Names dials hosts by their names and remembers in a file which addresses these had last. The DNS of a site may be a VM of that site:
// after its power has failed nothing could find the coordinators that would start it. A remembered address is as good as a resolved
// one, because the other side proves by its certificate who it is.
type Names struct {
	path    string // of the file; empty: they are remembered as long as the process lives
	resolve func(ctx context.Context, host string) ([]string, error)
	dial    func(ctx context.Context, network, address string) (net.Conn, error)

	mu    sync.Mutex
	known map[string][]string // addresses by name; nil: the file was not read yet
}

// NewNames makes a Names that keeps the addresses in a file.
func NewNames(path string) *Names {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}
	return &Names{path: path, resolve: net.DefaultResolver.LookupHost, dial: dialer.DialContext}
}

// DialContext dials like a net.Dialer. Where the resolver fails, or is silent for a moment, it dials the addresses that the name had
// last.
func (n *Names) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if net.ParseIP(host) != nil {
		return n.dial(ctx, network, address)
	}
	addresses, err := n.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	var failed []error
	for i, one := range addresses {
		conn, err := n.dialOne(ctx, network, net.JoinHostPort(one, port), len(addresses)-i)
		if err == nil {
			return conn, nil
		}
		failed = append(failed, err)
	}
	return nil, errors.Join(failed...)
}

// dialOne dials one of the addresses that are left. None of them may take all of the time.
func (n *Names) dialOne(ctx context.Context, network, address string, left int) (net.Conn, error) {
	within := dialTimeout
	if deadline, set := ctx.Deadline(); set {
		within = min(within, time.Until(deadline)/time.Duration(left))
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return n.dial(ctx, network, address)
}

// addresses are what a name resolves to, or did last.
func (n *Names) addresses(ctx context.Context, host string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	type answer struct {
		addresses []string
		err       error
	}
	answers := make(chan answer, 1)
	go func() {
		found, err := n.resolve(ctx, host)
		if err == nil && len(found) > 0 {
			n.remember(host, found)
		}
		answers <- answer{found, err}
	}()
	late := time.NewTimer(resolveWithin)
	defer late.Stop()
	before := n.remembered(host)
	for {
		select {
		case got := <-answers:
			switch {
			case got.err == nil && len(got.addresses) > 0:
				return got.addresses, nil
			case len(before) > 0:
				return before, nil
			case got.err == nil:
				return nil, fmt.Errorf("%s has no address", host)
			}
			return nil, got.err
		case <-late.C:
			if len(before) > 0 {
				return before, nil
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("resolve %s: %w", host, ctx.Err())
		}
	}
}

// Last are the addresses that a name had last; none if nobody has dialled it.
func (n *Names) Last(host string) []string { return n.remembered(host) }

// remembered are the addresses that a name had last.
func (n *Names) remembered(host string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.load()
	return slices.Clone(n.known[host])
}

// remember keeps the addresses of a name. A file that cannot be written is no reason not to go on.
func (n *Names) remember(host string, found []string) {
	found = slices.Clone(found[:min(len(found), addressesKept)])
	slices.Sort(found)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.load()
	if slices.Equal(n.known[host], found) {
		return
	}
	if _, known := n.known[host]; !known && len(n.known) >= namesKept {
		delete(n.known, slices.Min(slices.Collect(maps.Keys(n.known))))
	}
	n.known[host] = found
	if n.path != "" {
		_ = config.Write(n.path, n.known, 0o644)
	}
}

// load reads the file once. One that is missing or damaged remembers nothing. The caller holds the lock.
func (n *Names) load() {
	if n.known != nil {
		return
	}
	n.known = map[string][]string{}
	var kept map[string][]string
	if n.path == "" || config.Load(n.path, &kept) != nil {
		return
	}
	for host, addresses := range kept {
		addresses = slices.DeleteFunc(addresses, func(one string) bool { return net.ParseIP(one) == nil })
		if len(addresses) > 0 && len(n.known) < namesKept {
			n.known[host] = addresses[:min(len(addresses), addressesKept)]
		}
	}
}

// DialTLS dials with TLS, and expects a certificate for the name.
func (n *Names) DialTLS(ctx context.Context, network, address string, settings *tls.Config) (*tls.Conn, error) {
	plain, err := n.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if settings.ServerName == "" {
		host, _, _ := net.SplitHostPort(address)
		settings = settings.Clone()
		settings.ServerName = host
	}
	conn := tls.Client(plain, settings)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = plain.Close()
		return nil, err
	}
	return conn, nil
}
