package conv_test

import (
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/conv"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

// folds compares sums of small integers, which are exact.
func folds[T kernel.Number](t *testing.T) {
	r := kerneltest.NewRand(120)
	for i := range 40 {
		f := conv.Fold{Planes: 1 + r.IntN(3), Window: randomWindow(r, 1+i%3)}
		f.Prepare()
		w := refWindow(&f.Window)
		x := ref.Map(kerneltest.Small(r, f.Planes*ref.Size(w.Kernel)*ref.Size(w.Out)), func(v float32) T { return T(v) })
		s := kerneltest.NewSpace(t)
		src, dst := kerneltest.In(s, "x", x), kerneltest.Out[T](s, "dst", f.Planes*ref.Size(w.In))
		kerneltest.Backwards(f.Planes, func(p int) { conv.FoldTile(&f, p, dst, src) })
		s.Check()
		want := ref.Fold(w, f.Planes, ref.Map(x, func(v T) float64 { return float64(v) }))
		kerneltest.WantEqual(t, dst, ref.Map(want, func(v float64) T { return T(v) }))
	}
}

func TestMaxUnpool(t *testing.T) {
	u := conv.Unpool{In: []int{2, 3, 4}, Out: []int{2, 5, 4}}
	x, indices := kerneltest.Uniform(kerneltest.NewRand(121), 5), []int64{23, 0, 7, 12, 7}
	s := kerneltest.NewSpace(t)
	src, at, dst := kerneltest.In(s, "x", x), kerneltest.In(s, "indices", indices), kerneltest.Out[float32](s, "dst", 40)
	conv.MaxUnpool(&u, dst, src, at)
	s.Check()
	kerneltest.WantValues(t, dst, ref.Unpool(u.In, u.Out, kerneltest.F64s(x), indices), 0)
	for _, outside := range []int64{-1, 24, 1 << 40} {
		if got := u.Place(outside); got != -1 {
			t.Errorf("place of element %d of 24: got %d, want -1", outside, got)
		}
	}
}

func TestFold(t *testing.T) {
	t.Run("float32", folds[float32])
	t.Run("int8", folds[int8])
}
