package balance

import "math"

// moments are running sums of figures, relative to a centre near their mean, so that no precision is lost.
type moments struct{ n, centre, sum, squares float64 }

func (m *moments) add(x float64) {
	x -= m.centre
	m.n, m.sum, m.squares = m.n+1, m.sum+x, m.squares+float64(x*x)
}

// change replaces one figure by another.
func (m *moments) change(was, is float64) {
	was, is = was-m.centre, is-m.centre
	m.sum += is - was
	m.squares += float64(is*is) - float64(was*was)
}

// mean is the mean of all figures.
func (m *moments) mean() float64 { return m.centre + m.sum/max(m.n, 1) }

// variation is the standard deviation divided by the mean; 0 when the mean is 0.
func (m *moments) variation() float64 { return share(m.deviation(), m.mean()) }

// variationShifted is the variation after one figure has become smaller and another one larger.
func (m *moments) variationShifted(from, to, less, more float64) float64 {
	return share(m.shifted(from, to, less, more), m.centre+(m.sum-less+more)/max(m.n, 1))
}

// shifted is the deviation after one figure has become smaller and another one larger.
func (m *moments) shifted(from, to, less, more float64) float64 {
	from, to = from-m.centre, to-m.centre
	mean := (m.sum - less + more) / m.n
	squares := m.squares + float64(less*(less-2*from)) + float64(more*(more+2*to))
	return math.Sqrt(max(0, squares/m.n-float64(mean*mean)))
}

// deviation is the standard deviation of all figures.
func (m *moments) deviation() float64 {
	if m.n == 0 {
		return 0
	}
	mean := m.sum / m.n
	return math.Sqrt(max(0, m.squares/m.n-float64(mean*mean)))
}
