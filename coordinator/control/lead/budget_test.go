package lead

import (
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/coordinator/state"
)

func TestANodeThatSaysSomethingElseAllTheTimeIsWrittenDownSlowly(t *testing.T) {
	var told strings.Builder
	now := time.Unix(1_800_000_000, 0)
	l := New(Config{
		Store: state.NewStore(), Logger: hclog.New(&hclog.LoggerOptions{Output: &told}), Now: func() time.Time { return now },
	})
	spent := func(node string, wanted int) (got int) {
		for range wanted {
			if l.Spend(node) {
				got++
			}
		}
		return got
	}
	if got := spent("liar", 100_000); got != commitsAtOnce {
		t.Errorf("%d commits at once, want %d", got, commitsAtOnce)
	}
	if lines := strings.Count(told.String(), "liar"); lines != 1 {
		t.Errorf("that was told %d times:\n%s", lines, told.String())
	}
	if got := spent("honest", commitsAtOnce); got != commitsAtOnce {
		t.Errorf("another node has %d", got)
	}
	if got := spent("", 10_000); got != 10_000 {
		t.Errorf("what no node has caused: %d", got)
	}
	now = now.Add(time.Minute)
	if got := spent("liar", 100_000); got != 60*commitsASecond {
		t.Errorf("%d commits after a minute", got)
	}
}
