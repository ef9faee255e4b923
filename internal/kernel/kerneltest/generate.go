package kerneltest

import (
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/move"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

var padModes = []move.PadMode{move.PadConstant, move.PadReflect, move.PadEdge, move.PadWrap}

func testPad(t *testing.T) {
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
			x, constant := words[W](ref.Size(c.shape), 1), words[W](1, 200)
			want := ref.Pad(x, c.shape, c.before, c.after, mode.String(), constant[0])
			var p move.Pad
			p.Prepare(sizeOf[W](), c.shape, c.before, c.after, mode)
			s := newSpace(t)
			src, dst, k := in(s, "src", x), out[W](s, "dst", len(want)), in(s, "constant", constant)
			backwards(p.Tiles(), func(i int) { p.Tile(i, asBytes(dst), asBytes(src), asBytes(k)) })
			s.check()
			for i := range want {
				if dst[i] != want[i] {
					t.Fatalf("%v %s: element %d: got %v, want %v", c, mode, i, dst[i], want[i])
				}
			}
		}
	}
}

func testGenerate(t *testing.T) {
	t.Run("fill", func(t *testing.T) {
		for _, n := range lengths {
			s := newSpace(t)
			dst := out[[3]byte](s, "dst", n)
			move.Fill(asBytes(dst), []byte{1, 2, 3})
			s.check()
			for _, v := range dst {
				if v != [3]byte{1, 2, 3} {
					t.Fatalf("length %d: got %v", n, v)
				}
			}
		}
	})
	t.Run("range", func(t *testing.T) {
		s := newSpace(t)
		i, f := out[int64](s, "i64", 7), out[float32](s, "f32", 3)
		move.Range(i[:4], 10, -3, 0)
		move.Range(i[4:], 10, -3, 4)
		move.Range(f, 0.5, 0.25, 2)
		s.check()
		wantEqual(t, i, []int64{10, 7, 4, 1, -2, -5, -8})
		wantEqual(t, f, []float32{1, 1.25, 1.5})
	})
	t.Run("one_hot", func(t *testing.T) {
		idx := []int64{0, -1, 3, 2, -4, 9}
		s := newSpace(t)
		dst := out[uint16](s, "dst", 2*4*3)
		move.OneHot(move.OneHotSpec{Outer: 2, Depth: 4, Inner: 3}, 2, asBytes(dst), in(s, "indices", idx), asBytes(in(s, "values", []uint16{5, 6})))
		s.check()
		wantEqual(t, dst, ref.OneHot(idx, 2, 4, 3, uint16(5), 6))
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
				x := words[uint32](2*rows*cols, 1)
				spec := move.TriluSpec{Batch: 2, Rows: rows, Cols: cols, K: k, Upper: upper}
				s := newSpace(t)
				src, dst, place := in(s, "src", x), out[uint32](s, "dst", len(x)), inout(s, "in place", x)
				backwards(spec.Tiles(), func(i int) {
					move.Trilu(&spec, i, 4, asBytes(dst), asBytes(src))
					move.Trilu(&spec, i, 4, asBytes(place), asBytes(place))
				})
				s.check()
				n := rows * cols
				want := append(ref.Trilu(x[:n], rows, cols, k, upper), ref.Trilu(x[n:], rows, cols, k, upper)...)
				wantEqual(t, dst, want)
				wantEqual(t, place, want)
			}
		}
	}
}

func cumSum[T kernel.Number](t *testing.T) {
	t.Helper()
	shape := []int{3, 4, 5}
	x := ref.Map(small(newRand(15), 60), func(v float32) T { return T(v + 3) })
	wide := ref.Map(x, func(v T) float64 { return float64(v) })
	for axis := range shape {
		for mode := range 8 {
			spec := move.ScanSpec{Product: mode&4 != 0, Outer: ref.Size(shape[:axis]), Axis: shape[axis], Inner: ref.Size(shape[axis+1:]), Exclusive: mode&1 != 0, Reverse: mode&2 != 0}
			s := newSpace(t)
			src, dst, place := in(s, "src", x), out[T](s, "dst", 60), inout(s, "in place", x)
			backwards(spec.Tiles(), func(i int) {
				move.Scan(&spec, i, dst, src)
				move.Scan(&spec, i, place, place)
			})
			s.check()
			want := ref.Map(ref.Scan(wide, shape, axis, spec.Product, spec.Exclusive, spec.Reverse), func(v float64) T { return T(v) })
			wantEqual(t, dst, want)
			wantEqual(t, place, want)
		}
	}
}
