package evidence

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"berth/coordinator/model"
)

// A pool that is declared as shared may be another one on some nodes: a mount is missing there. A trial shows it of two nodes. Nodes that
// were seen to have the same are one side, and two sides are apart if a node of one did not see what a node of the other had made. The
// ring has two ways from one node to any other, so one such trial proves nothing where the other way is open: shown to be the same, or not
// tried yet. What was tried with a node that has died since stays: its VMs are started again by the side that it was on.
//
// Two nodes with a wrong mount cut the ring into pieces that are one side all the same. So pieces that are no neighbours are tried as well.
// Where there are many pieces it is a pool that each node has for itself, and the ring alone has to do.

// mostPieces of a ring are tried against each other.
const mostPieces = 8

// Apart are the pools that are proven to have sides, and which.
func (all LockTrials) Apart(m Moment) model.PoolsApart {
	var apart model.PoolsApart
	for id, tried := range all {
		differs := func(one lockTried) bool { return one.verdict == NotShared }
		pool, known := m.Resource(id)
		if !known || !slices.ContainsFunc(slices.Collect(maps.Values(tried)), differs) {
			continue
		}
		if one := m.poolApart(&pool, tried); len(one.Borders) > 0 {
			if apart == nil {
				apart = model.PoolsApart{}
			}
			apart[id] = one
		}
	}
	return apart
}

// trials are those of a shared pool: the ring, and its pieces.
func (m Moment) trials(pool *model.Resource, tried map[lockPair]lockTried) []LockTrial {
	ring := m.lockRing(pool)
	return append(ring, acrossPieces(tried, ring)...)
}

// linked are nodes that are taken for one side, each with the node that it leads to.
type linked map[string]string

func (l linked) root(node string) string {
	for l[node] != "" {
		node = l[node]
	}
	return node
}

func (l linked) join(one, other string) {
	if a, b := l.root(one), l.root(other); a != b {
		l[max(a, b)] = min(a, b) // so that a side is named alike, in whatever order its nodes come
	}
}

// same joins what was seen to be the same.
func same(tried map[lockPair]lockTried) linked {
	found := linked{}
	for pair, one := range tried {
		if one.verdict == LocksReach || one.verdict == LocksStay {
			found.join(pair.holder, pair.witness)
		}
	}
	return found
}

// link joins what nothing shows to be apart: what was tried with another result, and what is still to be tried.
func link(tried map[lockPair]lockTried, trials []LockTrial) linked {
	found := linked{}
	for pair, one := range tried {
		if one.verdict != NotShared {
			found.join(pair.holder, pair.witness)
		}
	}
	for _, trial := range trials {
		if _, made := tried[trial.pair()]; !made {
			found.join(trial.Holder, trial.Witness)
		}
	}
	return found
}

// acrossPieces are the trials of pieces of a ring that are no neighbours in it.
func acrossPieces(tried map[lockPair]lockTried, ring []LockTrial) []LockTrial {
	inRing, neighbours := map[string]bool{}, map[lockPair]bool{}
	for _, trial := range ring {
		inRing[trial.Witness], neighbours[trial.pair()] = true, true
	}
	alone := maps.Clone(tried)
	maps.DeleteFunc(alone, func(pair lockPair, _ lockTried) bool {
		return inRing[pair.holder] && inRing[pair.witness] && !neighbours[pair]
	})
	by := link(alone, ring)
	sizes, cut := map[string]int{}, map[[2]string]bool{}
	for node := range inRing {
		sizes[by.root(node)]++
	}
	for pair, one := range alone {
		if a, b := by.root(pair.holder), by.root(pair.witness); one.verdict == NotShared {
			cut[[2]string{a, b}], cut[[2]string{b, a}] = true, true
		}
	}
	const fewest = 4 // of fewer, each is the neighbour of each
	if len(sizes) < fewest || len(sizes) > mostPieces {
		return nil
	}
	pieces := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int { return cmp.Or(cmp.Compare(sizes[b], sizes[a]), cmp.Compare(a, b)) })
	var across []LockTrial
	for k, witness := range pieces {
		for _, holder := range pieces[:k] {
			// What stands for a piece may have died since: then it is tried with the neighbour of somebody else.
			if !cut[[2]string{holder, witness}] && inRing[holder] && inRing[witness] {
				across = append(across, LockTrial{Pool: ring[0].Pool, Source: ring[0].Source, Holder: holder, Witness: witness})
			}
		}
	}
	return across
}

// poolApart is a pool with its sides, and the trials that set them apart.
func (m Moment) poolApart(pool *model.Resource, tried map[lockPair]lockTried) *model.PoolApart {
	ring := m.lockRing(pool)
	open, sides := link(tried, append(ring, acrossPieces(tried, ring)...)), same(tried)
	one := &model.PoolApart{
		Name: pool.Name, Source: model.PoolSettingsOf(pool).Source, Sides: map[string]string{},
		Borders: map[[2]string]model.PoolBorder{}, Names: map[string]string{}, Left: map[string]time.Time{},
	}
	borders := map[string]int{}
	differs := func(pair lockPair, last lockTried) bool {
		return last.verdict == NotShared && open.root(pair.holder) != open.root(pair.witness)
	}
	for pair, last := range tried {
		if differs(pair, last) {
			borders[sides.root(pair.holder)]++
			borders[sides.root(pair.witness)]++
		}
	}
	for pair, last := range tried {
		const proof = 2 // trials of one of both sides
		a, b := sides.root(pair.holder), sides.root(pair.witness)
		if !differs(pair, last) || max(borders[a], borders[b]) < proof {
			continue
		}
		border := model.PoolBorder{Maker: m.NodeName(pair.holder), Witness: m.NodeName(pair.witness), At: last.at}
		for _, of := range [][2]string{{a, b}, {b, a}, {a, a}, {b, b}} {
			if before, there := one.Borders[of]; !there || later(border, before) {
				one.Borders[of] = border
			}
		}
	}
	for pair := range tried {
		for _, node := range []string{pair.holder, pair.witness} {
			side := sides.root(node)
			if _, apart := one.Borders[[2]string{side, side}]; apart {
				one.Sides[node], one.Names[node] = side, m.NodeName(node)
			}
		}
	}
	for pair, last := range tried {
		for i, node := range []string{pair.holder, pair.witness} {
			if last.left[i].After(one.Left[node]) {
				one.Left[node] = last.left[i]
			}
		}
	}
	one.Each = m.isEachForItself(ring, tried, open)
	for _, node := range slices.Sorted(maps.Keys(one.Sides)) {
		for _, shown := range m.Facts(node).Pools {
			if shown.Name == one.Source {
				one.Folder = cmp.Or(one.Folder, shown.Path)
			}
		}
	}
	for _, last := range tried { // of a node that has not reported to this leader yet
		one.Folder = cmp.Or(one.Folder, last.looked[0].Path, last.looked[1].Path)
	}
	return one
}

// isEachForItself tells whether a ring was tried as a whole and is in so many pieces that these are not tried against each other.
func (m Moment) isEachForItself(ring []LockTrial, tried map[lockPair]lockTried, open linked) bool {
	pieces := map[string]bool{}
	for _, trial := range ring {
		if last, made := tried[trial.pair()]; !made || last.verdict == LocksUnknown {
			return false
		}
		pieces[open.root(trial.Witness)] = true
	}
	return len(pieces) > mostPieces
}

// later tells which of two trials people are told of: the newer one, and of two at a time the first by names.
func later(one, other model.PoolBorder) bool {
	if !one.At.Equal(other.At) {
		return one.At.After(other.At)
	}
	return cmp.Or(cmp.Compare(one.Witness, other.Witness), cmp.Compare(one.Maker, other.Maker)) < 0
}

// SideNames are the nodes of each side of a pool, by name, the larger sides first; none: the pool has no sides.
func SideNames(apart *model.PoolApart) [][]string {
	if apart == nil {
		return nil
	}
	bySide := map[string][]string{}
	for node, side := range apart.Sides {
		bySide[side] = append(bySide[side], apart.Names[node])
	}
	names := make([][]string, 0, len(bySide))
	for _, side := range bySide {
		slices.Sort(side)
		names = append(names, side)
	}
	slices.SortFunc(names, func(a, b []string) int { return cmp.Or(cmp.Compare(len(b), len(a)), slices.Compare(a, b)) })
	return names
}
