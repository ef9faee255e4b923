package symbolic

import "testing"

// TestNested has parts within parts, as a network of many poolings has: the
// time for bounds grows with the number of parts, and not with each part in
// another one. Beyond some size an expression is unknown.
func TestNested(t *testing.T) {
	box := Box{"n": {1, 1 << 40}}
	halves := Symbol("n")
	for range 40 {
		halves = halves.Add(Const(3)).Floor(2).Mul(Const(3)).Add(Const(1)).Floor(3)
	}
	// From n = 1, each step is 2.
	if lo, hi, ok := halves.Bounds(box); !ok || lo != 2 || hi < 2 || !halves.Grows(box) {
		t.Errorf("got %d to %d, %v, want bounds from 2 on", lo, hi, ok)
	}
	pools, known := Symbol("n"), 0
	for range 12 {
		pools = Max(pools.Floor(2).Add(Const(1)), Min(pools.Add(Const(1)).Floor(3), pools.Sub(Const(3)).Floor(2)))
		if _, _, ok := pools.Bounds(Box{"n": {1, 500}}); ok {
			known++
		}
	}
	if known < 3 || pools != nil {
		t.Errorf("got bounds of %d, %v, want those of the first ones alone", known, pools)
	}
}
