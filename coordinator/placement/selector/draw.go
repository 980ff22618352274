package selector

// Draw gives a node its lot: highest wins between equals. It depends on nothing but the seed and the node's ID (rendezvous
// hashing: the ID's FNV-1a, finished as in SplitMix64), so neither the order of nodes nor a node that loses changes who
// wins.
func Draw(seed, lot uint64) uint64 {
	hash := lot ^ seed
	hash = (hash ^ hash>>30) * 0xbf58476d1ce4e5b9
	hash = (hash ^ hash>>27) * 0x94d049bb133111eb
	return hash ^ hash>>31
}
