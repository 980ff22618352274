package profile

import "math"

// A histogram has bins that grow by a constant factor. So a percentile, which is told as the middle of its bin, is off by 2.5 % at most,
// whether a guest has 64 MiB or 4 TiB. What is below the unit of a figure is told as nothing, and what is beyond the last bin as that.
const (
	bins   = 320
	growth = 1.05
)

// MaxError is by which part a figure may be off that is between its unit and the last bin.
var MaxError = math.Sqrt(growth) - 1

// units are what is told apart from nothing: a thousandth of a CPU, 4 MiB, and a ten-thousandth of the time. The last bins are beyond
// 5,000 CPUs and 22 TiB.
var units = [figures]float64{CPU: 0.001, Memory: 4 << 20, Delay: 0.0001}

// binOf is the bin of a value. What cannot be one is not valid.
func binOf(f Figure, value *float64) (bin int, valid bool) {
	if value == nil || math.IsNaN(*value) || math.IsInf(*value, 0) || *value < 0 {
		return 0, false
	}
	if *value < units[f] {
		return 0, true
	}
	return min(1+int(math.Log(*value/units[f])/math.Log(growth)), bins-1), true
}

// valueOf is the middle of a bin, by its factor.
func valueOf(f Figure, bin int) float64 {
	if bin == 0 {
		return 0
	}
	return units[f] * math.Pow(growth, float64(bin)-0.5)
}

// rank is the bin of the percentile: the smallest that has, with all below it, at least that part of what was counted.
func rank(counts *[bins]uint16) int {
	total := 0
	for _, count := range counts {
		total += int(count)
	}
	below, wanted := 0, (total*percentile+99)/100
	for bin, count := range counts {
		if below += int(count); below >= wanted && count > 0 {
			return bin
		}
	}
	return 0
}
