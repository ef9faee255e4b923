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
