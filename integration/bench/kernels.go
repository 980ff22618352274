package main

import (
	"math"
	"math/rand/v2"
	"strconv"
)

// The kernels are the bare work of a decision over plain data, without an engine around it: what the engine is compared to.
// All do the same arithmetic, score += weight * max(0, 1-|value-wanted|) over eight keys a node.

// keysANode is how many system keys a node has in the goals.
const keysANode = 8

type float interface{ float32 | float64 }

// plain is n nodes as plain columns.
type plain[F float] struct {
	promised, free []int64 // of each memory ledger
	keys           [keysANode][]F
	lots           []uint64 // from which ties are drawn
	scores         []F
}

// wish is what a VM wants of each key.
type wish[F float] struct{ values, weights [keysANode]F }

func newPlain[F float](n int) *plain[F] {
	random := rand.New(rand.NewPCG(2, uint64(n)))
	p := &plain[F]{
		promised: make([]int64, n), free: make([]int64, n), lots: make([]uint64, n), scores: make([]F, n),
	}
	for k := range p.keys {
		p.keys[k] = make([]F, n)
		for i := range n {
			p.keys[k][i] = F(random.Float64() * 1.5)
		}
	}
	for i := range n {
		p.promised[i], p.free[i], p.lots[i] = random.Int64N(512<<30), random.Int64N(512<<30), random.Uint64()
	}
	return p
}

func newWish[F float]() wish[F] {
	var w wish[F]
	for k := range w.values {
		w.values[k], w.weights[k] = F(k%2), F(10+5*k)
	}
	return w
}

// bytesANode is what a decision over these columns reads of each node.
func (p *plain[F]) bytesANode() int {
	size := 4
	if any(F(0)) == any(float64(0)) {
		size = 8
	}
	return keysANode*size + 2*8
}

// read adds up everything that a decision reads, and does nothing else: what memory and a scalar loop allow.
func (p *plain[F]) read() (sum F, words int64) {
	for k := range p.keys {
		var a, b, c, d F
		column := p.keys[k]
		i := 0
		for ; i+4 <= len(column); i += 4 {
			quad := column[i : i+4 : i+4]
			a, b, c, d = a+quad[0], b+quad[1], c+quad[2], d+quad[3]
		}
		for ; i < len(column); i++ {
			a += column[i]
		}
		sum += a + b + c + d
	}
	free := p.free[:len(p.promised)]
	for i, promised := range p.promised {
		words += promised ^ free[i]
	}
	return sum, words
}

// score64 fills the scores in, two columns at a time and without branches. score32 is the same over half the bytes; a generic one
// would go through a dictionary in its inner loop.
func score64(p *plain[float64], w *wish[float64]) {
	clear(p.scores)
	for k := 0; k < keysANode; k += 2 {
		n := len(p.scores)
		first, second, scores := p.keys[k][:n], p.keys[k+1][:n], p.scores[:n]
		value, half, value2, half2 := w.values[k], w.weights[k]/2, w.values[k+1], w.weights[k+1]/2
		for i := range scores {
			t, t2 := 1-math.Abs(first[i]-value), 1-math.Abs(second[i]-value2)
			scores[i] += half*(t+math.Abs(t)) + half2*(t2+math.Abs(t2))
		}
	}
}

func score32(p *plain[float32], w *wish[float32]) {
	clear(p.scores)
	for k := 0; k < keysANode; k += 2 {
		n := len(p.scores)
		first, second, scores := p.keys[k][:n], p.keys[k+1][:n], p.scores[:n]
		value, half, value2, half2 := w.values[k], w.weights[k]/2, w.values[k+1], w.weights[k+1]/2
		for i := range scores {
			t, t2 := 1-abs32(first[i]-value), 1-abs32(second[i]-value2)
			scores[i] += half*(t+abs32(t)) + half2*(t2+abs32(t2))
		}
	}
}

func abs32(f float32) float32 { return math.Float32frombits(math.Float32bits(f) &^ (1 << 31)) }

// decide is the twin of a decision: two memory filters, the scores of eight keys, the best round of ten thresholds, and a
// random tie in it. -1: no node.
func decide(p *plain[float64], w *wish[float64], memory int64, seed uint64) int {
	score64(p, w)
	free, scores, lots := p.free[:len(p.promised)], p.scores[:len(p.promised)], p.lots[:len(p.promised)]
	best := math.Inf(-1)
	for i, promised := range p.promised {
		if promised > memory && free[i] > memory {
			best = max(best, scores[i])
		}
	}
	threshold := 80.0
	for threshold > -10 && best <= threshold {
		threshold -= 10
	}
	winner, highest := -1, uint64(0)
	for i, promised := range p.promised {
		if promised > memory && free[i] > memory && scores[i] > threshold {
			if lot := (lots[i] ^ seed) * 0x94d049bb133111eb; winner < 0 || lot > highest {
				winner, highest = i, lot
			}
		}
	}
	return winner
}

// structured is a node as a struct, as most schedulers have it.
type structured struct {
	promised, free int64
	name           string
	keys           [keysANode]struct{ value, weight float64 }
}

func (p *plain[F]) structs() []structured {
	nodes := make([]structured, len(p.promised))
	for i := range nodes {
		nodes[i].promised, nodes[i].free, nodes[i].name = p.promised[i], p.free[i], hostName(i)
		for k := range p.keys {
			nodes[i].keys[k].value = float64(p.keys[k][i])
		}
	}
	return nodes
}

// scoreStructs is the same score, written the way one would over structs.
func scoreStructs(nodes []structured, w *wish[float64], scores []float64) {
	for i := range nodes {
		score := 0.0
		for k := range nodes[i].keys {
			distance := nodes[i].keys[k].value - w.values[k]
			if distance < 0 {
				distance = -distance
			}
			if distance < 1 {
				score += w.weights[k] * (1 - distance)
			}
		}
		scores[i] = score
	}
}

func keyName(k int) string { return "key" + strconv.Itoa(k) }

func (p *plain[F]) maps() []map[string]float64 {
	nodes := make([]map[string]float64, len(p.promised))
	for i := range nodes {
		nodes[i] = make(map[string]float64, keysANode)
		for k := range p.keys {
			nodes[i][keyName(k)] = float64(p.keys[k][i])
		}
	}
	return nodes
}

// scoreMaps is the same score over one map a node.
func scoreMaps(nodes []map[string]float64, w *wish[float64], scores []float64) {
	var names [keysANode]string
	for k := range names {
		names[k] = keyName(k)
	}
	for i, node := range nodes {
		score := 0.0
		for k, name := range names {
			if value, there := node[name]; there {
				score += w.weights[k] * max(0, 1-math.Abs(value-w.values[k]))
			}
		}
		scores[i] = score
	}
}
