package authorities

import "testing"

// The files of a member tell what was decided last, so a list that knows less of the one that signs there is an older one.
func TestAListIsOlderThanTheFilesOfWhoSignsAlready(t *testing.T) {
	list := func(states ...State) *List {
		var l List
		for i, is := range states {
			l.All = append(l.All, Authority{ID: string(rune('a' + i)), State: is})
		}
		return &l
	}
	for name, c := range map[string]struct {
		list    *List
		issuing string
		trusted []string
		older   bool
	}{
		"it has none":                         {list(), "b", []string{"b"}, false},
		"it does not know the one that signs": {list(Issuing), "b", []string{"b", "a"}, true},
		"it has it announced":                 {list(Issuing, Announced), "b", []string{"b", "a"}, true},
		"nobody signs":                        {list(Retired, Retired), "b", []string{"b"}, true},
		"it trusts one that files do not":     {list(Outgoing, Issuing), "b", []string{"b"}, true},
		"it is the same":                      {list(Outgoing, Issuing), "b", []string{"b", "a"}, false},
		"it is newer":                         {list(Outgoing, Issuing), "a", []string{"a", "b"}, false},
		"it has retired the one before":       {list(Retired, Issuing), "b", []string{"b", "a"}, false},
	} {
		if older := c.list.OlderThan(c.issuing, c.trusted); older != c.older {
			t.Errorf("%s: older %t, want %t", name, older, c.older)
		}
	}
}
