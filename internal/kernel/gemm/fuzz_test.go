package gemm_test

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
)

// FuzzCompressFloats takes any floats apart and puts them together.
func FuzzCompressFloats(f *testing.F) {
	f.Add([]byte{0, 0, 128, 63}, uint64(0x7c7b7a7978777675))
	f.Add([]byte("weights of all kinds, none of which may change"), uint64(0))
	v := kerneltest.Best()
	f.Fuzz(func(t *testing.T, data []byte, codes uint64) {
		exponents := gemm.Exponents(binary.LittleEndian.AppendUint64(nil, codes))
		unit := gemm.PanelWidth(v)
		x := make([]float32, min((len(data)/4+unit-1)/unit*unit, gemm.MostCompressed))
		aside := 0
		for i := range x {
			if 4*i+4 <= len(data) {
				x[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
			}
			if !slices.Contains(exponents[:], byte(math.Float32bits(x[i])>>23)) {
				aside++
			}
		}
		packed := make([]byte, gemm.CompressedBytes(v, len(x), aside))
		gemm.CompressFloats(v, packed, exponents, aside, x)
		back := make([]float32, len(x))
		gemm.ExpandFloats(v, back, packed, exponents, aside)
		for i := range x {
			if got, want := math.Float32bits(back[i]), math.Float32bits(x[i]); got != want {
				t.Fatalf("element %d: got bits %#08x, want %#08x", i, got, want)
			}
		}
	})
}
