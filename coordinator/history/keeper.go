package history

import (
	"context"
	"fmt"
	"iter"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/coordinator/state"
	"berth/shared/pause"
)

// How often a Keeper looks at what there is to do.
const (
	followEvery = time.Second
	tendEvery   = 10 * time.Second
	// fillPages is how many pages of what is missing are taken in between two looks at the state.
	fillPages = 64
	// askPatience is how long another member may take for a page.
	askPatience = 10 * time.Second
)

// Peer is another member's history.
type Peer interface {
	Page(ctx context.Context, after, through uint64) (Page, error)
}

// Config is what a Keeper needs.
type Config struct {
	Dir    string
	Limits Limits
	State  func() *state.Snapshot
	Last   func() uint64 // entry of this member's log
	Peers  func() []Peer
	Now    func() time.Time
	Log    hclog.Logger
}

// Keeper keeps the history of this member. What the state keeps is its queue: so applying a command never waits for it, and if it
// cannot write for a while, it goes on where it was. Its methods may be called from any goroutine, and on nil: that has no history.
type Keeper struct {
	Config

	mu      sync.Mutex
	store   *Store // nil until it is open
	seen    uint64 // entries through this one made nothing that the store lacks
	problem string // why it cannot go on; empty: it can
}

// NewKeeper makes a Keeper. Nothing is read or written before Run.
func NewKeeper(config Config) *Keeper { return &Keeper{Config: config} }

// Run keeps the history until the context ends.
func (k *Keeper) Run(ctx context.Context) {
	for !k.told(k.open()) {
		if !pause.For(ctx, tendEvery) {
			return
		}
	}
	tended := k.Now()
	for pause.For(ctx, followEvery) {
		if !k.told(k.follow()) {
			if !pause.For(ctx, tendEvery) {
				return
			}
			continue
		}
		if now := k.Now(); now.Sub(tended) >= tendEvery {
			tended = now
			k.told(k.tend(ctx))
		}
	}
}

// told notes how it goes, and tells whether it goes well.
func (k *Keeper) told(err error) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	problem := ""
	if err != nil {
		problem = err.Error()
	}
	switch problem {
	case k.problem:
	case "":
		k.Log.Info("the history goes on")
	default:
		k.Log.Error("the history cannot go on; it is tried again, and all else goes on without it", "error", problem)
	}
	k.problem = problem
	return err == nil
}

// open opens the store. One that has come further than this member's log is of a log that was replaced, and is set aside.
func (k *Keeper) open() error {
	store, notes, err := Open(k.Dir, k.Limits)
	if err != nil {
		return err
	}
	for _, note := range notes {
		k.Log.Error(note)
	}
	if last := k.Last(); store.Whole() > last {
		aside, err := SetAside(k.Dir, k.Now())
		if err != nil {
			return err
		}
		k.Log.Warn("the history is of a log that was replaced, and was set aside", "as", aside, "history", store.Whole(), "log", last)
		if store, _, err = Open(k.Dir, k.Limits); err != nil {
			return err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.store = store
	return nil
}

// SetAside gives the directory of a history, if there is one, another name, because its log is replaced.
func SetAside(dir string, now time.Time) (aside string, err error) {
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		return "", nil
	}
	aside = fmt.Sprintf("%s.before-%s", dir, now.UTC().Format("20060102T150405Z"))
	if err := os.Rename(dir, aside); err != nil {
		return "", fmt.Errorf("set the history aside: %w", err)
	}
	return aside, nil
}

// follow takes in what the state has made since. What the state has dropped before that is left as a range that is missing.
func (k *Keeper) follow() error {
	store, x := k.opened(), k.State()
	whole := store.Whole()
	if x.Index() <= whole { // a backup was restored: the log goes on from where it was
		return nil
	}
	after := max(whole, x.HistoryFrom())
	rows := Since(x, after)
	if len(rows) > 0 {
		if err := store.Add(after, x.Index(), rows); err != nil {
			return err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen = x.Index()
	return nil
}

// tend drops what is old or too much, and fills what is missing.
func (k *Keeper) tend(ctx context.Context) error {
	store := k.opened()
	if _, err := store.Prune(k.Now()); err != nil {
		return err
	}
	for range fillPages {
		filled, err := k.fill(ctx, store)
		if err != nil || !filled {
			return err
		}
	}
	return nil
}

// fill asks the other members for one page of what is missing, and tells whether there was one.
func (k *Keeper) fill(ctx context.Context, store *Store) (filled bool, err error) {
	missing, leading := store.Missing()
	for i, hole := range missing {
		peers := k.Peers()
		page, answered := ask(ctx, peers, hole)
		if len(page.Block) == 0 && page.Begins > 0 {
			page, _ = ask(ctx, peers, Range{page.Begins, hole.Through})
		}
		if len(page.Block) > 0 {
			if _, err := store.Fill(page); err != nil {
				return false, fmt.Errorf("fill in entries %d to %d of the log: %w", hole.After+1, hole.Through, err)
			}
			return true, nil
		}
		if leading && i == len(missing)-1 && answered && len(peers) > 0 {
			store.GiveUp(hole.Through)
		}
	}
	return false, nil
}

// ask asks one member after the other for a page, until one has the beginning of the range. If none has, it tells the earliest entry that
// any of them begins after. Answered tells that all have answered.
func ask(ctx context.Context, peers []Peer, want Range) (best Page, answered bool) {
	answered = true
	for _, peer := range peers {
		asking, cancel := context.WithTimeout(ctx, askPatience)
		page, err := peer.Page(asking, want.After, want.Through)
		cancel()
		switch {
		case err != nil:
			answered = false
		case len(page.Block) > 0:
			return page, answered
		case page.Begins > 0 && (best.Begins == 0 || page.Begins < best.Begins):
			best = page
		}
	}
	return best, answered
}

// opened is the store; nil until it is open, and of no Keeper.
func (k *Keeper) opened() *Store {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.store
}

// Backwards is Store.Backwards. Before the store is open there is nothing.
func (k *Keeper) Backwards(q Query) iter.Seq2[Row, error] {
	if store := k.opened(); store != nil {
		return store.Backwards(q)
	}
	return func(func(Row, error) bool) {}
}

// After is Store.After. Before the store is open that is an error.
func (k *Keeper) After(after Place, limit int) (Part, error) {
	if store := k.opened(); store != nil {
		return store.After(after, limit)
	}
	return Part{}, errNotOpen
}

// Whole is Store.Whole; 0 before the store is open.
func (k *Keeper) Whole() uint64 {
	if store := k.opened(); store != nil {
		return store.Whole()
	}
	return 0
}

// Page is Store.Page. Before the store is open it has nothing.
func (k *Keeper) Page(after, through uint64) (Page, error) {
	if store := k.opened(); store != nil {
		return store.Page(after, through)
	}
	return Page{}, errNotOpen
}

var errNotOpen = fmt.Errorf("the history of this coordinator is not open yet")

// Health is how a history goes.
type Health struct {
	Figures
	Behind  uint64 // entries that the state has applied and the history has not looked at
	Problem string // empty: it goes well
}

// Health tells how it goes.
func (k *Keeper) Health() (h Health) {
	store := k.opened()
	if store == nil {
		if k != nil {
			k.mu.Lock()
			defer k.mu.Unlock()
			h.Problem = k.problem
		}
		return h
	}
	h.Figures = store.Figures()
	index := k.State().Index()
	k.mu.Lock()
	defer k.mu.Unlock()
	if at := max(h.Whole, k.seen); index > at {
		h.Behind = index - at
	}
	h.Problem = k.problem
	return h
}
