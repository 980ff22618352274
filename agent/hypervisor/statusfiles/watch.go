package statusfiles

import (
	"context"
	"sync"
	"time"
)

// settle is how long a change is waited with that libvirt is then asked about: it is often written in several steps.
const settle = 50 * time.Millisecond

// condition is what was found where a guest's file may be.
type condition int

const (
	noFile condition = iota // it is no guest's
	there                   // it is, and was not read yet
	read
	unreadable
	gone   // and so is its guest, or it is being written
	listed // no file: all that were there have been delivered
)

// item is a guest's file and what was found of it.
type item struct {
	File

	is      condition
	changed bool // since the watch began
}

// source delivers what is there and what changes, in the goroutine that calls it, until the context ends or it cannot any more.
type source func(ctx context.Context, deliver func(item)) error

// backlog is how many files may have been read that were not told yet.
const backlog = 256

// watch tells of what a source delivers. The error is the source's.
func watch(ctx context.Context, from source, tell Teller) error {
	ctx, end := context.WithCancel(ctx)
	w := &watching{
		tell: tell, hidden: questions{wake: make(chan struct{}, 1), answers: make(chan item)},
		items: make(chan item, backlog), batches: make(chan map[string]string), due: map[string]string{},
	}
	var all, telling sync.WaitGroup
	defer all.Wait()
	defer end()
	all.Go(func() { w.hidden.ask(ctx, tell.Ask) })
	all.Go(w.change)
	telling.Go(w.run)
	defer telling.Wait() // what was read before the source has ended is told
	defer close(w.items)
	return from(ctx, func(one item) {
		select {
		case <-ctx.Done():
		case w.items <- one:
		}
	})
}

// watching is a watch under way.
type watching struct {
	tell    Teller
	hidden  questions
	items   chan item
	batches chan map[string]string
	due     map[string]string // that have changed, and what libvirt said of them
	timer   *time.Timer
}

// run tells of items until there are no more.
func (w *watching) run() {
	defer close(w.batches)
	w.timer = time.NewTimer(settle)
	defer w.timer.Stop()
	for {
		select {
		case one, open := <-w.items:
			if !open {
				return
			}
			w.take(one)
		case answer := <-w.hidden.answers:
			w.tell.Wrote(answer.File)
			if answer.changed {
				w.changed(answer.Name, answer.Text)
			}
		case <-w.timer.C:
			if len(w.due) == 0 {
				continue
			}
			select {
			case w.batches <- w.due:
				w.due = map[string]string{}
			default: // libvirt is still being asked about those before
				w.timer.Reset(settle)
			}
		}
	}
}

func (w *watching) take(one item) {
	switch one.is {
	case gone, read:
		w.tell.Wrote(one.File)
	case unreadable:
		w.hidden.put(one)
	}
	if one.changed && one.is == read {
		w.changed(one.Name, "")
	}
}

// changed notes that a guest has changed, and what libvirt said of it when it was asked after that.
func (w *watching) changed(name, said string) {
	if len(w.due) == 0 {
		w.timer.Reset(settle)
	}
	w.due[name] = said
}

// change says which have changed.
func (w *watching) change() {
	for batch := range w.batches {
		for name, said := range batch {
			w.tell.Changed(name, said)
		}
	}
}

// questions are about the guests whose files may not be read: each at most once at a time, however often its file is written.
type questions struct {
	mu      sync.Mutex
	due     map[string]item
	wake    chan struct{}
	answers chan item
}

func (q *questions) put(about item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.due == nil {
		q.due = map[string]item{}
	}
	about.changed = about.changed || q.due[about.Name].changed
	q.due[about.Name] = about
	select {
	case q.wake <- struct{}{}:
	default: // it is awake, or will be
	}
}

// take is one of them.
func (q *questions) take() (item, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for name, about := range q.due {
		delete(q.due, name)
		return about, true
	}
	return item{}, false
}

// ask passes on what is answered, until the context ends.
func (q *questions) ask(ctx context.Context, answer func(name string) string) {
	for {
		about, is := q.take()
		if !is {
			select {
			case <-ctx.Done():
				return
			case <-q.wake:
				continue
			}
		}
		if about.Text = answer(about.Name); about.Text == "" {
			continue // it has ended meanwhile: that its file is gone is told too
		}
		select {
		case <-ctx.Done():
			return
		case q.answers <- about:
		}
	}
}
