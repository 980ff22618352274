package consensus

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

func TestAMemberThatIsDownIsToldOfOnceAMinute(t *testing.T) {
	var out bytes.Buffer
	now := time.Now()
	q := newQuiet(hclog.New(&hclog.LoggerOptions{Output: &out}))
	q.now = func() time.Time { return now }
	lines := func() int { return strings.Count(out.String(), "\n") }
	for range 100 {
		q.Error("failed to heartbeat to", "peer", "m2:7422", "error", "refused")
		q.Error("failed to heartbeat to", "peer", "m3:7422", "error", "refused")
	}
	if lines() != 2 {
		t.Errorf("%d lines for two members, want one each", lines())
	}
	now = now.Add(repeatEvery)
	q.Error("failed to heartbeat to", "peer", "m2:7422", "error", "refused")
	q.Error("failed to commit logs", "error", "disk")
	q.Error("failed to commit logs", "error", "disk")
	if lines() != 5 {
		t.Errorf("%d lines, want one more for the member and all of the others", lines())
	}
}
