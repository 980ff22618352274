package session

import (
	"strings"
	"testing"
	"time"
)

func TestALinkOpensASessionThatEnds(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	text, hash := Draw("s1", func(raw []byte) { raw[0] = 7 })
	offered := Session{ID: "s1", Role: Look, Link: hash, Until: noon.Add(LinkLife)}
	if offered.Open() || !offered.Good(noon) || offered.Good(noon.Add(LinkLife)) {
		t.Errorf("a link that nobody has used: %+v", offered)
	}
	id, told, whole := Parse(text)
	if !whole || id != "s1" || !Same(told, offered.Link) {
		t.Errorf("%q is read as %q, %q", text, id, told)
	}
	open := offered.Use("hash", "192.0.2.1", strings.Repeat("ä", 200), noon)
	if !open.Open() || !open.Good(noon.Add(Life-1)) || open.Good(noon.Add(Life)) || open.Link != hash || len(open.Browser) > maxBrowser {
		t.Errorf("an open session: %+v", open)
	}
}

func TestOnlyWholeSecretsAreRead(t *testing.T) {
	text, _ := Draw("s1", func([]byte) {})
	for _, bad := range []string{"", ".", "s1", "s1.", text[2:], text + "A", text[:len(text)-1], "s1." + strings.Repeat("!", 43)} {
		if id, hash, whole := Parse(bad); whole {
			t.Errorf("%q is read as %q, %q", bad, id, hash)
		}
	}
	if Same("", "") || Same("a", "b") || !Same("a", "a") {
		t.Error("an absent hash is no proof, and others are compared")
	}
}
