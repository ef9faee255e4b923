package move_test

import (
	"testing"

	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/move"
)

func BenchmarkTranspose(b *testing.B) {
	v := kerneltest.Best()
	for _, c := range []struct {
		name        string
		shape, perm []int
	}{{"matrix", []int{1024, 1024}, []int{1, 0}}, {"large matrix", []int{4096, 4096}, []int{1, 0}},
		{"heads", []int{8, 128, 12, 64}, []int{0, 2, 1, 3}}, {"keys", []int{8, 2048, 64}, []int{0, 2, 1}}, {"nhwc", []int{224, 224, 3}, []int{2, 0, 1}}} {
		b.Run("f32/"+c.name, func(b *testing.B) {
			var k move.Copy
			k.PrepareTranspose(4, c.shape, c.perm, nil, nil)
			n := 1
			for _, d := range c.shape {
				n *= d
			}
			src, dst := make([]byte, 4*n), make([]byte, 4*n)
			b.SetBytes(int64(8 * n))
			for b.Loop() {
				for t := range k.Tiles() {
					k.Tile(v, t, dst, src)
				}
			}
		})
	}
}

func BenchmarkSquare(b *testing.B) {
	v := kerneltest.Best()
	for _, c := range []struct {
		name        string
		elem        int
		shape, perm []int
	}{{"f32/matrix", 4, []int{1024, 1024}, []int{1, 0}}, {"f32/large matrix", 4, []int{4096, 4096}, []int{1, 0}}, {"f32/64", 4, []int{64, 64}, []int{1, 0}}, {"f32/128", 4, []int{128, 128}, []int{1, 0}}, {"f32/256", 4, []int{256, 256}, []int{1, 0}}, {"f32/512", 4, []int{512, 512}, []int{1, 0}},
		{"f32/batch", 4, []int{12, 197, 197}, []int{0, 2, 1}}, {"f32/rows", 4, []int{64, 64, 64}, []int{1, 0, 2}}, {"f32/outer", 4, []int{128, 16, 128}, []int{2, 1, 0}},
		{"f16/matrix", 2, []int{1024, 1024}, []int{1, 0}}, {"u8/matrix", 1, []int{1024, 1024}, []int{1, 0}}, {"f64/matrix", 8, []int{1024, 1024}, []int{1, 0}},
		{"c128/matrix", 16, []int{512, 512}, []int{1, 0}}} {
		n := c.elem
		for _, d := range c.shape {
			n *= d
		}
		src, dst := make([]byte, n), make([]byte, n)
		b.Run(c.name+"/copy", func(b *testing.B) {
			var k move.Copy
			k.PrepareTranspose(c.elem, c.shape, c.perm, nil, nil)
			b.SetBytes(int64(2 * n))
			for b.Loop() {
				for t := range k.Tiles() {
					k.Tile(v, t, dst, src)
				}
			}
		})
		b.Run(c.name+"/in place", func(b *testing.B) {
			strides, axes := make([]int, len(c.shape)), []int{}
			for i, s := len(c.shape)-1, 1; i >= 0; i-- {
				strides[i], s = s, s*c.shape[i]
			}
			for i, p := range c.perm {
				if i != p {
					axes = append(axes, i)
				}
			}
			scratch := make([]byte, move.SquareBytes)
			var k move.Square
			k.Prepare(c.elem, c.shape, strides, axes[0], axes[1])
			b.SetBytes(int64(2 * n))
			for b.Loop() {
				for t := range k.Tiles() {
					k.Tile(v, t, dst, scratch)
				}
			}
		})
	}
}
