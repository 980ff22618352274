package statusfiles

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"time"
)

// Kept are what guests ran with last that ended while no agent listened, as the service has kept it, in the order of their ends. None:
// there are none, or no service that keeps them.
func Kept(ctx context.Context, socket string) (kept []File, err error) {
	passed, err := dial(ctx, socket, againEvery)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer passed.conn.Close()
	for passed.keeps {
		next, err := passed.next(againEvery)
		if err != nil || next.Kind == kindNow {
			return kept, err
		}
		if next.Kind == kindKept {
			kept = append(kept, File{Name: next.Name, Text: string(next.Text), Ended: true})
		}
	}
	return nil, nil
}

// passedOn are the files as the service passes them on.
type passedOn struct {
	conn  net.Conn
	limit time.Duration // how long a reading waits
	lines *json.Decoder
	keeps bool // what was kept comes first
}

func newPassedOn(conn net.Conn) *passedOn {
	p := &passedOn{conn: conn}
	p.lines = json.NewDecoder(p)
	return p
}

// Read implements io.Reader. An agent that stood still for longer than it waits reads what has come meanwhile.
func (p *passedOn) Read(into []byte) (n int, err error) {
	for _, limit := range []time.Duration{p.limit, time.Second} {
		if err = p.conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
			return 0, err
		}
		if n, err = p.conn.Read(into); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
	}
	return n, err
}

// next is the next message. It waits no longer than the limit.
func (p *passedOn) next(limit time.Duration) (message, error) {
	p.limit = limit
	var next message
	err := p.lines.Decode(&next)
	return next, err
}

// follow is a source. It closes the connection.
func (p *passedOn) follow(ctx context.Context, deliver func(item)) error {
	defer p.conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = p.conn.Close() })
	defer stop()
	for {
		next, err := p.next(patience)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return err
		}
		one := item{File: File{Name: next.Name, Text: string(next.Text), Found: next.Found}}
		switch next.Kind {
		case kindThere:
			one.is = read
		case kindKept:
			one.is, one.Ended = read, true
		case kindWrote:
			one.is, one.changed = read, true
		case kindGone:
			one.is = gone
		case kindHidden:
			one.is, one.changed = unreadable, true
		default: // it lives, or is newer than this agent
			continue
		}
		deliver(one)
	}
}
