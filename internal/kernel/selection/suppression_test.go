package selection_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/internal/kernel/selection"
)

func TestSuppression(t *testing.T) {
	r := kerneltest.NewRand(131)
	for i := range 200 {
		most := 12
		if i%4 == 3 {
			most = 200
		}
		if i%64 == 63 {
			most = 3000
		}
		spec := selection.Suppression{Batch: 2, Classes: 2, Boxes: 1 + r.IntN(most), Most: r.IntN(most), Overlap: r.Float32() / 2, HasScore: i&1 != 0, Score: 0.25, Centered: i&2 != 0}
		boxes := ref.Map(kerneltest.Small(r, 2*spec.Boxes*4), func(v float32) float32 { return v + 3 }) // sizes are not below zero
		if i%8 >= 5 {                                                                                   // groups apart, some boxes of no height, and one of all
			for b := range boxes {
				if b%4 == 1 || b%4 == 0 && !spec.Centered {
					boxes[b] += float32(40 * (b / 4 % 7))
				}
			}
			if i%16 == 13 {
				copy(boxes, []float32{-1000, -1000, 3000, 3000})
			}
		}
		if i%64 == 63 { // many rows, far from 0
			for b := range boxes {
				if b%4 == 1 || b%4 == 0 && !spec.Centered {
					boxes[b] += 1000 * float32(b/4%997)
				}
			}
		}
		if i%32 == 15 {
			for _, v := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32} {
				boxes[r.IntN(len(boxes))] = v
			}
		}
		scores := ref.Map(kerneltest.Small(r, 2*2*spec.Boxes), func(v float32) float32 { return v / 4 })
		s := kerneltest.NewSpace(t)
		dst := kerneltest.Out[int64](s, "dst", 3*2*2*min(spec.Most, spec.Boxes))
		scratch := selection.SuppressionScratch{
			Order: kerneltest.Out[int64](s, "order", spec.Boxes), Chosen: kerneltest.Out[float32](s, "chosen", 5*spec.Boxes),
			Begin: kerneltest.Out[int32](s, "begin", spec.Boxes), Count: kerneltest.Out[int32](s, "count", spec.Boxes),
		}
		n := selection.NonMaxSuppression(&spec, dst, kerneltest.In(s, "boxes", boxes), kerneltest.In(s, "scores", scores), scratch)
		s.Check()
		kerneltest.WantEqual(t, dst[:3*n], everyPair(&spec, boxes, scores))
	}
}

// everyPair chooses boxes by comparing each candidate with all that were
// chosen, in the arithmetic of the kernel.
func everyPair(spec *selection.Suppression, boxes, scores []float32) (want []int64) {
	corner := func(b []float32) [4]float32 {
		if spec.Centered {
			return [4]float32{b[1] - b[3]/2, b[0] - b[2]/2, b[1] + b[3]/2, b[0] + b[2]/2}
		}
		return [4]float32{min(b[0], b[2]), min(b[1], b[3]), max(b[0], b[2]), max(b[1], b[3])}
	}
	for b := range spec.Batch {
		for c := range spec.Classes {
			score := scores[(b*spec.Classes+c)*spec.Boxes:][:spec.Boxes]
			var order []int
			for i, v := range score {
				if !spec.HasScore || v > spec.Score {
					order = append(order, i)
				}
			}
			slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(score[j], score[i]) })
			var chosen [][4]float32
			for _, i := range order {
				if len(chosen) == spec.Most {
					break
				}
				x := corner(boxes[(b*spec.Boxes+i)*4:])
				if !slices.ContainsFunc(chosen, func(y [4]float32) bool { return overlaps(x, y, spec.Overlap) }) {
					chosen = append(chosen, x)
					want = append(want, int64(b), int64(c), int64(i))
				}
			}
		}
	}
	return want
}

func overlaps(a, b [4]float32, most float32) bool {
	height, width := min(a[2], b[2])-max(a[0], b[0]), min(a[3], b[3])-max(a[1], b[1])
	if height <= 0 || width <= 0 {
		return false
	}
	areaA, areaB, both := (a[2]-a[0])*(a[3]-a[1]), (b[2]-b[0])*(b[3]-b[1]), height*width
	return areaA > 0 && areaB > 0 && both > 0 && both/(areaA+areaB-both) > most
}

// TestSuppressionAgainstTheDefinition compares with the reference, which
// computes in float64.
func TestSuppressionAgainstTheDefinition(t *testing.T) {
	r := kerneltest.NewRand(132)
	for i := range 60 {
		spec := selection.Suppression{Batch: 1, Classes: 1, Boxes: 1 + r.IntN(12), Most: r.IntN(8), Overlap: r.Float32() / 2, HasScore: true, Score: 0.25, Centered: i&2 != 0}
		boxes := ref.Map(kerneltest.Small(r, spec.Boxes*4), func(v float32) float32 { return v + 3 })
		scores := ref.Map(kerneltest.Small(r, spec.Boxes), func(v float32) float32 { return v / 4 })
		var want []int64
		for _, box := range ref.NonMaxSuppression(kerneltest.F64s(boxes), kerneltest.F64s(scores), spec.Most, float64(spec.Overlap), 0.25, spec.Centered) {
			want = append(want, 0, 0, int64(box))
		}
		kerneltest.WantEqual(t, everyPair(&spec, boxes, scores), want)
	}
}
