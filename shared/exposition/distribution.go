package exposition

import "slices"

// Distribution counts observed values by upper bounds. It is not for several goroutines.
type Distribution struct {
	bounds []float64
	counts []uint64 // by bound: values up to it that are above the one before
	count  uint64
	sum    float64
}

// NewDistribution makes an empty one. The bounds ascend; a value beyond the last one counts in the total alone.
func NewDistribution(bounds ...float64) *Distribution {
	return &Distribution{bounds: bounds, counts: make([]uint64, len(bounds))}
}

// Observe adds a value.
func (d *Distribution) Observe(value float64) {
	if at, _ := slices.BinarySearch(d.bounds, value); at < len(d.bounds) {
		d.counts[at]++
	}
	d.count++
	d.sum += value
}
