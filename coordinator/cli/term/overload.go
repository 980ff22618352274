package term

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"berth/shared/pause"
	"berth/shared/rpc"
)

const (
	// busyPatience is how long overload is waited out by a command that has no --timeout.
	busyPatience = 30 * time.Second
	// hungPatience bounds how long coordinators are asked that take connections and get no further. They may be busy, or hang.
	hungPatience = time.Minute
	// longestWait bounds how long the command line waits between two questions.
	longestWait = 10 * time.Second
)

// CallerTimeout is how long a command that was given this line may wait for coordinators that are busy: its --timeout, if it has one.
func (a *App) CallerTimeout(cmd *cobra.Command) time.Duration {
	flag := cmd.Flags().Lookup("timeout")
	if flag == nil {
		return a.Busy
	}
	timeout, err := time.ParseDuration(flag.Value.String())
	waits, _ := cmd.Flags().GetBool("no-wait")
	if err != nil || timeout <= 0 || waits {
		return a.Busy
	}
	if flag.Changed {
		return timeout
	}
	return max(a.Busy, timeout)
}

// overload is how one call waits for coordinators that have more to do than they can take on. What they have refused for that was not
// begun, so it costs nothing of the budget of repetitions; each wait is longer than the one before it instead.
type overload struct {
	session *Session
	began   time.Time
	waits   int
}

// waitOut waits after a refusal until the request can be made again. The error says that there is no time left for that.
func (o *overload) waitOut(ctx context.Context, wait time.Duration, refused error) error {
	wait = min(wait<<min(o.waits, 4), longestWait)
	left := o.session.busy - time.Since(o.began)
	if left <= 0 {
		return Failf(rpc.Overloaded, "nothing was done: run it again later, with a longer --timeout if the command has one; "+
			"'berth operation list --running' shows what is being worked on",
			"the coordinators are busy, and have been for %s: %s", Span(o.session.busy), Message(answer(refused)))
	}
	wait = min(jittered(wait), left)
	o.waits++
	o.session.tell(fmt.Sprintf("the coordinators are busy: asking again in %s", Span(wait)))
	if !pause.For(ctx, wait) {
		return context.Cause(ctx)
	}
	return nil
}

// bear waits before coordinators are asked again that have taken connections and got no further. It is false when that has lasted too
// long: the answer is then what they did not do.
func (o *overload) bear(ctx context.Context) bool {
	if o.session.hangs || time.Since(o.began) > min(o.session.busy/2, hungPatience) {
		o.session.hangs = true
		return false
	}
	if o.waits++; o.waits == 1 {
		o.session.tell("the coordinators take connections and do not answer yet, they may be busy: asking again")
	}
	return pause.For(ctx, jittered(RoundPause))
}

// crowded tells whether a coordinator took the connection, or the request, and got no further.
func crowded(misses []miss) bool {
	return slices.ContainsFunc(misses, func(m miss) bool { return m.slow || m.late })
}

// late tells whether coordinators took the request and did not answer in time. They run, so they have too much to do.
func late(misses []miss) bool {
	return slices.ContainsFunc(misses, func(m miss) bool { return m.late })
}

// tooLate says that the coordinators are busy, and what each of them did.
func (s *Session) tooLate(misses []miss) error {
	lines := make([]string, 0, len(misses))
	for _, m := range misses {
		why := Reason(m.err)
		if m.late {
			why = "it has taken the request, and has not answered within " + Span(m.limit)
		}
		lines = append(lines, fmt.Sprintf("  %s: %s", m.address, why))
	}
	const next = "it may have been done all the same: look at what is there ('berth operation list --running') before you repeat it"
	return Failf(rpc.Timeout, next, "the coordinators are busy, or their disks hang:\n%s", strings.Join(lines, "\n"))
}

// retryAfter is how long to wait before a request is repeated that was not taken on: as long as the answer says. It is repeated with
// the same request ID, and nothing was done.
func retryAfter(err error) (wait time.Duration, later bool) {
	if rpc.Detail(err).GetCode() != rpc.Overloaded {
		return 0, false
	}
	seconds, parsed := strconv.Atoi(answer(err).Meta().Get("Retry-After"))
	if parsed != nil || seconds < 1 {
		seconds = 1
	}
	return min(time.Duration(seconds)*time.Second, longestWait), true
}

// answer is the coordinator's part of an error.
func answer(err error) *connect.Error {
	var answered *connect.Error
	if !errors.As(err, &answered) {
		return connect.NewError(connect.CodeUnknown, err)
	}
	return answered
}
