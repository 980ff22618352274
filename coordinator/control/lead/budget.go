package lead

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// What one node may cause to be committed by what it says, without anybody having asked for something: a host with hundreds of guests
// that boots anew is far below, and a host that lies in every report fills neither the log nor the time of the others.
const (
	commitsASecond = 1
	commitsAtOnce  = 1024
)

// budgets are those of all nodes that have caused a commit. The zero value is ready.
type budgets struct {
	mu  sync.Mutex
	all map[string]*budget
}

type budget struct {
	*rate.Limiter
	spent bool // that was told
}

// spend takes one from the budget of a node. It is false when there is nothing left; first says that this is news.
func (b *budgets) spend(node string, now time.Time) (left, first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.all[node]
	if own == nil {
		if b.all == nil {
			b.all = make(map[string]*budget)
		}
		own = &budget{Limiter: rate.NewLimiter(commitsASecond, commitsAtOnce)}
		b.all[node] = own
	}
	if own.AllowN(now, 1) {
		own.spent = own.spent && own.TokensAt(now) < commitsAtOnce/2
		return true, false
	}
	first, own.spent = !own.spent, true
	return false, first
}
