package libvirt

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
)

const (
	// keepalive is libvirt's own: a ping every 5 s, and the connection is dead after 5 without an answer.
	keepaliveInterval = 5
	keepaliveCount    = 5

	queryTimeout = 5 * time.Second
	dialTimeout  = 5 * time.Second

	maxCalls = 24 // at once, the abandoned included; moves come on top
	maxIdle  = 3
)

// pool hands out connections, one call each.
type pool struct {
	uri string

	mu    sync.Mutex
	idle  []*libvirtgo.Connect
	calls map[*call]struct{}
	shut  bool
}

// call is one that has not been answered yet.
type call struct {
	since time.Time
	stage atomic.Int32
}

// dial opens a connection. It may hang for as long as libvirtd does.
func dial(uri string) (*libvirtgo.Connect, error) {
	conn, err := libvirtgo.NewConnect(uri)
	if err != nil {
		return nil, err
	}
	// The test driver has no wire and refuses; there is nothing to keep alive then.
	if err := conn.SetKeepAlive(keepaliveInterval, keepaliveCount); err != nil && !is(err, libvirtgo.ERR_NO_SUPPORT) {
		_, _ = conn.Close()
		return nil, err
	}
	return conn, nil
}

func (p *pool) take() (*libvirtgo.Connect, error) {
	for {
		p.mu.Lock()
		n := len(p.idle)
		if n == 0 {
			p.mu.Unlock()
			return dial(p.uri)
		}
		conn := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		if alive, err := conn.IsAlive(); err == nil && alive {
			return conn, nil
		}
		_, _ = conn.Close()
	}
}

func (p *pool) give(conn *libvirtgo.Connect) {
	alive, err := conn.IsAlive()
	p.mu.Lock()
	if err == nil && alive && !p.shut && len(p.idle) < maxIdle {
		p.idle = append(p.idle, conn)
		conn = nil
	}
	p.mu.Unlock()
	if conn != nil {
		_, _ = conn.Close()
	}
}

// drain closes what is idle, after libvirtd went away or for good.
func (p *pool) drain(forGood bool) {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.shut = p.shut || forGood
	p.mu.Unlock()
	for _, conn := range idle {
		_, _ = conn.Close()
	}
}

func (p *pool) enter() (*call, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.calls) >= maxCalls {
		return nil, fmt.Errorf("%w: %d calls wait for libvirtd already", hypervisor.ErrUnavailable, len(p.calls))
	}
	if p.calls == nil {
		p.calls = map[*call]struct{}{}
	}
	c := &call{since: time.Now()}
	p.calls[c] = struct{}{}
	return c, nil
}

func (p *pool) leave(c *call) {
	p.mu.Lock()
	delete(p.calls, c)
	p.mu.Unlock()
}

// waiting tells how many calls have not been answered, and since when the oldest one has not.
func (p *pool) waiting() (count int, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.calls {
		if since.IsZero() || c.since.Before(since) {
			since = c.since
		}
	}
	return len(p.calls), since
}

// errHung marks the error of a call that was left behind at its deadline.
var errHung = errors.New("libvirtd gave no answer in time (stuck)")

// The stages of a call. The one that takes it out of dialling decides whether libvirtd is asked at all.
const (
	dialling int32 = iota
	called
	givenUp
)

// ask runs one call on a connection of its own. When the context ends first it returns at once and the call is left to
// itself: the error is then errHung or the context's. began tells whether the call may have reached libvirtd.
func ask[T any](ctx context.Context, p *pool, do func(*libvirtgo.Connect) (T, error)) (value T, began bool, err error) {
	if err := ctx.Err(); err != nil {
		return value, false, err
	}
	c, err := p.enter()
	if err != nil {
		return value, false, err
	}
	type answer struct {
		value T
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		defer p.leave(c)
		conn, err := p.take()
		if err != nil {
			done <- answer{err: unreachable("connecting to "+p.uri, err)}
			return
		}
		defer p.give(conn)
		if !c.stage.CompareAndSwap(dialling, called) {
			return
		}
		value, err := do(conn)
		if err != nil {
			if alive, aliveErr := conn.IsAlive(); aliveErr != nil || !alive {
				err = unreachable("the connection to libvirtd broke", err)
			}
		}
		done <- answer{value, err}
	}()
	dial := time.NewTimer(dialTimeout)
	defer dial.Stop()
	for {
		select {
		case a := <-done:
			return a.value, c.stage.Load() == called, explain(a.err)
		case <-dial.C:
			if c.stage.CompareAndSwap(dialling, givenUp) {
				return value, false, errHung
			}
		case <-ctx.Done():
			began := !c.stage.CompareAndSwap(dialling, givenUp)
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return value, began, errHung
			}
			return value, began, ctx.Err()
		}
	}
}
