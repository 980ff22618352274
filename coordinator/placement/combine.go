package placement

import (
	"slices"

	"berth/coordinator/placement/policies"
	"berth/coordinator/placement/selector"
	"berth/coordinator/placement/weigher"
)

// combination is the result of several weighers. Its memory is used again for the next decision.
type combination struct {
	weighed bool        // raw has this decision's scores
	raw     [][]float64 // by weigher and node
	shares  [][]float64 // what the selector made of the scores of the competing nodes
	given   []Shares    // shares that a record kept for nodes that it left out

	scores, share, maximum []float64 // of the nodes that compete
	one                    selector.Given
}

// combine computes the scores of nodes that compete only with each other: the nodes of one tier and round.
func (e *Engine) combine(nodes []int32) {
	c := &e.several
	e.weigh()
	for _, node := range nodes {
		e.customer[node] = 0
	}
	for s := range e.scorers {
		kept := c.keptOf(e.scorers[s].Name)
		if kept == nil {
			e.share(s, nodes)
		}
		for _, node := range nodes {
			if kept != nil {
				c.shares[s][node] = kept[node]
			}
			e.customer[node] += e.selector.Contribution(c.shares[s][node], e.weights[s])
		}
	}
}

// weigh asks each weigher once for each decision.
func (e *Engine) weigh() {
	c, n := &e.several, len(e.out)
	if c.weighed {
		return
	}
	c.weighed = true
	for len(c.raw) < len(e.scorers) {
		c.raw, c.shares = append(c.raw, nil), append(c.shares, nil)
	}
	for s := range e.scorers {
		c.raw[s], c.shares[s] = sized(c.raw[s], n), sized(c.shares[s], n)
		e.scorers[s].Scores(&e.input, c.raw[s])
	}
}

// share turns the scores of one weigher into shares.
func (e *Engine) share(s int, nodes []int32) {
	c, n := &e.several, len(nodes)
	c.scores, c.share = sized(c.scores, n), sized(c.share, n)
	for i, node := range nodes {
		c.scores[i] = c.raw[s][node]
	}
	c.one.Scores, c.one.Weight, c.one.Maximum = c.scores, e.scorers[s].Weight, nil
	if e.selector.Bounded {
		c.maximum = sized(c.maximum, n)
		for i, node := range nodes {
			c.maximum[i] = e.scorers[s].Maximum(&e.input, int(node))
		}
		c.one.Maximum = c.maximum
	}
	e.selector.Share(&c.one, c.share)
	for i, node := range nodes {
		c.shares[s][node] = c.share[i]
	}
}

// sized is the slice with n entries, whatever it had before.
func sized(slice []float64, n int) []float64 {
	if cap(slice) < n {
		return make([]float64, n)
	}
	return slice[:n]
}

// Shares is what the selector made of one weigher, by node. A decision that leaves nodes out keeps them, because the nodes
// that are left out count in the shares of the others.
type Shares struct {
	Weigher string    `json:"weigher"`
	Shares  []float64 `json:"shares"`
}

func (c *combination) keptOf(name string) []float64 {
	at := slices.IndexFunc(c.given, func(s Shares) bool { return s.Weigher == name })
	if at < 0 {
		return nil
	}
	return c.given[at].Shares
}

// entered is the candidates that the gate let in at a round. Round 0: those let in at none, or all with no gate.
func (e *Engine) entered(at int) []int32 {
	thresholds := e.rounds()
	if thresholds == nil {
		return e.candidates
	}
	var nodes []int32
	for _, node := range e.candidates {
		if policies.Round(thresholds, e.system[node]) == at {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// shown is a weigher's score as tables show it: the weight, if it is one.
func shown(scorer *weigher.Weigher, score float64) float64 {
	if scorer.Weight {
		return 0 - score
	}
	return score
}
