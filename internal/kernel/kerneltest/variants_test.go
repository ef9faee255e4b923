package kerneltest_test

import (
	"slices"
	"testing"

	"github.com/tenure-go/tenure/internal/cpu"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/machine"
)

// tiers are those that kernels are written for.
var tiers = []cpu.Tier{cpu.Portable, cpu.AVX2, cpu.AVX512}

// TestEveryTierIsTested looks for a variant that the machine runs and that
// EachVariant does not have, and skips those that this process may not run.
func TestEveryTierIsTested(t *testing.T) {
	variants := machine.Variants()
	for _, tier := range tiers {
		t.Run(tier.String(), func(t *testing.T) {
			there := slices.ContainsFunc(variants, func(v *kernel.Variant) bool { return v.Name == tier.String() })
			switch {
			case there:
			case tier <= cpu.Level():
				t.Fatalf("this machine runs %s, but there are %d variants without it", cpu.Level(), len(variants))
			default:
				t.Skipf("%s is above what this process may use, %s", tier, cpu.Level())
			}
		})
	}
	if n := len(variants); n > len(tiers) {
		t.Errorf("got %d variants, want at most those of %v", n, tiers)
	}
}

// TestSideBySide prepares a product with every variant before it computes any,
// and then all at once: what one has prepared is not touched by the others.
func TestSideBySide(t *testing.T) {
	const m, n, k = 37, 75, 300
	a, b := make([]float32, m*k), make([]float32, k*n)
	for i := range a {
		a[i] = float32(i%7 - 3)
	}
	for i := range b {
		b[i] = float32(i%5 - 2)
	}
	variants := machine.Variants()
	gemms, results := make([]gemm.Gemm, len(variants)), make([][]float32, len(variants))
	for i, v := range variants {
		gemms[i] = gemm.Gemm{M: m, N: n, K: k, Alpha: 1}
		gemms[i].Prepare(v)
		results[i] = make([]float32, m*n)
	}
	t.Run("all", func(t *testing.T) {
		for i, v := range variants {
			t.Run(v.Name, func(t *testing.T) {
				t.Parallel()
				g := &gemms[i]
				scratch := make([]float32, g.ScratchBytes()/4)
				for tile := range g.Tiles() {
					g.Tile(tile, scratch, &gemm.Args{C: results[i], A: a, B: b})
				}
			})
		}
	})
	for i := range variants { // small integers: sums are exact, in any order
		if !slices.Equal(results[i], results[0]) {
			t.Errorf("%s: got another product than %s", variants[i].Name, variants[0].Name)
		}
	}
}
