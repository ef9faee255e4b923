package move_test

import (
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/move"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

var padModes = []move.PadMode{move.PadConstant, move.PadReflect, move.PadEdge, move.PadWrap}

func TestPad(t *testing.T) {
	t.Run("1", pads[uint8])
	t.Run("2", pads[uint16])
	t.Run("4", pads[uint32])
	t.Run("8", pads[uint64])
	t.Run("16", pads[[2]uint64])
}

func pads[W comparable](t *testing.T) {
	for _, c := range []struct{ shape, before, after []int }{
		{[]int{}, []int{}, []int{}}, {[]int{5}, []int{2}, []int{3}}, {[]int{3, 4}, []int{1, 2}, []int{0, 1}}, {[]int{2, 3, 4}, []int{0, 1, 0}, []int{0, 1, 0}},
		{[]int{2, 3, 4}, []int{1, 0, 0}, []int{2, 0, 0}}, {[]int{4, 5}, []int{-1, 1}, []int{1, -2}}, {[]int{3, 3}, []int{7, 8}, []int{9, 6}},
		{[]int{1, 1, 3}, []int{0, 2, 1}, []int{1, 0, 1}}, {[]int{4}, []int{0}, []int{0}}, {[]int{2, 3}, []int{0, -1}, []int{0, -2}},
	} {
		for _, mode := range padModes {
			x, constant := kerneltest.Words[W](ref.Size(c.shape), 1), kerneltest.Words[W](1, 200)
			want := ref.Pad(x, c.shape, c.before, c.after, mode.String(), constant[0])
			var p move.Pad
			p.Prepare(kerneltest.SizeOf[W](), c.shape, c.before, c.after, mode, nil, nil)
			s := kerneltest.NewSpace(t)
			src, dst, k := kerneltest.In(s, "src", x), kerneltest.Out[W](s, "dst", len(want)), kerneltest.In(s, "constant", constant)
			kerneltest.Backwards(p.Tiles(), func(i int) { p.Tile(i, kerneltest.AsBytes(dst), kerneltest.AsBytes(src), kerneltest.AsBytes(k)) })
			s.Check()
			for i := range want {
				if dst[i] != want[i] {
					t.Fatalf("%v %s: element %d: got %v, want %v", c, mode, i, dst[i], want[i])
				}
			}
		}
	}
}

func TestGenerate(t *testing.T) {
	t.Run("fill", func(t *testing.T) {
		for _, n := range kerneltest.Lengths {
			s := kerneltest.NewSpace(t)
			dst := kerneltest.Out[[3]byte](s, "dst", n)
			move.Fill(kerneltest.AsBytes(dst), []byte{1, 2, 3})
			s.Check()
			for _, v := range dst {
				if v != [3]byte{1, 2, 3} {
					t.Fatalf("length %d: got %v", n, v)
				}
			}
		}
	})
	t.Run("range", func(t *testing.T) {
		s := kerneltest.NewSpace(t)
		i, f := kerneltest.Out[int64](s, "i64", 7), kerneltest.Out[float32](s, "f32", 3)
		move.Range(i[:4], 10, -3, 0)
		move.Range(i[4:], 10, -3, 4)
		move.Range(f, 0.5, 0.25, 2)
		s.Check()
		kerneltest.WantEqual(t, i, []int64{10, 7, 4, 1, -2, -5, -8})
		kerneltest.WantEqual(t, f, []float32{1, 1.25, 1.5})
	})
	t.Run("one_hot", func(t *testing.T) {
		idx := []int64{0, -1, 3, 2, -4, 9}
		s := kerneltest.NewSpace(t)
		dst := kerneltest.Out[uint16](s, "dst", 2*4*3)
		move.OneHot(move.OneHotSpec{Outer: 2, Depth: 4, Inner: 3}, 2, kerneltest.AsBytes(dst), kerneltest.In(s, "indices", idx), kerneltest.AsBytes(kerneltest.In(s, "values", []uint16{5, 6})))
		s.Check()
		kerneltest.WantEqual(t, dst, ref.OneHot(idx, 2, 4, 3, uint16(5), 6))
	})
	t.Run("trilu", testTrilu)
	t.Run("cumsum", func(t *testing.T) {
		cumSum[float32](t)
		cumSum[float64](t)
		cumSum[int32](t)
		cumSum[uint64](t)
	})
}

func testTrilu(t *testing.T) {
	for _, dims := range [][2]int{{4, 4}, {3, 6}, {6, 3}, {0, 2}} {
		for k := -7; k <= 7; k++ {
			for _, upper := range []bool{false, true} {
				rows, cols := dims[0], dims[1]
				x := kerneltest.Words[uint32](2*rows*cols, 1)
				spec := move.TriluSpec{Batch: 2, Rows: rows, Cols: cols, K: k, Upper: upper}
				s := kerneltest.NewSpace(t)
				src, dst, place := kerneltest.In(s, "src", x), kerneltest.Out[uint32](s, "dst", len(x)), kerneltest.InOut(s, "in place", x)
				kerneltest.Backwards(spec.Tiles(), func(i int) {
					move.Trilu(&spec, i, 4, kerneltest.AsBytes(dst), kerneltest.AsBytes(src))
					move.Trilu(&spec, i, 4, kerneltest.AsBytes(place), kerneltest.AsBytes(place))
				})
				s.Check()
				n := rows * cols
				want := append(ref.Trilu(x[:n], rows, cols, k, upper), ref.Trilu(x[n:], rows, cols, k, upper)...)
				kerneltest.WantEqual(t, dst, want)
				kerneltest.WantEqual(t, place, want)
			}
		}
	}
}

func cumSum[T kernel.Number](t *testing.T) {
	t.Helper()
	shape := []int{3, 4, 5}
	x := ref.Map(kerneltest.Small(kerneltest.NewRand(15), 60), func(v float32) T { return T(v + 3) })
	wide := ref.Map(x, func(v T) float64 { return float64(v) })
	for axis := range shape {
		for mode := range 8 {
			spec := move.ScanSpec{Product: mode&4 != 0, Exclusive: mode&1 != 0, Reverse: mode&2 != 0}
			spec.Prepare(shape, axis, kernel.RowMajor(shape), kernel.RowMajor(shape))
			s := kerneltest.NewSpace(t)
			src, dst, place := kerneltest.In(s, "src", x), kerneltest.Out[T](s, "dst", 60), kerneltest.InOut(s, "in place", x)
			kerneltest.Backwards(spec.Parts(), func(i int) {
				move.Scan(&spec, i, i+1, dst, src)
				move.Scan(&spec, i, i+1, place, place)
			})
			s.Check()
			want := ref.Map(ref.Scan(wide, shape, axis, spec.Product, spec.Exclusive, spec.Reverse), func(v float64) T { return T(v) })
			kerneltest.WantEqual(t, dst, want)
			kerneltest.WantEqual(t, place, want)
		}
	}
}
