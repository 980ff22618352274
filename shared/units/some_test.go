package units

import "testing"

func TestSome(t *testing.T) {
	for _, c := range []struct {
		most            int
		separator, want string
	}{
		{4, ", ", "a, b, c"}, {3, "; ", "a; b; c"}, {2, ", ", "a, b, and 1 more"}, {1, "; ", "a; and 2 more"},
	} {
		if got := Some([]string{"a", "b", "c"}, c.most, c.separator); got != c.want {
			t.Errorf("at most %d: %q, want %q", c.most, got, c.want)
		}
	}
	if got := Some(nil, 2, ", "); got != "" {
		t.Errorf("of none: %q", got)
	}
}
