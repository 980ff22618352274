package daemon

import (
	"io"
	"net/http"
	"testing"
	"time"

	"berth/coordinator/targets"
	"berth/shared/config"
	berthv1 "berth/shared/gen/berth/v1"
)

// A coordinator that does not lead tells Prometheus the same targets as the leader, and goes on while nobody leads.
func TestEveryCoordinatorTellsTheTargets(t *testing.T) {
	g := newGroup(t, 2)
	follower := g.all[1]
	follower.halt()
	c := follower.load()
	c.Metrics.Listen = freeAddress(t)
	g.check(config.Write(follower.config, c, 0o644))
	follower.run()
	g.status("", func(s *berthv1.StatusResponse) bool { return voting(s) == 2 && s.GetLeader() == "c1" })
	told := func(leads bool) {
		t.Helper()
		var answered string
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+c.Metrics.Listen+targets.Path, nil)
			g.check(err)
			answer, err := client.Do(request)
			if err != nil {
				answered = err.Error()
				continue
			}
			text, err := io.ReadAll(answer.Body)
			g.check(err)
			g.check(answer.Body.Close())
			if answered = answer.Status + ": " + string(text); answer.StatusCode == http.StatusOK {
				if string(text) != "[]\n" { // both listen for their own machine alone
					t.Errorf("it told %s", text)
				}
				return
			}
		}
		t.Errorf("with a leader %t the follower answered %s", leads, answered)
	}
	told(true)
	g.all[0].halt() // of two, the other one cannot lead alone
	told(false)
}
