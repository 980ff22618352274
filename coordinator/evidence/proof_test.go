package evidence

import (
	"testing"

	"berth/coordinator/model"
)

// The boot of a second machine says nothing of the node: no start was lost with it.
func TestABootIsOfTheMachineThatTheNodeIs(t *testing.T) {
	for name, tc := range map[string]struct {
		is   func(*estate)
		want string
	}{
		"it is heard": {func(*estate) {}, "n1-boot"},
		"it has booted anew, and the record has not heard": {func(s *estate) {
			s.change("n1", func(f *model.NodeFacts) { f.Boot = "n1-next" })
		}, "n1-next"},
		"it was not heard":               {func(s *estate) { s.change("n1", func(f *model.NodeFacts) { f.Boot = "" }) }, ""},
		"a boot speaks that had ended":   {func(s *estate) { s.nodes[0].Boot, s.nodes[0].LastBoot = "n1-next", "n1-boot" }, ""},
		"two machines say that they are": {func(s *estate) { s.nodes[0].Twin.Why = "two machines" }, ""},
	} {
		s := running()
		tc.is(s)
		if got := s.survey().Boot("n1"); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
