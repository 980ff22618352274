package fake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"berth/agent/hypervisor"
)

// console is a guest's console that says again whatever is typed.
type console struct {
	mu     sync.Mutex
	news   sync.Cond
	unread []byte
	ended  error
	gone   func() // takes it out of its host
}

// OpenConsole implements hypervisor.Hypervisor.
func (h *domains) OpenConsole(ctx context.Context, uuid string, force bool) (io.ReadWriteCloser, error) {
	var opened *console
	err := h.change(ctx, "console", 0, func() error {
		d, err := h.find(uuid)
		if err != nil {
			return err
		}
		if d.State == hypervisor.Shutoff {
			return fmt.Errorf("%w: it is off", hypervisor.ErrInvalidState)
		}
		if _, busy := h.consoles[uuid]; busy && !force {
			return fmt.Errorf("%w: somebody has its console", hypervisor.ErrBusy)
		}
		h.endConsole(uuid)
		c := &console{}
		c.news.L = &c.mu
		c.gone = func() {
			h.wire.mu.Lock()
			defer h.wire.mu.Unlock()
			if h.consoles[uuid] == c {
				delete(h.consoles, uuid)
			}
		}
		h.consoles[uuid], opened = c, c
		return nil
	})
	if err != nil {
		return nil, err
	}
	return opened, nil
}

// endConsole disconnects the holder of the console. The wire is locked.
func (h *domains) endConsole(uuid string) {
	if c, open := h.consoles[uuid]; open {
		delete(h.consoles, uuid)
		c.end(io.EOF)
	}
}

func (c *console) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		c.ended = err
	}
	c.news.Broadcast()
}

// Read implements io.Reader.
func (c *console) Read(into []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.unread) == 0 && c.ended == nil {
		c.news.Wait()
	}
	if len(c.unread) == 0 {
		return 0, c.ended
	}
	n := copy(into, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}

// Write implements io.Writer.
func (c *console) Write(data []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return 0, c.ended
	}
	c.unread = append(c.unread, data...)
	c.news.Broadcast()
	return len(data), nil
}

var errClosed = errors.New("the console is closed")

// Close implements io.Closer.
func (c *console) Close() error {
	c.gone()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unread, c.ended = nil, errClosed
	c.news.Broadcast()
	return nil
}
