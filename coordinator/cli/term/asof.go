package term

import (
	"cmp"
	"time"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// Dated is an answer of the API that may be of the past.
type Dated interface {
	Filtered
	GetLastKnown() *berthv1.LastKnown
}

// Leaderless tells whether a call failed because no coordinator that was reached has a leader.
func Leaderless(err error) bool {
	code := rpc.Detail(err).GetCode()
	return code == rpc.NoLeader || code == rpc.Unreachable
}

// AsOf says as of when a coordinator without a leader tells; empty: what it tells is the present.
func AsOf(a *App, known *berthv1.LastKnown) string {
	if known == nil {
		return ""
	}
	by := Clean(cmp.Or(known.GetAnsweredBy(), "a coordinator"))
	if known.GetAt() == nil {
		return "no quorum: " + by + " began without a leader, and knows its records only once there is one"
	}
	at := moment(a, known.GetAt().AsTime()) + ", " + Span(Seconds(known.GetAgeSeconds())) + " ago"
	if known.GetRecordsOnly() {
		return "as of " + at + ", no quorum: by its records alone, " + by + " has heard no leader since it began; " +
			"which nodes are up is unknown"
	}
	return "as of " + at + ", no quorum: this is what " + by + " last knew"
}

// moment is a time of today without its date.
func moment(a *App, t time.Time) string {
	now := a.Now()
	t = t.In(now.Location())
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}
