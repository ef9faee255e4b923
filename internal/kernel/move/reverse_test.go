package move_test

import (
	"testing"

	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/move"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

func TestReverse(t *testing.T) {
	for _, batchFirst := range []bool{false, true} {
		r := move.Reverse{Time: 5, Batch: 4, Inner: 3, BatchFirst: batchFirst}
		r.Prepare()
		x, lengths := kerneltest.Words[byte](60, 1), []int64{0, 1, 4, 5}
		s := kerneltest.NewSpace(t)
		src, counts, dst := kerneltest.In(s, "x", x), kerneltest.In(s, "lengths", lengths), kerneltest.Out[byte](s, "dst", 60)
		place := kerneltest.InOut(s, "in place", x)
		kerneltest.InRanges(20, func(lo, hi int) {
			move.ReverseRows(&r, lo, hi, dst, src, counts)
			move.ReverseInPlace(&r, lo, hi, place, counts)
		})
		s.Check()
		kerneltest.WantEqual(t, place, dst)
		kerneltest.WantEqual(t, dst, ref.Reverse(x, 5, 4, 3, lengths, batchFirst))
	}
}
