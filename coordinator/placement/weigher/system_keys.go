package weigher

import (
	"math"

	"berth/coordinator/model"
	"berth/coordinator/placement/key"
	"berth/coordinator/placement/rule"
	"berth/coordinator/view"
)

// systemKeys is the score of FCO's system rounds: proximity times weight, summed over the VM's system keys that the node
// has, its special keys among them.
var systemKeys = Weigher{
	Name: "system-keys",
	Doc:  "How near the node's keys, #RAM, #CPU and #LOAD among them, are to the values that the VM's system keys want.",
	Keys: true,
	Weigh: func(in *rule.Input, node int, terms *[]rule.Term) float64 {
		score := 0.0
		for k, column := range in.System {
			if !column.Given() {
				continue
			}
			wanted := &in.SystemKeys[k]
			contribution := key.Contribution(column.At(node), wanted.Value, wanted.Weight)
			score += contribution
			if terms != nil {
				*terms = append(*terms, termOf(wanted, column.At(node), 0, contribution))
			}
		}
		return score
	},
	// Four columns are added in one pass: the scores go through memory once for them, and the keys keep their order.
	Sweep: func(in *rule.Input, scores []float64) {
		first := sweepShares(in, scores)
		var columns [4]view.Column[float64]
		var values, halves [4]float64
		found, near := 0, true
		for k := first; k < len(in.System); k++ {
			if !in.System[k].Given() {
				continue
			}
			columns[found], values[found], halves[found] = in.System[k], in.SystemKeys[k].Value, in.SystemKeys[k].Weight/2
			near = near && in.Near[k]
			if found++; found < len(columns) {
				continue
			}
			for first := 0; first < len(scores); {
				pieces := [4][]float64{columns[0].From(first), columns[1].From(first), columns[2].From(first), columns[3].From(first)}
				piece := scores[first:][:len(pieces[0])]
				if near {
					addFourNear(piece, &pieces, &values, &halves)
				} else {
					addFour(piece, &pieces, &values, &halves)
				}
				first += len(piece)
			}
			found, near = 0, true
		}
		for k := range found {
			addOne(scores, columns[k], values[k], halves[k])
		}
	},
}

// sweepShares adds the special keys that every cluster begins with where they come first, as they do by name, and all want
// 0. Their columns have values from 0 to 1, so that proximity is 1 less the value and nothing has to be cut off; that makes
// them three times as fast. The few nodes that were not measured are put right after. It returns how many keys it added.
func sweepShares(in *rule.Input, scores []float64) int {
	const specials = 3
	if len(in.SystemKeys) < specials {
		return 0
	}
	for k := range specials {
		if !model.IsSpecialKey(in.SystemKeys[k].Name) || !in.System[k].Given() || in.SystemKeys[k].Value != 0 {
			return 0
		}
	}
	ha, hb, hc := in.SystemKeys[0].Weight/2, in.SystemKeys[1].Weight/2, in.SystemKeys[2].Weight/2
	for first := 0; first < len(scores); {
		a := in.System[0].From(first)
		b, c, piece := in.System[1].From(first)[:len(a)], in.System[2].From(first)[:len(a)], scores[first:][:len(a)]
		for i := range a {
			ta, tb, tc := 1-a[i], 1-b[i], 1-c[i]
			s := piece[i]
			s += float64(ha * (ta + ta))
			s += float64(hb * (tb + tb))
			s += float64(hc * (tc + tc))
			piece[i] = s
		}
		first += len(a)
	}
	for _, node := range in.Columns.Unmeasured {
		scores[node] = 0
		for k := range specials {
			scores[node] += key.Contribution(in.System[k].At(int(node)), 0, in.SystemKeys[k].Weight)
		}
	}
	return specials
}

// addFour is key.Contribution four times, which the compiler would not inline here.
func addFour(scores []float64, columns *[4][]float64, values, halves *[4]float64) {
	n := len(scores)
	a, b, c, d := columns[0][:n], columns[1][:n], columns[2][:n], columns[3][:n]
	va, vb, vc, vd := values[0], values[1], values[2], values[3]
	ha, hb, hc, hd := halves[0], halves[1], halves[2], halves[3]
	for i := range scores {
		ta, tb := 1-math.Abs(a[i]-va), 1-math.Abs(b[i]-vb)
		tc, td := 1-math.Abs(c[i]-vc), 1-math.Abs(d[i]-vd)
		s := scores[i]
		s += float64(ha * (ta + math.Abs(ta)))
		s += float64(hb * (tb + math.Abs(tb)))
		s += float64(hc * (tc + math.Abs(tc)))
		s += float64(hd * (td + math.Abs(td)))
		scores[i] = s
	}
}

// addFourNear is addFour where no value is further than 1 from the wanted one: proximity cannot be below 0.
func addFourNear(scores []float64, columns *[4][]float64, values, halves *[4]float64) {
	n := len(scores)
	a, b, c, d := columns[0][:n], columns[1][:n], columns[2][:n], columns[3][:n]
	va, vb, vc, vd := values[0], values[1], values[2], values[3]
	ha, hb, hc, hd := halves[0], halves[1], halves[2], halves[3]
	for i := range scores {
		ta, tb := 1-math.Abs(a[i]-va), 1-math.Abs(b[i]-vb)
		tc, td := 1-math.Abs(c[i]-vc), 1-math.Abs(d[i]-vd)
		s := scores[i]
		s += float64(ha * (ta + ta))
		s += float64(hb * (tb + tb))
		s += float64(hc * (tc + tc))
		s += float64(hd * (td + td))
		scores[i] = s
	}
}

func addOne(scores []float64, column view.Column[float64], value, half float64) {
	for first := 0; first < len(scores); {
		values := column.From(first)
		piece := scores[first:][:len(values)]
		for i := range values {
			t := 1 - math.Abs(values[i]-value)
			piece[i] += float64(half * (t + math.Abs(t)))
		}
		first += len(values)
	}
}

// termOf explains one pair of keys.
func termOf(wanted *key.Weighted, present float64, count int, contribution float64) rule.Term {
	term := rule.Term{
		Key: wanted, Raw: present, Proximity: key.Proximity(present, wanted.Value), Count: count, Contribution: contribution,
	}
	if present == view.Unknown {
		term.Raw, term.Unknown = 0, true
	}
	return term
}
