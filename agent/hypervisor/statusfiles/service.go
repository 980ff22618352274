package statusfiles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"
)

// DefaultSocket is where the service listens, and DefaultFolder where libvirt keeps its files.
const (
	DefaultSocket = "/run/berth/status-files.sock"
	DefaultFolder = "/run/libvirt/qemu"
)

// The service speaks and never listens. It says lines of JSON, each a message.
const (
	kindBegin  = "begin"  // the first line
	kindThere  = "there"  // a file that was there when the connection began
	kindWrote  = "wrote"  // a file that was written since
	kindGone   = "gone"   // a file that was taken away
	kindHidden = "hidden" // a file that was written and could not be read
	kindAlive  = "alive"  // nothing, every few seconds
)

// message is one line.
type message struct {
	Kind  string `json:"kind"`
	Name  string `json:"name,omitempty"` // of the guest
	Text  []byte `json:"text,omitempty"`
	Found bool   `json:"found,omitempty"` // it was there when the connection began
}

const (
	aliveEvery  = 10 * time.Second // the service says something this often
	patience    = 30 * time.Second // how long either side waits for the other
	missing     = time.Second      // between looks for a folder that is not there yet
	mostReaders = 8                // the agent, and a doctor now and then
)

// Service passes the files of a folder on to readers on this host. It reads them, and nothing else: it never writes, and does not know what
// they say. Each reader has a watch and a queue of its own, so none waits for another.
type Service struct {
	Folder string
	Admits []uint32 // accounts; anybody else is turned away
	Log    hclog.Logger

	readers sync.WaitGroup
	places  chan struct{}
}

// Serve serves those who connect until the context ends or the listener fails.
func (s *Service) Serve(ctx context.Context, listener *net.UnixListener) error {
	ctx, end := context.WithCancel(ctx)
	s.places = make(chan struct{}, mostReaders)
	defer s.readers.Wait()
	defer end()
	stop := context.AfterFunc(ctx, func() { _ = listener.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	for {
		conn, err := listener.AcceptUnix()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ECONNABORTED):
			s.Log.Warn("a reader could not be let in", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(missing):
			}
			continue
		case err != nil:
			return err
		}
		if err := s.admit(conn); err != nil {
			s.Log.Warn("a reader is turned away", "reason", err)
			_ = conn.Close()
			continue
		}
		s.readers.Go(func() {
			defer func() { <-s.places }()
			defer conn.Close()
			if err := s.serve(ctx, conn); !errors.Is(err, context.Canceled) { // it has not gone by itself
				s.Log.Warn("a reader is let go", "reason", err)
			}
		})
	}
}

// admit says why a reader is not let in.
func (s *Service) admit(conn *net.UnixConn) error {
	account, err := accountOf(conn)
	if err != nil {
		return err
	}
	if !slices.Contains(s.Admits, account) {
		return fmt.Errorf("account %d may not read libvirt's files", account)
	}
	select {
	case s.places <- struct{}{}:
		return nil
	default:
		return fmt.Errorf("%d read already", mostReaders)
	}
}

// accountOf is who has connected, as the kernel says.
func accountOf(conn *net.UnixConn) (uint32, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var who *unix.Ucred
	var unknown error
	if err := raw.Control(func(fd uintptr) { who, unknown = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return 0, err
	}
	if unknown != nil {
		return 0, unknown
	}
	return who.Uid, nil
}

// serve tells one reader what there is and what changes, until it goes. The error says why it was ended.
func (s *Service) serve(ctx context.Context, conn net.Conn) error {
	ctx, end := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer end()
	watch.Go(func() {
		defer end()
		_, _ = conn.Read(make([]byte, 1)) // it has nothing to say: it goes, or is not one of ours
	})
	context.AfterFunc(ctx, func() { _ = conn.Close() }) // which ends its reading and its writing
	tell := teller{conn: conn, lines: json.NewEncoder(conn)}
	if err := tell.say(message{Kind: kindBegin}); err != nil {
		return err
	}
	if err := s.await(ctx, &tell); err != nil {
		return err
	}
	here := folder(s.Folder)
	due := &queue{wake: make(chan struct{}, 1)}
	watch.Go(func() { due.end(here.follow(ctx, due.put)) })
	err := tell.all(ctx, here, due)
	if gone := ctx.Err(); gone != nil {
		err = gone
	}
	return err
}

// await waits until the folder is there: it comes with libvirt.
func (s *Service) await(ctx context.Context, tell *teller) error {
	for ticks := 1; ; ticks++ {
		if _, err := os.Stat(s.Folder); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(missing):
		}
		if ticks%int(aliveEvery/missing) == 0 {
			if err := tell.say(message{Kind: kindAlive}); err != nil {
				return err
			}
		}
	}
}

// teller speaks to one reader.
type teller struct {
	conn  net.Conn
	lines *json.Encoder
}

func (t *teller) say(what message) error {
	if err := t.conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	return t.lines.Encode(what)
}

// all says all that is due, until nothing comes any more.
func (t *teller) all(ctx context.Context, here folder, due *queue) error {
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	for {
		one, is, err := due.take()
		if err != nil {
			return err
		}
		if !is {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-due.wake:
			case <-alive.C:
				err = t.say(message{Kind: kindAlive})
			}
		} else {
			if one.is == there { // read only now: a reader that is slow keeps no memory for what it was not told yet
				one = here.found(one.Name)
			}
			err = t.tell(one)
		}
		if err != nil {
			return err
		}
	}
}

func (t *teller) tell(one item) error {
	what := message{Name: one.Name, Text: []byte(one.Text), Found: one.Found}
	switch {
	case !utf8.ValidString(one.Name): // libvirt makes no such names
		return nil
	case one.is == gone && one.Found: // before it was told of
		return nil
	case one.is == gone:
		what.Kind = kindGone
	case one.is == unreadable:
		what.Kind = kindHidden
	case one.is == read && one.changed:
		what.Kind = kindWrote
	case one.is == read:
		what.Kind = kindThere
	default:
		return nil
	}
	return t.say(what)
}
