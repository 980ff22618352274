package daemon

import (
	"os"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"berth/coordinator/history"
	berthv1 "berth/shared/gen/berth/v1"
)

// A coordinator whose history lacks the beginning, because its disk was lost, has it from the others.
func TestWhatTheHistoryLacksIsFetchedFromAnotherCoordinator(t *testing.T) {
	first := newMachine(t, "c1")
	first.init()
	first.run()
	first.status("", led)
	second := newMachine(t, "c2")
	_, err := Join(t.Context(), JoinOptions{
		Address: first.load().Listen.API, Token: first.token(&berthv1.CreateTokenRequest{Purpose: "coordinator", Name: "c2"}),
		ConfigPath: second.config, ClientConfig: second.client,
	})
	second.check(err)
	second.run()
	first.status(second.load().Listen.API, func(s *berthv1.StatusResponse) bool { return voting(s) == 2 })
	for range 3 {
		first.token(&berthv1.CreateTokenRequest{Purpose: "operator", Name: "alice"})
	}
	past := func(m *machine) []*berthv1.HistoryEntry {
		answer, err := first.operator(m.load().Listen.API).ListHistory(t.Context(), connect.NewRequest(&berthv1.ListHistoryRequest{Limit: 500}))
		first.check(err)
		return answer.Msg.GetEntries()
	}
	same := func(a, b []*berthv1.HistoryEntry) bool {
		return len(a) > 3 && proto.Equal(&berthv1.ListHistoryResponse{Entries: a}, &berthv1.ListHistoryResponse{Entries: b})
	}
	eventually := func(what string, is func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !is(); time.Sleep(200 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %d entries here, %d there", what, len(past(second)), len(past(first)))
			}
		}
	}
	eventually("both have the same", func() bool { return same(past(first), past(second)) })

	second.halt()
	dir := place{second.load().DataDir}.history()
	store, _, err := history.Open(dir, history.Limits{})
	second.check(err)
	whole := store.Whole()
	second.check(os.RemoveAll(dir))
	store, _, err = history.Open(dir, history.Limits{})
	second.check(err)
	second.check(store.Add(whole, whole, nil)) // so the state's own events before that are not looked at again
	if missing, _ := store.Missing(); len(missing) == 0 {
		t.Fatal("nothing is lacking: this test looks at the wrong place")
	}
	second.run()
	first.status(second.load().Listen.API, led)
	eventually("what was lost is there again", func() bool { return same(past(first), past(second)) })
}
