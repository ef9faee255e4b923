package selection_test

import (
	"testing"

	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/internal/kernel/selection"
)

func TestSuppression(t *testing.T) {
	r := kerneltest.NewRand(131)
	for i := range 60 {
		spec := selection.Suppression{Batch: 2, Classes: 2, Boxes: 1 + r.IntN(12), Most: r.IntN(8), Overlap: r.Float32() / 2, HasScore: i&1 != 0, Score: 0.25, Centered: i&2 != 0}
		boxes := ref.Map(kerneltest.Small(r, 2*spec.Boxes*4), func(v float32) float32 { return v + 3 }) // sizes are not below zero
		scores := ref.Map(kerneltest.Small(r, 2*2*spec.Boxes), func(v float32) float32 { return v / 4 })
		s := kerneltest.NewSpace(t)
		dst, scratch := kerneltest.Out[int64](s, "dst", 3*2*2*min(spec.Most, spec.Boxes)), kerneltest.Out[int64](s, "scratch", spec.Boxes)
		n := selection.NonMaxSuppression(&spec, dst, kerneltest.In(s, "boxes", boxes), kerneltest.In(s, "scores", scores), scratch)
		s.Check()
		var want []int64
		for b := range 2 {
			for c := range 2 {
				least := -100.0
				if spec.HasScore {
					least = 0.25
				}
				for _, box := range ref.NonMaxSuppression(kerneltest.F64s(boxes)[b*spec.Boxes*4:], kerneltest.F64s(scores)[(b*2+c)*spec.Boxes:][:spec.Boxes], spec.Most, float64(spec.Overlap), least, spec.Centered) {
					want = append(want, int64(b), int64(c), int64(box))
				}
			}
		}
		kerneltest.WantEqual(t, dst[:3*n], want)
	}
}
