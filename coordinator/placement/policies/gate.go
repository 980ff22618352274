package policies

import (
	"fmt"
	"math"
	"slices"

	"berth/coordinator/model"
)

// GateKind says how the Gate stage reduces the candidates.
type GateKind string

// The kinds of gate.
const (
	GateOff   GateKind = "off"   // every candidate goes on
	GateBands GateKind = "bands" // FCO's stepped threshold over the system score
)

// Gate is the Gate stage of a policy. Only GateBands has parameters.
type Gate struct {
	Kind    GateKind `json:"kind"`
	Initial float64  `json:"initial,omitempty"` // INITIAL_MSAV
	Final   float64  `json:"final,omitempty"`   // FINAL_MSAV
	Steps   int      `json:"steps,omitempty"`   // MSAV_STEPS, 1 to MaxSteps
}

// MaxSteps bounds the rounds of a gate.
const MaxSteps = model.MaxMSAVSteps

// Validate names the first thing that is wrong with the gate.
func (g Gate) Validate() error {
	switch {
	case g.Kind == GateOff:
		return nil
	case g.Kind != GateBands:
		return fmt.Errorf("there is no gate %q", g.Kind)
	case !Finite(g.Initial) || !Finite(g.Final) || g.Initial < g.Final:
		return fmt.Errorf("gate: initial %v and final %v, want finite numbers, initial not below final", g.Initial, g.Final)
	case g.Steps < 1 || g.Steps > MaxSteps:
		return fmt.Errorf("gate: %d steps, want 1 to %d", g.Steps, MaxSteps)
	}
	return nil
}

// Thresholds are those of FCO's rounds (step 4): the first round has initial, the last one final, and the others are evenly
// between. A single round has final, because a placement fails only there.
func Thresholds(initial, final float64, steps int) []float64 {
	thresholds := make([]float64, steps)
	for k := range thresholds {
		thresholds[k] = initial - float64(k)*(initial-final)/float64(max(steps-1, 1))
	}
	thresholds[steps-1] = final
	return thresholds
}

// Round is the first round, counted from 1, whose threshold the score exceeds; 0 when it exceeds none.
func Round(thresholds []float64, score float64) int {
	return slices.IndexFunc(thresholds, func(threshold float64) bool { return score > threshold }) + 1
}

// Finite tells whether a figure is a number, and so small that every sum of such ones is finite.
func Finite(f float64) bool {
	const most = 1e12
	return math.Abs(f) <= most
}
