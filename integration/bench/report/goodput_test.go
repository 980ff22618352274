package report

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// What is below the floor once may be chance, and each time is none.
func TestAGoodputBelowTheFloorIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		figures  Figures
		measured int
		fails    bool
	}{
		"as before":           {Figures{100}, 1, false},
		"at the floor":        {Figures{25}, 1, false},
		"low once":            {Figures{1, 24, 60}, 3, false},
		"low each time":       {Figures{1, 24, 2}, 3, true},
		"nothing":             {Figures{0, 0, 0}, 3, true},
		"not even a figure":   {Figures{math.NaN(), math.NaN(), math.NaN()}, 3, true},
		"a quarter less some": {Figures{24.9, 24.9, 24.9}, 3, true},
	} {
		measured := 0
		beside, err := Left(100, func() float64 {
			measured++
			return c.figures[measured-1]
		})
		if (err != nil) != c.fails || measured != c.measured {
			t.Errorf("%s: %v after %d measurements", name, err, measured)
		}
		if first := c.figures[0]; beside != first && !math.IsNaN(first) {
			t.Errorf("%s: goals are told %v", name, beside)
		}
		if c.fails && !strings.Contains(err.Error(), "25 %") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, alone := range []float64{0, math.NaN()} {
		if _, err := Left(alone, func() float64 { return 100 }); !errors.Is(err, ErrNothing) {
			t.Errorf("%v without trouble: %v", alone, err)
		}
	}
}
