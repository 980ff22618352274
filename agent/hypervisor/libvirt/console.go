package libvirt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	libvirtgo "libvirt.org/go/libvirt"

	"berth/agent/hypervisor"
)

const (
	consolePiece   = 16 << 10
	consoleBacklog = 1 << 20 // unread bytes after which the guest has to wait
	consolePause   = 5 * time.Millisecond
	consoleRelease = 2 * time.Second // for libvirtd to let go of a console that was closed
)

// console is a domain's console as a stream of libvirt. libvirt calls it when there is something to read.
type console struct {
	conn   *libvirtgo.Connect // one reference more than its pool has
	stream *libvirtgo.Stream

	mu      sync.Mutex
	news    sync.Cond
	backlog []byte
	waiting bool  // the backlog is full: libvirt is not to call
	ended   error // why nothing more comes
	closed  bool
}

// OpenConsole implements hypervisor.Hypervisor.
func (h *domains) OpenConsole(ctx context.Context, uuid string, force bool) (io.ReadWriteCloser, error) {
	opened := make(chan *console, 1)
	err := act(ctx, h.connection, &h.calls, func(conn *libvirtgo.Connect) error {
		d, err := lookup(conn, uuid)
		if err != nil {
			return err
		}
		defer free(d)
		c, err := openConsole(conn, d, force)
		if err != nil {
			return err
		}
		if ctx.Err() != nil { // nobody waits for it any more
			c.release()
			return ctx.Err()
		}
		opened <- c
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("open the console of domain %s: %w", uuid, err)
	}
	return <-opened, nil
}

func openConsole(conn *libvirtgo.Connect, d *libvirtgo.Domain, force bool) (*console, error) {
	active, err := d.IsActive()
	if err != nil {
		return nil, err
	}
	if !active {
		return nil, fmt.Errorf("%w: it is off", hypervisor.ErrInvalidState)
	}
	stream, err := conn.NewStream(libvirtgo.STREAM_NONBLOCK)
	if err != nil {
		return nil, err
	}
	var flags libvirtgo.DomainConsoleFlags
	if force {
		flags = libvirtgo.DOMAIN_CONSOLE_FORCE
	}
	if err := d.OpenConsole("", stream, flags); err != nil {
		_ = stream.Free()
		if !force && is(err, libvirtgo.ERR_OPERATION_FAILED) {
			return nil, fmt.Errorf("%w: %w", hypervisor.ErrBusy, explain(err)) // this number has no other meaning here
		}
		return nil, err
	}
	if err := conn.Ref(); err != nil {
		_ = stream.Abort()
		_ = stream.Free()
		return nil, err
	}
	c := &console{conn: conn, stream: stream}
	c.news.L = &c.mu
	if err := stream.EventAddCallback(consoleEvents, c.on); err != nil {
		c.release()
		return nil, err
	}
	return c, nil
}

const (
	consoleEnds   = libvirtgo.STREAM_EVENT_ERROR | libvirtgo.STREAM_EVENT_HANGUP
	consoleEvents = consoleEnds | libvirtgo.STREAM_EVENT_READABLE
)

// on takes what has arrived. It runs on libvirt's event loop and never waits.
func (c *console) on(stream *libvirtgo.Stream, events libvirtgo.StreamEventType) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.ended != nil {
		return
	}
	if events&libvirtgo.STREAM_EVENT_READABLE != 0 {
		piece := make([]byte, consolePiece)
		n, err := stream.Recv(piece)
		switch {
		case err != nil:
			c.end(stream, err)
			return
		case n > 0:
			c.backlog = append(c.backlog, piece[:n]...)
			c.news.Broadcast()
		}
		if len(c.backlog) >= consoleBacklog {
			c.waiting = stream.EventUpdateCallback(consoleEnds) == nil
		}
	}
	if events&consoleEnds != 0 {
		c.end(stream, io.EOF)
	}
}

// end notes why nothing more comes, and stops libvirt from calling about it again and again.
func (c *console) end(stream *libvirtgo.Stream, err error) {
	c.ended = io.EOF
	if alive, aliveErr := c.conn.IsAlive(); aliveErr != nil || !alive {
		c.ended = unreachable("the connection to libvirtd broke", err)
	}
	_ = stream.EventUpdateCallback(0)
	c.news.Broadcast()
}

// errClosed is what a console says after Close.
var errClosed = errors.New("the console is closed")

// Read implements io.Reader.
func (c *console) Read(into []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case c.closed:
			return 0, errClosed
		case len(c.backlog) > 0:
			n := copy(into, c.backlog)
			c.backlog = c.backlog[n:]
			if c.waiting && c.ended == nil && len(c.backlog) < consoleBacklog/2 {
				c.waiting = c.stream.EventUpdateCallback(consoleEvents) != nil
			}
			return n, nil
		case c.ended != nil:
			return 0, c.ended
		}
		c.news.Wait()
	}
}

// Write implements io.Writer.
func (c *console) Write(data []byte) (int, error) {
	for written := 0; ; {
		n, err := c.send(data[written:])
		if err != nil {
			return written, err
		}
		if written += n; written == len(data) {
			return written, nil
		}
		time.Sleep(consolePause)
	}
}

// send passes on what libvirt takes now.
func (c *console) send(data []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, errClosed
	}
	if c.ended != nil {
		return 0, c.ended
	}
	if len(data) == 0 {
		return 0, nil
	}
	n, err := c.stream.Send(data)
	if err != nil {
		return 0, explain(err)
	}
	return max(n, 0), nil // -2: try again
}

// Close implements io.Closer. libvirtd is told, and not waited for if it hangs.
func (c *console) Close() error {
	c.mu.Lock()
	again := c.closed
	c.closed = true
	c.backlog = nil
	c.news.Broadcast()
	c.mu.Unlock()
	if again {
		return nil
	}
	released := make(chan struct{})
	go func() {
		defer close(released)
		_ = c.stream.EventRemoveCallback()
		c.release()
	}()
	select {
	case <-released:
	case <-time.After(consoleRelease):
	}
	return nil
}

func (c *console) release() {
	_ = c.stream.Abort()
	_ = c.stream.Free()
	_, _ = c.conn.Close()
}
