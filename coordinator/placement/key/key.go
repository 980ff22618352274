// Package key has the arithmetic of placement keys, as FCO's Dynamic Workload Placement defines it: proximity, score, and
// how the keys of a VM are compiled from its hierarchy.
package key

import (
	"math"

	"berth/coordinator/model"
)

// Weighted is one compiled key of the VM to be placed: the value that it wants, and how much (or, if negative, how little)
// it wants it.
type Weighted struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Weight float64 `json:"weight"`

	Class model.KeyClass `json:"class,omitempty"`
	Level string         `json:"level,omitempty"` // of the hierarchy, that it was set at
}

// Value is one key instance of a node. A name may have several instances; each one counts.
type Value struct {
	Name  string
	Value float64
}

// Proximity is how near two values are: 1 when they are equal, falling evenly to 0 at a distance of 1 and beyond
// (FCO, "Step 4: System Key Processing"). It is 0 when either is not a number.
func Proximity(a, b float64) float64 {
	distance := math.Abs(a - b)
	if distance < 1 {
		return 1 - distance
	}
	return 0
}

// Contribution is proximity times weight, without a branch that a scan over many nodes would mispredict; twice and half
// are exact. Everybody who scores uses it, so that a score is the same to the last bit wherever it is computed. Scores are
// float64 all along: thresholds have to be exceeded strictly, and float32 would round 80.000001 to 80.
//
// The conversion keeps compilers from fusing the product with a sum, which would round differently on some processors.
func Contribution(present, wanted, weight float64) float64 {
	t := 1 - math.Abs(present-wanted)
	return float64(weight / 2 * (t + math.Abs(t)))
}

// Score is the sum, over the node's key instances that the VM has a key of the same name for, of proximity times the VM's
// weight. A key on one side only contributes nothing.
func Score(wanted []Weighted, present []Value) float64 {
	score := 0.0
	for i := range present {
		for j := range wanted {
			if wanted[j].Name == present[i].Name {
				score += Contribution(present[i].Value, wanted[j].Value, wanted[j].Weight)
			}
		}
	}
	return score
}
