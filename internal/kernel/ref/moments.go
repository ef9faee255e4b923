package ref

// Moments returns mean and variance of each channel of x [batch, channels,
// area], over batch and area.
func Moments(batch, channels, area int, x []float64) (mean, variance []float64) {
	for c := range channels {
		var all []float64
		for n := range batch {
			all = append(all, x[(n*channels+c)*area:][:area]...)
		}
		m, v := 0.0, 0.0
		for _, y := range all {
			m += y / float64(len(all))
		}
		for _, y := range all {
			v += (y - m) * (y - m) / float64(len(all))
		}
		mean, variance = append(mean, m), append(variance, v)
	}
	return mean, variance
}
