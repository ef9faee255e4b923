package selection_test

import (
	"testing"

	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/selection"
)

func TestCompress(t *testing.T) {
	spec := selection.CompressSpec{Outer: 3, Rows: 5, Inner: 7}
	x := kerneltest.Words[byte](3*5*7, 1)
	for _, condition := range [][]byte{{}, {0, 0}, {1}, {1, 0, 2, 0, 1}, {0, 1, 1, 1}} {
		var want []byte
		count := 0
		for o := range 3 {
			for i, c := range condition {
				if c != 0 {
					want = append(want, x[(o*5+i)*7:][:7]...)
					count++
				}
			}
		}
		s := kerneltest.NewSpace(t)
		src, dst := kerneltest.In(s, "x", x), kerneltest.Out[byte](s, "dst", len(want))
		if got := selection.Compress(&spec, dst, src, kerneltest.In(s, "condition", condition)); got != count/3 {
			t.Fatalf("%v: got %d rows, want %d", condition, got, count/3)
		}
		s.Check()
		kerneltest.WantEqual(t, dst, want)
	}
}
