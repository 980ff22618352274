package libvirt

import (
	"testing"
	"time"

	"berth/agent/hypervisor/processes"
)

// What is kept of a guest holds until libvirt tells of it, or until it is another one.
func TestGuestsAreForgottenWhenThereIsNews(t *testing.T) {
	var g guests
	unseen := func() *processes.Process { return nil }
	one := g.of(guestUUID, 7, unseen)
	one.at, one.marked = time.Now(), true
	if again := g.of(guestUUID, 7, unseen); again != one || !again.marked {
		t.Errorf("it was forgotten: %+v", again)
	}
	g.news.Heard("another")
	if again := g.of(guestUUID, 7, unseen); !again.marked {
		t.Error("another's news")
	}
	for what, event := range map[string]func(){"its news": func() { g.news.Heard(guestUUID) }, "a new connection": g.news.Reconnected} {
		one.at, one.marked = time.Now(), true
		event()
		if again := g.of(guestUUID, 7, unseen); again != one || again.marked || !again.at.IsZero() {
			t.Errorf("%s: still known: %+v", what, again)
		}
	}
	if again := g.of(guestUUID, 8, unseen); again == one {
		t.Error("another start is another guest")
	}
	g.keep(nil)
	if len(g.known) != 0 {
		t.Error("what is gone is kept")
	}
}
