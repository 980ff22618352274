package sieve

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// Stall is how long the other side may be silent in the midst of a message. Raft's transport gives a whole message 5 s, and a snapshot
// those for each 256 KiB of it.
const Stall = 15 * time.Second

// Conn is a connection whose incoming messages are bounded. Read and Write are for one goroutine each, as Raft's transport has them.
type Conn struct {
	net.Conn
	scan  scan
	wrong error

	turn chan struct{} // shared by the connections of one member, of which one at a time may send a large message; nil: each may
	over chan struct{} // closed with the connection

	mu     sync.Mutex
	has    bool // this one has the turn
	closed bool
}

// Requests gives a connection on which the other side sends requests. Its large messages wait for their turn: a channel of one place.
func Requests(conn net.Conn, limits Limits, turn chan struct{}) *Conn {
	return &Conn{Conn: conn, scan: scan{limits: limits}, turn: turn, over: make(chan struct{})}
}

// OfAnswers gives a connection on which the other side answers.
func OfAnswers(conn net.Conn) *Conn {
	return &Conn{Conn: conn, scan: scan{limits: Answers, answers: true}, over: make(chan struct{})}
}

// Read implements net.Conn. The error is ErrBound, and the connection is closed, when what came is more than may come.
func (c *Conn) Read(b []byte) (int, error) {
	if c.wrong != nil {
		return 0, c.wrong
	}
	if err := c.await(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	if c.wrong = c.scan.take(b[:n]); c.wrong != nil {
		_ = c.Close()
		return 0, c.wrong
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && !c.scan.answers {
		err = refused("nothing for %s in the midst of a message", Stall)
	}
	return n, err
}

// await waits for the turn of a large message, and sets how long its next bytes may take. Of answers the transport sets that itself.
func (c *Conn) await() error {
	if c.scan.answers {
		return nil
	}
	if c.turn != nil && c.scan.large && !c.holds() {
		select {
		case c.turn <- struct{}{}:
		case <-c.over:
			return net.ErrClosed
		}
		c.mu.Lock()
		c.has = true
		closed := c.closed
		c.mu.Unlock()
		if closed {
			c.leave()
			return net.ErrClosed
		}
	}
	var until time.Time
	if c.scan.middle() {
		until = time.Now().Add(Stall)
	}
	return c.SetReadDeadline(until)
}

// Write implements net.Conn. An answer means that what came before it is not decoded any more.
func (c *Conn) Write(b []byte) (int, error) {
	if c.turn != nil && !c.scan.large {
		c.leave()
	}
	return c.Conn.Write(b)
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.over)
	}
	c.mu.Unlock()
	c.leave()
	return c.Conn.Close()
}

func (c *Conn) holds() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.has
}

// leave gives up the turn, if this connection has it.
func (c *Conn) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.has {
		c.has = false
		<-c.turn
	}
}
