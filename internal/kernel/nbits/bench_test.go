package nbits_test

import (
	"fmt"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/nbits"
)

// BenchmarkProduct computes with weights that no cache holds. Beside it
// BenchmarkMemory reads as many bytes.
func BenchmarkProduct(b *testing.B) {
	for _, bits := range []int{4, 8, 2} {
		for _, ints := range []bool{true, false} {
			for _, m := range []int{1, 4, 128} {
				kerneltest.BenchVariants(b, func(b *testing.B, v *kernel.Variant) {
					b.Run(fmt.Sprintf("bits=%d/ints=%t/m=%d/%s", bits, ints, m, v.Name), func(b *testing.B) {
						p := nbits.Product{M: m, N: 4096, K: 2048, Bits: bits, Block: 32, Ints: ints, Middle: 1 << (bits - 1), Packed: true}
						benchProduct(b, v, &p)
					})
				})
			}
		}
	}
}

func benchProduct(b *testing.B, v *kernel.Variant, p *nbits.Product) {
	p.Source = nbits.Source{Rows: true, Depth: p.K, Scale: dtype.F32}
	one, scales, copies := p.BBytes(v), p.ScaleBytes(v), 1
	if p.M <= nbits.FewRows {
		copies = max(1, 256<<20/(one+scales))
		b.SetBytes(int64(one + scales))
	}
	w, scale := make([]byte, one*copies), make([]float32, scales/4*copies)
	for i := range w {
		w[i] = byte(i * 7)
	}
	a, c := kerneltest.Ramp(p.M*p.K), make([]float32, p.M*p.N)
	p.Prepare(v)
	scratch := kerneltest.AsBytes(make([]float32, p.ScratchBytes()/4))
	at := 0
	for b.Loop() {
		args := nbits.Args{C: c, A: a, B: w[at*one:][:one], Scale: kerneltest.AsBytes(scale[at*scales/4:][:scales/4])}
		for t := range p.Tiles() {
			p.Tile(t, scratch, &args)
		}
		at = (at + 1) % copies
	}
	kerneltest.ReportFlops(b, 2*p.M*p.N*p.K)
}

// BenchmarkMemory adds up the elements of a large slice.
func BenchmarkMemory(b *testing.B) {
	v := kerneltest.Best()
	x := make([]float32, 64<<20)
	for i := range x {
		x[i] = 1
	}
	b.SetBytes(int64(4 * len(x)))
	sum := float32(0)
	for b.Loop() {
		for i := 0; i < len(x); i += 16 << 10 {
			sum = max(sum, v.Rows.Max(16<<10, &x[i], sum))
		}
	}
	if sum != 1 {
		b.Fatal(sum)
	}
}
