package consensus

import (
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// repeatEvery is how often the same failure to reach the same member is logged. Raft tells of each heartbeat that fails,
// which for a member that is down for a day is several hundred thousand lines.
const repeatEvery = time.Minute

// quiet is Raft's logger.
type quiet struct {
	hclog.Logger
	now func() time.Time

	mu   sync.Mutex
	told map[string]time.Time
}

func newQuiet(logger hclog.Logger) *quiet {
	return &quiet{Logger: logger, now: time.Now, told: make(map[string]time.Time)}
}

// Error implements hclog.Logger.
func (q *quiet) Error(message string, args ...any) {
	switch message {
	case "failed to heartbeat to", "failed to appendEntries to", "failed to pipeline appendEntries",
		"failed to start pipeline replication to":
		if len(args) >= 2 && q.again(message+fmt.Sprint(args[1])) {
			return
		}
	}
	q.Logger.Error(message, args...)
}

func (q *quiet) again(what string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at, told := q.told[what]; told && q.now().Sub(at) < repeatEvery {
		return true
	}
	q.told[what] = q.now()
	return false
}
