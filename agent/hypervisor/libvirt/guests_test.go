package libvirt

import (
	"testing"
	"time"
)

// What is kept of a guest holds until libvirt tells of it, or until it is another one.
func TestGuestsAreForgottenWhenThereIsNews(t *testing.T) {
	var g guests
	one := g.of(guestUUID, 7, "web-1", t.TempDir())
	one.at, one.marked = time.Now(), true
	if again := g.of(guestUUID, 7, "web-1", t.TempDir()); again != one || !again.marked {
		t.Errorf("it was forgotten: %+v", again)
	}
	g.news.heard("another")
	if again := g.of(guestUUID, 7, "web-1", t.TempDir()); !again.marked {
		t.Error("another's news")
	}
	for what, event := range map[string]func(){"its news": func() { g.news.heard(guestUUID) }, "a new connection": g.news.reconnected} {
		one.at, one.marked = time.Now(), true
		event()
		if again := g.of(guestUUID, 7, "web-1", t.TempDir()); again != one || again.marked || !again.at.IsZero() {
			t.Errorf("%s: still known: %+v", what, again)
		}
	}
	if again := g.of(guestUUID, 8, "web-1", t.TempDir()); again == one {
		t.Error("another start is another guest")
	}
	g.keep(nil)
	if len(g.known) != 0 {
		t.Error("what is gone is kept")
	}
}
