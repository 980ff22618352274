package units

import "testing"

func TestFigure(t *testing.T) {
	for want, f := range map[string]float64{
		"0": -0.001, "1": 1, "100": 100, "1.5": 1.5, "0.33": 1.0 / 3, "-2.25": -2.25, "1000000000000000000000": 1e21,
	} {
		if got := Figure(f); got != want {
			t.Errorf("%v prints as %q, want %q", f, got, want)
		}
	}
}
