package admin

import (
	"fmt"
	"os"
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

// together is how many seeds are played at a time: enough that some wait while others compute.
const together = 10

// Whatever a random administrator does to guests with Berth and with virsh, nothing is lost, nothing runs twice, nothing happens that
// nobody wants, and Berth tells how things are.
func TestSeeds(t *testing.T) {
	// Few by default: a hundred take eight minutes, and on a machine that does other work as well a command may take too long.
	first, count := number(t, "FIRST", 1), number(t, "SEEDS", 16)
	if one := number(t, "SEED", 0); one != 0 {
		first, count = one, 1
	}
	s := raise(t, "admin")
	begun := time.Now()
	var (
		mu               sync.Mutex
		steps, worked    int
		broken           []string
		tried, succeeded = map[string]int{}, map[string]int{}
	)
	var all errgroup.Group
	all.SetLimit(together)
	for seed := first; seed < first+count; seed++ {
		all.Go(func() error {
			drawn := draw(seed)
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
			if found := judge(h); len(found) > 0 {
				broken = append(broken, fmt.Sprint(seed))
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
		t.Logf("%-28s %4d times, %4d worked", name, tried[name], succeeded[name])
	}
	t.Logf("seeds %d to %d: %d steps, %d worked, in %s", first, first+count-1, steps, worked, time.Since(begun).Round(time.Second))
	if len(broken) > 0 {
		t.Errorf("repeat one with SEED=n: %s", strings.Join(broken, " "))
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
