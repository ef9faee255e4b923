package ref

import (
	"math"
	"slices"
)

// Unique compares every row of x [outer, rows, inner] with every other: where
// each different row is first, which one each row is, and how often each is
// there.
func Unique(x []float64, outer, rows, inner int, sorted bool) (first, which, counts []int64) {
	row := func(i int64) (out []float64) {
		for o := range outer {
			out = append(out, x[(o*rows+int(i))*inner:][:inner]...)
		}
		return out
	}
	for i := range int64(rows) {
		if !slices.ContainsFunc(first, func(f int64) bool { return slices.Equal(row(f), row(i)) }) {
			first = append(first, i)
		}
	}
	if sorted {
		slices.SortFunc(first, func(a, b int64) int { return slices.Compare(row(a), row(b)) })
	}
	counts = make([]int64, len(first))
	for i := range int64(rows) {
		k := slices.IndexFunc(first, func(f int64) bool { return slices.Equal(row(f), row(i)) })
		which = append(which, int64(k))
		counts[k]++
	}
	return first, which, counts
}

// NonMaxSuppression takes the best box that is left, and drops those that it
// overlaps too much, until most are taken.
func NonMaxSuppression(boxes, scores []float64, most int, overlap, least float64, centered bool) []int {
	corners := func(i int) (a [4]float64) {
		copy(a[:], boxes[4*i:4*i+4])
		if centered {
			a = [4]float64{a[0] - a[2]/2, a[1] - a[3]/2, a[0] + a[2]/2, a[1] + a[3]/2}
		}
		return [4]float64{math.Min(a[0], a[2]), math.Min(a[1], a[3]), math.Max(a[0], a[2]), math.Max(a[1], a[3])}
	}
	area := func(a [4]float64) float64 { return math.Max(0, a[2]-a[0]) * math.Max(0, a[3]-a[1]) }
	shared := func(i, j int) float64 {
		a, b := corners(i), corners(j)
		both := area([4]float64{math.Max(a[0], b[0]), math.Max(a[1], b[1]), math.Min(a[2], b[2]), math.Min(a[3], b[3])})
		if both == 0 {
			return -1
		}
		return both / (area(a) + area(b) - both)
	}
	left := map[int]bool{}
	for i, v := range scores {
		if v > least {
			left[i] = true
		}
	}
	var taken []int
	for len(left) > 0 && len(taken) < most {
		best := -1
		for i := range scores {
			if left[i] && (best < 0 || scores[i] > scores[best]) {
				best = i
			}
		}
		taken = append(taken, best)
		delete(left, best)
		for i := range scores {
			if left[i] && shared(i, best) > overlap {
				delete(left, i)
			}
		}
	}
	return taken
}
