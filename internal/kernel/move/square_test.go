package move_test

import (
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/move"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

func TestSquare(t *testing.T) { kerneltest.EachVariant(t, testSquare) }

func testSquare(t *testing.T, v *kernel.Variant) {
	t.Run("1", kerneltest.With(v, squares[uint8]))
	t.Run("2", kerneltest.With(v, squares[uint16]))
	t.Run("4", kerneltest.With(v, squares[uint32]))
	t.Run("8", kerneltest.With(v, squares[uint64]))
	t.Run("16", kerneltest.With(v, squares[[2]uint64]))
}

func squares[W comparable](t *testing.T, v *kernel.Variant) {
	for _, c := range []struct {
		shape []int
		a, b  int
		gap   int // elements behind each row
	}{
		{[]int{1, 1}, 0, 1, 0}, {[]int{7, 7}, 0, 1, 0}, {[]int{64, 64}, 0, 1, 0}, {[]int{97, 97}, 0, 1, 0}, {[]int{47, 47}, 0, 1, 0}, {[]int{48, 48}, 0, 1, 0},
		{[]int{3, 40, 40}, 1, 2, 0}, {[]int{2, 3, 33, 1, 33}, 2, 4, 0}, {[]int{35, 2, 35}, 0, 2, 0}, {[]int{5, 2, 5, 3}, 0, 2, 0},
		{[]int{2, 6, 6, 3, 5}, 1, 2, 0}, {[]int{2, 2, 20_001}, 0, 1, 0}, {[]int{0, 4, 4}, 1, 2, 0}, {[]int{4, 4, 0}, 0, 1, 0}, {[]int{0, 0}, 0, 1, 0},
		{[]int{2, 50, 50}, 1, 2, 13}, {[]int{9, 9, 4}, 0, 1, 3},
	} {
		perm := make([]int, len(c.shape))
		for i := range perm {
			perm[i] = i
		}
		perm[c.a], perm[c.b] = c.b, c.a
		x := kerneltest.Words[W](ref.Size(c.shape), 1)
		want := ref.Transpose(x, c.shape, perm)
		last := len(c.shape) - 1
		strides := make([]int, len(c.shape))
		for i, n := last, 1; i >= 0; i-- {
			strides[i] = n
			if n *= c.shape[i]; i == last {
				n += c.gap
			}
		}
		row := c.shape[last] + c.gap
		spread := func(x []W) []W {
			out := make([]W, 0, len(x)/max(1, c.shape[last])*row)
			for len(x) > 0 {
				out = append(append(out, x[:c.shape[last]]...), make([]W, c.gap)...)
				x = x[c.shape[last]:]
			}
			return out
		}
		s := kerneltest.NewSpace(t)
		data := kerneltest.InOut(s, "data", spread(x))
		scratch := kerneltest.AsBytes(kerneltest.Out[[2]uint64](s, "scratch", move.SquareBytes/16))
		var k move.Square
		k.Prepare(kerneltest.SizeOf[W](), c.shape, strides, c.a, c.b)
		for tile := k.Tiles() - 1; tile >= 0; tile-- {
			k.Tile(v, tile, kerneltest.AsBytes(data), scratch)
		}
		s.Check()
		kerneltest.WantEqual(t, data, spread(want))
	}
}
