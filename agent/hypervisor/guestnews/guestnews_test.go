package guestnews

import "testing"

func TestVersionsGrowWithNews(t *testing.T) {
	var n News
	known := map[string]uint64{}
	look := func() (changed string) {
		for _, uuid := range []string{"a", "b"} {
			if version := n.Version(uuid); version > known[uuid] {
				known[uuid], changed = version, changed+uuid
			}
		}
		return changed
	}
	for _, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"nothing", func() {}, ""},
		{"one is heard of", func() { n.Heard("a") }, "a"},
		{"a new connection", n.Reconnected, "ab"},
		{"the other ended", func() { n.Keep(map[string]bool{"a": true}) }, ""},
		{"both are heard of", func() { n.Heard("a"); n.Heard("b") }, "ab"},
	} {
		step.do()
		if got := look(); got != step.want {
			t.Errorf("%s: %q changed, want %q", step.what, got, step.want)
		}
	}
}
