package gate

import (
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/time/rate"

	"berth/coordinator/model"
	"berth/shared/rpc"
)

// Bounds of what is remembered of refused calls. Each becomes an entry of the log, which nobody may fill who is refused.
const (
	refusedEvery  = 10 * time.Second // of one identity; all without a certificate count as one
	refusedBurst  = 5
	refusedInAll  = 60 // that wait to be written
	refusedReason = 300
)

// refusals are calls that were refused and are not in the history yet. The zero value has none.
type refusals struct {
	mu      sync.Mutex
	pace    map[string]*rate.Limiter
	more    map[string]int // refused beyond that pace, since the last that is told
	waiting []model.Event
}

// NoteRefused has a call told in the history that was refused because its caller may not do that. Other refusals are none of it.
func (k *Keeper) NoteRefused(caller Caller, procedure string, refused *connect.Error) {
	detail := rpc.Detail(refused)
	if detail.GetCode() != rpc.Denied {
		return
	}
	who := caller.String()
	if caller.Role == Anonymous {
		who = "anonymous"
	}
	now := k.now()
	k.refused.mu.Lock()
	defer k.refused.mu.Unlock()
	if k.refused.pace == nil || len(k.refused.pace) >= maxCallers {
		k.refused.pace, k.refused.more = make(map[string]*rate.Limiter), make(map[string]int)
	}
	pace := k.refused.pace[who]
	if pace == nil {
		pace = rate.NewLimiter(rate.Every(refusedEvery), refusedBurst)
		k.refused.pace[who] = pace
	}
	if len(k.refused.waiting) >= refusedInAll || !pace.AllowN(now, 1) {
		k.refused.more[who]++
		return
	}
	said := refused.Message()
	if len(said) > refusedReason {
		said = strings.ToValidUTF8(said[:refusedReason], "") + "..."
	}
	text := fmt.Sprintf("%s was refused: %s", path.Base(procedure), said)
	if more := k.refused.more[who]; more > 0 {
		text += fmt.Sprintf(" (and %d more of this caller before)", more)
		delete(k.refused.more, who)
	}
	subject := detail.GetSubject()
	if noun, name, named := strings.Cut(subject, "/"); !named || noun == "" || name == "" {
		subject = "identity/" + who
	}
	k.refused.waiting = append(k.refused.waiting, model.Event{
		At: now.UTC(), Kind: "call.refused", Subject: subject, Message: text, Caller: caller.String(), CallerID: caller.ID,
	})
}

// Refused takes the calls that were refused, as events.
func (k *Keeper) Refused() []model.Event {
	k.refused.mu.Lock()
	defer k.refused.mu.Unlock()
	events := k.refused.waiting
	k.refused.waiting = nil
	return events
}
