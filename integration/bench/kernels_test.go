package main

import (
	"math"
	"testing"
)

// A kernel that computes something else is no twin.
func TestKernelsScoreAlike(t *testing.T) {
	const n = 257
	half, whole := newPlain[float32](n), newPlain[float64](n)
	halfWish, wholeWish := newWish[float32](), newWish[float64]()
	score32(half, &halfWish)
	score64(whole, &wholeWish)
	structs, maps := make([]float64, n), make([]float64, n)
	scoreStructs(whole.structs(), &wholeWish, structs)
	scoreMaps(whole.maps(), &wholeWish, maps)
	for i, want := range whole.scores {
		if math.Abs(float64(half.scores[i])-want) > 1e-3 || math.Abs(structs[i]-want) > 1e-9 || math.Abs(maps[i]-want) > 1e-9 {
			t.Fatalf("node %d: columns %v, float32 %v, structs %v, maps %v", i, want, half.scores[i], structs[i], maps[i])
		}
	}
}

func TestTheTwinDecidesByRoomRoundAndLot(t *testing.T) {
	const memory = 64 << 30
	p, w := newPlain[float64](1000), newWish[float64]()
	winners := make(map[int]bool)
	for seed := range uint64(20) {
		winners[decide(p, &w, memory, seed)] = true
	}
	if len(winners) < 2 {
		t.Errorf("twenty seeds chose %v", winners)
	}
	for winner := range winners {
		if p.promised[winner] <= memory || p.free[winner] <= memory {
			t.Errorf("node %d has no room", winner)
		}
		for i, score := range p.scores {
			if score > 80 && p.scores[winner] <= 80 && p.promised[i] > memory && p.free[i] > memory {
				t.Fatalf("%d scores %v, the winner %d only %v", i, score, winner, p.scores[winner])
			}
		}
	}
	if got := decide(p, &w, math.MaxInt64, 1); got != -1 {
		t.Errorf("a VM that fits nowhere goes to %d", got)
	}
}
