package report

import "fmt"

// Floor is the part of a goodput that has to be left beside trouble. Both are measured in one run on one machine, so how fast that is does
// not matter. The goals want at least twice as much; a test that failed at a goal would fail by chance.
const Floor = 0.25

// tries is how often a goodput is measured that is below the floor. What somebody else does on the machine passes, and a defect stays.
const tries = 3

// Left measures the goodput beside trouble, and again while it is below the floor. It returns the first figure, of which goals tell.
// The error says that none has reached the floor.
func Left(alone float64, measure func() float64) (float64, error) {
	if !(alone > 0) {
		return 0, fmt.Errorf("a goodput without trouble of %s: %w", PerSecond(alone), ErrNothing)
	}
	var all Figures
	for len(all) < tries {
		beside := measure()
		all = append(all, beside)
		if beside >= Floor*alone {
			return all[0], nil
		}
	}
	return all[0], fmt.Errorf("of %s without trouble only %s is left, and at least %.0f %% has to be: see what holds the starts up",
		PerSecond(alone), all.Spread(PerSecond), 100*Floor)
}
