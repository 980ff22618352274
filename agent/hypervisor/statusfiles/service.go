package statusfiles

import (
	"cmp"
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

// DefaultSocket is where the service listens, DefaultFolder where libvirt keeps its files, and DefaultKeep where the service keeps the last
// of guests that have ended.
const (
	DefaultKeep   = "/run/berth-status-files"
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
	kindKept   = "kept"   // what a guest ran with last that ended before the connection began
	kindNow    = "now"    // nothing more was kept
)

// message is one line.
type message struct {
	Kind  string `json:"kind"`
	Name  string `json:"name,omitempty"` // of the guest
	Text  []byte `json:"text,omitempty"`
	Found bool   `json:"found,omitempty"` // it was there when the connection began
	Keeps bool   `json:"keeps,omitempty"` // of the first line: what was kept comes next
}

const (
	aliveEvery  = 10 * time.Second // the service says something this often
	patience    = 30 * time.Second // how long either side waits for the other
	missing     = time.Second      // between looks for a folder that is not there yet
	mostReaders = 8                // the agent, and a doctor now and then
)

// Service passes the files of a folder on to readers on this host. It reads them, and does not know what they say. Each reader has a watch
// and a queue of its own, so none waits for another. The last of guests that end while nobody reads it keeps, in a folder of its own.
type Service struct {
	Folder string
	Keep   string   // the folder; empty: nothing is kept
	Admits []uint32 // accounts; anybody else is turned away
	Log    hclog.Logger

	alive, heard time.Duration // 0: aliveEvery, heardAfter

	kept *keeper

	readers sync.WaitGroup
	places  chan struct{}
}

// Serve serves those who connect until the context ends or the listener fails.
func (s *Service) Serve(ctx context.Context, listener *net.UnixListener) error {
	ctx, end := context.WithCancel(ctx)
	s.places = make(chan struct{}, mostReaders)
	s.kept = &keeper{from: folder(s.Folder), folder: s.Keep, log: s.Log}
	if err := s.kept.begin(); err != nil {
		s.Log.Warn("what guests run with last is not kept for an agent that is away", "folder", s.Keep, "error", err)
		s.kept.folder = ""
	}
	defer s.readers.Wait()
	defer end()
	stop := context.AfterFunc(ctx, func() { _ = listener.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	s.readers.Go(func() { s.kept.run(ctx) })
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
func (s *Service) serve(ctx context.Context, conn *net.UnixConn) error {
	ctx, end := context.WithCancel(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer end()
	watch.Go(func() {
		defer end()
		_, _ = conn.Read(make([]byte, 1)) // it has nothing to say: it goes, or is not one of ours
	})
	context.AfterFunc(ctx, func() { _ = conn.Close() }) // which ends its reading and its writing
	tell := teller{conn: conn, lines: json.NewEncoder(conn), alive: cmp.Or(s.alive, aliveEvery)}
	begun, keeps := time.Now(), s.kept.folder != ""
	if err := tell.say(message{Kind: kindBegin, Keeps: keeps}); err != nil {
		return err
	}
	if keeps {
		if err := s.tellKept(&tell); err != nil {
			return err
		}
		if err := tell.say(message{Kind: kindNow}); err != nil {
			return err
		}
		tell.listed = func() error { return s.tellKept(&tell) }
		tell.idle = func() {
			now, after := time.Now(), cmp.Or(s.heard, heardAfter)
			if now.Sub(begun) >= after && tell.isRead() {
				s.kept.heard(now.Add(-after))
			}
		}
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

// tellKept tells what was kept and was not told yet.
func (s *Service) tellKept(tell *teller) error {
	paths, err := s.kept.last()
	if err != nil {
		s.Log.Warn("what guests ran with last cannot be read", "folder", s.Keep, "error", err)
	}
	for _, path := range paths {
		if path <= tell.kept {
			continue
		}
		tell.kept = path
		is, err := unpacked(path)
		switch {
		case errors.Is(err, os.ErrNotExist): // another reader has been told it
		case err != nil:
			s.Log.Warn("what a guest ran with last cannot be read", "file", path, "error", err)
		default:
			if err := tell.say(message{Kind: kindKept, Name: is.Name, Text: []byte(is.Text)}); err != nil {
				return err
			}
		}
	}
	return nil
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
	conn  *net.UnixConn
	lines *json.Encoder
	alive time.Duration // it says something this often

	kept   string       // the last file of what was kept that was told
	listed func() error // is called once all is said that was there, and the watch is on; nil: nothing
	idle   func()       // is called now and then when all is said; nil: nothing
}

// isRead tells whether the reader has read all that was said, and is there still: what it has left unread goes with it.
func (t *teller) isRead() bool {
	raw, err := t.conn.SyscallConn()
	if err != nil {
		return false
	}
	unread, gone, unknown := 0, 0, error(nil)
	err = raw.Control(func(fd uintptr) {
		if unread, unknown = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ); unknown == nil {
			gone, unknown = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}, 0)
		}
	})
	return err == nil && unknown == nil && unread == 0 && gone == 0
}

func (t *teller) say(what message) error {
	if err := t.conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	return t.lines.Encode(what)
}

// all says all that is due, until nothing comes any more.
func (t *teller) all(ctx context.Context, here folder, due *queue) error {
	alive := time.NewTicker(t.alive)
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
				if t.idle != nil {
					t.idle()
				}
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
	case one.is == listed && t.listed != nil: // a guest may have ended since what was kept was told, and before the watch was on
		return t.listed()
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
