package admin

import (
	"slices"
	"testing"
)

// A script that fails is shortened to the steps that it takes, each try has a guest of its own, and none goes beyond the tries that there
// are.
func TestAScriptIsShortenedToWhatFails(t *testing.T) {
	for seed := range uint64(200) {
		long := draw(seed)
		first, last := long.steps[0], long.steps[len(long.steps)-1]
		needs := func(s *script) bool {
			return slices.ContainsFunc(s.steps, func(one step) bool { return one.String() == first.String() }) &&
				slices.ContainsFunc(s.steps, func(one step) bool { return one.String() == last.String() })
		}
		wanted := 2
		if long.steps[0].twin || first.String() == last.String() {
			continue // the step changes, or one of both is enough
		}
		names := map[string]bool{long.name(): true}
		tries := 0
		fails := func(s *script) bool {
			if names[s.name()] {
				t.Errorf("seed %d: two tries have a guest %s", seed, s.name())
			}
			names[s.name()], tries = true, tries+1
			if steps := s.steps; len(steps) > 0 && steps[len(steps)-1].twin {
				t.Errorf("seed %d: the last step of %s waits for another one", seed, s)
			}
			return needs(s)
		}
		if short := shorten(long, 200, fails); len(short.steps) != wanted || !needs(&short) {
			t.Errorf("seed %d: %s is shortened to %s", seed, &long, &short)
		}
		tries = 0
		names = map[string]bool{long.name(): true}
		if short := shorten(long, 3, fails); tries > 3 || !needs(&short) {
			t.Errorf("seed %d: after %d tries it is %s", seed, tries, &short)
		}
		if again := draw(seed); again.String() != long.String() {
			t.Errorf("seed %d: shortening has changed it to %s", seed, &long)
		}
	}
}

// A seed that fails by its whole script alone stays whole, and one that always fails keeps nothing.
func TestTheEndsOfShortening(t *testing.T) {
	long := draw(1)
	if short := shorten(long, 100, func(*script) bool { return false }); short.String() != long.String() {
		t.Errorf("it is %s", &short)
	}
	if short := shorten(long, 100, func(*script) bool { return true }); len(short.steps) != 0 {
		t.Errorf("it is %s", &short)
	}
}
