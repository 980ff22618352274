package admin

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// number is a number from the environment.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%s: want a number", name, text)
	}
	return n
}

// limit is after how long no further seed is begun; 0: all are played, however long that takes.
func limit(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("WITHIN")
	if text == "" {
		return 0
	}
	within, err := time.ParseDuration(text)
	if err != nil || within <= 0 {
		t.Fatalf("WITHIN=%s: want a duration like 10m", text)
	}
	return within
}

// together is how many seeds are played at a time: enough that some wait while others compute.
const together = 10

// Whatever a random administrator does to guests with Berth and with virsh, nothing is lost, nothing runs twice, nothing happens that
// nobody wants, and Berth tells how things are.
func TestSeeds(t *testing.T) {
	// A hundred take six minutes on two processors that do nothing else, eight beside other suites. Nearly all
	// of that is work of the processors: QEMU's own, and the processes of virsh and berth. What each part takes is said at the end.
	first, count := number(t, "FIRST", 1), number(t, "SEEDS", 100)
	if one := number(t, "SEED", 0); one != 0 {
		first, count = one, 1
	}
	within := limit(t)
	s := raise(t, "admin")
	begun := time.Now()
	var (
		mu               sync.Mutex
		steps, worked    int
		held             uint64 // seeds that libvirt did not let end
		broken           []string
		failed           []failure
		tried, succeeded = map[string]int{}, map[string]int{}
	)
	var all errgroup.Group
	all.SetLimit(together)
	times := number(t, "TIMES", 1)
	for turn := range count * times {
		seed := first + turn/times
		if within > 0 && time.Since(begun) > within {
			t.Logf("seeds %d to %d are not played: WITHIN=%v has passed", seed, first+count-1, within)
			count = seed - first
			break
		}
		all.Go(func() error {
			drawn := draw(seed)
			drawn.try = int(turn % times)
			h, err := s.playSeed(t.Context(), drawn)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("seed %d (%s): %v", seed, &drawn, err)
			}
			if h == nil {
				return nil
			}
			for _, d := range h.done {
				steps++
				tried[d.verb.name]++
				if d.code == 0 {
					worked++
					succeeded[d.verb.name]++
				}
			}
			if h.held != "" {
				held++
				t.Logf("seed %d (%s): not started again at its end: %s", seed, &drawn, h.held)
			}
			if found := judge(h); len(found) > 0 {
				broken = append(broken, fmt.Sprint(seed))
				failed = append(failed, failure{drawn, found[0].rule})
				t.Errorf("seed %d (%s):\n%s", seed, &drawn, h.tell(found))
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
	for i := range verbs {
		name := verbs[i].name
		spent := s.spent["step "+name].Round(100 * time.Millisecond)
		t.Logf("%-28s %4d times, %4d worked, %s", name, tried[name], succeeded[name], spent)
	}
	for _, part := range []string{"begin", "steps", "settle", "restart", "remove"} {
		t.Logf("%-28s %s", part, s.spent[part].Round(100*time.Millisecond))
	}
	t.Logf("seeds %d to %d: %d steps, %d worked, in %s", first, first+count-1, steps, worked, time.Since(begun).Round(time.Second))
	if os.Getenv("SHORTEN") != "" {
		s.shortened(t, failed)
	}
	if held > 1+count/20 {
		t.Errorf("libvirt kept the locks of %d of %d guests: too many for this run to show anything", held, count)
	}
	if len(broken) > 0 {
		t.Errorf("repeat one with SEED=n: %s", strings.Join(broken, " "))
	}
}

// failure is a script that breaks a rule.
type failure struct {
	script script
	rule   string
}

const (
	shortenTries = 40
	shortenLimit = 10 * time.Minute // for all seeds
)

// shortened says for each script that failed which of its steps are enough to break the same rule.
func (s *site) shortened(t *testing.T, failed []failure) {
	t.Helper()
	end := time.Now().Add(shortenLimit)
	for _, one := range failed {
		short := shorten(one.script, shortenTries, func(tried *script) bool {
			if time.Now().After(end) {
				return false
			}
			h, err := s.playSeed(t.Context(), *tried)
			if err != nil {
				t.Logf("a shorter seed %d (%s): %v", tried.seed, tried, err)
			}
			return h != nil && slices.ContainsFunc(judge(h), func(b breach) bool { return b.rule == one.rule })
		})
		t.Logf("seed %d breaks %q with %d of its %d steps: %s", short.seed, one.rule, len(short.steps), len(one.script.steps), &short)
	}
}

// tell is a history for people.
func (h *history) tell(found []breach) string {
	var text strings.Builder
	for _, b := range found {
		fmt.Fprintf(&text, "  BROKEN %s\n", b)
	}
	for _, d := range h.done {
		said := d.said
		if len(said) > 600 {
			said = said[:600] + "..."
		}
		said = strings.ReplaceAll(said, "\n", "\n      ")
		fmt.Fprintf(&text, "  %s-%s %s: exit code %d, on %s\n", clock(d.begun), clock(d.ended), d.step, d.code, said)
	}
	for _, run := range h.runs {
		to := "now"
		if !run.To.IsZero() {
			to = clock(run.To)
		}
		fmt.Fprintf(&text, "  executed on %s by %d (incoming: %t) from %s to %s\n", run.Host, run.PID, run.Incoming, clock(run.From), to)
	}
	for i, line := range h.lines {
		if line.Word != "wrote" || i+1 == len(h.lines) || h.lines[i+1].Word != "wrote" {
			fmt.Fprintf(&text, "  says %s %08x %d %d\n", line.Word, line.Boot, line.Number, line.Other)
		}
	}
	fmt.Fprintf(&text, "  quiet at %s: %+v\n", clock(h.quiet), h.look)
	return text.String()
}
