package webhook

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/coordinator/history"
	"berth/coordinator/model"
	"berth/coordinator/seal"
	"berth/coordinator/state"
	"berth/shared/pause"
)

// lookEvery is how often the records and the history are looked at.
const lookEvery = time.Second

// Past is what has happened. *history.Keeper has it.
type Past interface {
	After(after history.Place, limit int) (history.Part, error)
	Whole() uint64 // the entry of the log that it has come to
}

// Config is what a Sender needs.
type Config struct {
	Cluster string
	Self    string // name of this coordinator
	State   func() *state.Snapshot
	Past    Past
	Keys    func() (seal.Keys, error)
	Propose func(ctx context.Context, command state.Command) (state.Result, error)
	NewID   func() string
	Log     hclog.Logger

	fresh    bool          // as of newClient
	patience time.Duration // 0: patience
}

// Sender sends while this member leads. Its methods may be called from any goroutine.
type Sender struct {
	Config

	mu      sync.Mutex
	workers map[string]*worker
}

// NewSender makes a Sender. Nothing is sent before Run.
func NewSender(config Config) *Sender {
	return &Sender{Config: config, workers: make(map[string]*worker)}
}

// Run sends until the context ends with the leadership.
func (s *Sender) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer func() {
		running.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		clear(s.workers)
	}()
	stops := make(map[*worker]context.CancelFunc)
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()
	for {
		x := s.State()
		s.mu.Lock()
		for name, w := range s.workers {
			if revision := x.MetaRevision(recordPrefix + name); revision != w.revision {
				hook, _, known := Of(x, name)
				if known && hook.CreatedAt.Equal(w.hook.CreatedAt) {
					w.revision = revision // its secret was sealed anew
					continue
				}
				stops[w]()
				delete(stops, w)
				delete(s.workers, name)
			}
		}
		for _, name := range Names(x) {
			if s.workers[name] != nil {
				continue
			}
			hook, _, known := Of(x, name)
			if !known {
				continue
			}
			w := newWorker(s, hook)
			w.revision = x.MetaRevision(recordPrefix + name)
			works, stop := context.WithCancel(ctx)
			s.workers[name], stops[w] = w, stop
			running.Go(func() { w.run(works) })
		}
		s.mu.Unlock()
		if !pause.For(ctx, lookEvery) {
			return
		}
	}
}

// Health is how the sending to one receiver goes, as its leader sees it.
type Health struct {
	Taken   uint64
	Waiting int
	Behind  uint64 // entries of the log that are not read
	Since   time.Time
	Problem string
}

// Health tells it; false: nothing is sent from here.
func (s *Sender) Health(name string) (Health, bool) {
	s.mu.Lock()
	w := s.workers[name]
	s.mu.Unlock()
	if w == nil {
		return Health{}, false
	}
	return w.health(), true
}

// Test sends something that did not happen, once.
func (s *Sender) Test(ctx context.Context, hook *Webhook) (id string, took time.Duration, err error) {
	secret, _, err := s.reveal(hook)
	if err != nil {
		return "", 0, err
	}
	at := time.Now()
	row := history.Row{Event: &model.Event{
		At: at, Kind: "webhook.test", Subject: "webhook/" + hook.Name, Message: "this is a test: nothing has happened",
		Caller: "coordinator/" + s.Self,
	}}
	t, _ := tell(s.Cluster, &row)
	body, err := t.body(s.Cluster)
	if err != nil {
		return "", 0, err
	}
	c := newClient(hook, secret, true)
	err = c.post(ctx, t.id, at, body)
	return t.id, time.Since(at), err
}

func (s *Sender) reveal(hook *Webhook) (secret []byte, stale bool, err error) {
	keys, err := s.Keys()
	if err != nil {
		return nil, false, err
	}
	secret, stale, err = keys.Reveal(subjectOfSecret(hook.Name), hook.Secret)
	if err != nil {
		return nil, false, fmt.Errorf("its secret cannot be read: %w; remove the webhook and add it again", err)
	}
	return secret, stale, nil
}

// errStale reports that a record was another one when it was to be written.
var errStale = errors.New("the record has changed")

// propose writes a change of a webhook's record.
func (s *Sender) propose(ctx context.Context, command state.Command) error {
	command.Key, command.Caller, command.At = s.NewID(), "coordinator/"+s.Self, time.Now().UTC()
	result, err := s.Propose(ctx, command)
	switch {
	case err != nil:
		return err
	case result.Refusal == nil:
		return nil
	case result.Refusal.Code == state.Stale:
		return errStale
	default:
		return result.Refusal
	}
}
