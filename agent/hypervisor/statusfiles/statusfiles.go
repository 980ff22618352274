// Package statusfiles tells of which guests libvirt has just written down another state. It keeps a file of each running guest, with all
// that it must know after a restart of the daemon: its disks, what they are copies of, its network interfaces. Snapshots and block jobs
// change these, and libvirt has no event for the first.
//
// The files are root's, and an agent is not root. So a small service of root's reads them and passes them on, each at the moment at which
// it is written: a guest that ends right after has left what it ran with last. Where the service is missing, an agent that may not read the
// files sees that one was written and asks libvirt, which may know no more of that guest by then.
package statusfiles

import (
	"cmp"
	"context"
	"errors"
	"net"
	"time"

	"github.com/hashicorp/go-hclog"
)

// File is the file of a guest as it was read.
type File struct {
	Name  string // of the guest
	Text  string // empty: it is gone, and so is the guest
	Found bool   // it was there when the watch began
	Ended bool   // it is gone, and was before the watch began: so the guest ran last
}

// Teller is told what becomes of the files.
type Teller struct {
	// Wrote is called, in one goroutine, with each guest's file that is in the folder and each that is written anew or taken away.
	Wrote func(File)
	// Ask is what libvirt itself says of a guest whose file cannot be had; empty: nothing. One guest after the other is asked about,
	// without waiting, and what is said is passed to Wrote.
	Ask func(name string) string
	// Changed is called a little later, in another goroutine, with the names of those that were written anew, and with what libvirt said of
	// one that it was asked about since; empty: it was not asked.
	Changed func(name, said string)
	// Missed is called when a watch has ended that had worked: something may have been missed until the next has begun.
	Missed func()
}

// Source is where the files are had from.
type Source struct {
	Folder string // in which libvirt keeps them
	Socket string // of the service that passes them on; empty: there is none

	again time.Duration // between tries; 0: againEvery
}

const (
	againEvery = 5 * time.Second        // between tries, and how long one takes at most
	atOnce     = 200 * time.Millisecond // how long a service that is there takes to answer at most
	briefly    = time.Second            // a connection that did not last longer is not opened again at once
)

// Start is the command that starts the service.
const Start = "systemctl start berth-status-files.socket"

// follower follows the files, and says once what ails.
type follower struct {
	Source
	tell Teller
	log  hclog.Logger

	warned map[string]bool // by what was said
}

// Follow tells of the files until the context ends: of those that the service passes on, or else of those in the folder. What a file says
// is read at once, however long libvirt takes to answer about the guests before.
func Follow(ctx context.Context, from Source, tell Teller, log hclog.Logger) {
	from.again = cmp.Or(from.again, againEvery)
	f := &follower{Source: from, tell: tell, log: log, warned: map[string]bool{}}
	for retry := false; ctx.Err() == nil; {
		var passed *passedOn
		if !retry {
			passed, _ = dial(ctx, f.Socket, atOnce)
		}
		if passed == nil {
			passed = f.alone(ctx, retry)
			if retry = false; passed == nil {
				continue
			}
		}
		f.log.Info("libvirt's status files are passed on by their service", "socket", f.Socket)
		clear(f.warned)
		began := time.Now()
		err := watch(ctx, passed.follow, tell)
		if ctx.Err() == nil {
			f.log.Warn("libvirt's status files are passed on no more", "socket", f.Socket, "error", err)
			tell.Missed()
		}
		retry = time.Since(began) < briefly
	}
}

// alone follows the folder until the service answers, which it gives then, or until that fails. The service is asked at once, or only
// later.
func (f *follower) alone(ctx context.Context, later bool) *passedOn {
	ctx, end := context.WithCancel(ctx)
	answered := make(chan *passedOn, 1)
	go func() {
		defer end()
		answered <- f.redial(ctx, later)
	}()
	began := time.Now()
	err := f.folder(ctx)
	if ctx.Err() == nil {
		f.warn("changed devices are noticed minutes later: libvirt's files cannot be watched", "folder", f.Folder, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(f.again):
		}
	}
	if time.Since(began) > f.again {
		f.tell.Missed()
	}
	end()
	return <-answered
}

// redial tries until the service answers.
func (f *follower) redial(ctx context.Context, later bool) *passedOn {
	for ; ; later = true {
		if later {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(f.again):
			}
		}
		if passed, err := dial(ctx, f.Socket, againEvery); err == nil {
			return passed
		}
	}
}

// folder follows the folder itself.
func (f *follower) folder(ctx context.Context) error {
	here := folder(f.Folder)
	return watch(ctx, func(ctx context.Context, deliver func(item)) error {
		return here.follow(ctx, func(one item) {
			if one.is == there {
				one = here.found(one.Name)
			}
			if one.is == unreadable && f.Socket != "" {
				f.warn("what a guest changes right before its end may not be known: libvirt's status files may not be read, and are not "+
					"passed on", "socket", f.Socket, "next_step", Start)
			}
			deliver(one)
		})
	}, f.tell)
}

func (f *follower) warn(text string, about ...any) {
	if !f.warned[text] {
		f.warned[text] = true
		f.log.Warn(text, about...)
	}
}

// Passes says why the service does not pass anything on; nil: it does.
func Passes(ctx context.Context, socket string) error {
	passed, err := dial(ctx, socket, againEvery)
	if err == nil {
		err = passed.conn.Close()
	}
	return err
}

// dial connects to the service and waits until it has said that it is one.
func dial(ctx context.Context, socket string, limit time.Duration) (*passedOn, error) {
	if socket == "" {
		return nil, errors.New("no service is to be asked")
	}
	dialer := net.Dialer{Timeout: limit}
	conn, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	passed := newPassedOn(conn)
	first, err := passed.next(limit)
	passed.keeps = first.Keeps
	if err == nil && first.Kind != kindBegin {
		err = errors.New("another service answers at " + socket)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return passed, nil
}
