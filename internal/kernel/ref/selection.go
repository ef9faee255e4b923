package ref

// TopK is the k largest of a list, or the smallest, by picking the best one
// that is left k times; of equal numbers the first comes first.
func TopK(x []float64, k int, smallest bool) (values []float64, places []int) {
	taken := make([]bool, len(x))
	for range k {
		best := -1
		for i, v := range x {
			if !taken[i] && (best < 0 || v > x[best] && !smallest || v < x[best] && smallest) {
				best = i
			}
		}
		taken[best] = true
		values, places = append(values, x[best]), append(places, best)
	}
	return values, places
}
