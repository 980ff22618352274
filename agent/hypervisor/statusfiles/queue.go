package statusfiles

import (
	"errors"
	"sync"
)

// What one reader may leave unread: the texts of files that were written, and the files themselves.
const (
	mostBytes = 16 << 20
	mostItems = 1 << 16
)

// errSlow ends the connection of a reader that has left too much unread. It connects again, and is told what is there by then.
var errSlow = errors.New("it reads too slowly")

// queue has what one reader is to be told. The zero value is ready but for wake, which has room for one.
type queue struct {
	mu    sync.Mutex
	items []*item
	last  map[string]*item // of each guest, while it waits
	bytes int
	wake  chan struct{}
	err   error // why nothing more comes
}

// put adds what was found of a file. What a guest ran with last is never dropped for what comes after its end; of a guest that goes on
// only the newest counts.
func (q *queue) put(one item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return
	}
	q.bytes += len(one.Text)
	if before := q.last[one.Name]; before != nil && before.is != gone && one.is != gone {
		q.bytes -= len(before.Text)
		one.Found = one.Found || before.Found
		*before = one
	} else {
		if q.last == nil {
			q.last = map[string]*item{}
		}
		q.items, q.last[one.Name] = append(q.items, &one), &one
	}
	if q.bytes > mostBytes || len(q.items) > mostItems {
		q.err = errSlow
	}
	q.awake()
}

// end says that nothing more comes, and why.
func (q *queue) end(why error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = why
	}
	q.awake()
}

func (q *queue) awake() {
	select {
	case q.wake <- struct{}{}:
	default: // it is awake, or will be
	}
}

// take is the next one; is tells whether there is one. The error says that none comes any more.
func (q *queue) take() (one item, is bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case errors.Is(q.err, errSlow):
		return one, false, q.err
	case len(q.items) == 0:
		return one, false, q.err
	}
	first := q.items[0]
	q.items[0] = nil
	q.items = q.items[1:]
	q.bytes -= len(first.Text)
	if q.last[first.Name] == first {
		delete(q.last, first.Name)
	}
	return *first, true, nil
}
