// Package reduce has the kernels that compute along axes: reductions to one
// element (Reduction, ArgExtreme), softmax (Softmax) and normalisations (Norm,
// RMSNormTile, BatchNormTile). Sums of floats are accumulated in float64.
//
//	var r reduce.Reduction
//	r.Prepare(reduce.Sum, []int{64, 1000}, []bool{false, true})
//	for t := range r.Tiles() {
//		reduce.Tile(v, &r, t, dst, src)
//	}
//
// The caller owns all slices, scratch included. A prepared spec is read only,
// and any number of goroutines may compute different tiles. No sum is split
// over tiles.
package reduce
