package kerneltest

import (
	"slices"
	"testing"

	"github.com/tenure-go/tenure/internal/cpu"
	"github.com/tenure-go/tenure/internal/kernel"
)

var families = []struct {
	name string
	run  func(t *testing.T)
}{
	{"unary", testUnary},
	{"binary", testBinary},
	{"lanes", testLanes},
	{"chain", testChain},
	{"predicate", testPredicate},
	{"cast", testCast},
	{"copy", testCopy},
	{"gather", testGather},
	{"scatter", testScatter},
	{"pad", testPad},
	{"generate", testGenerate},
	{"gemm", testGemm},
	{"compressed floats", testCompressedFloats},
	{"conv", testConv},
	{"pool", testPool},
	{"reduce", testReduce},
	{"softmax", testSoftmax},
	{"norm", testNorm},
	{"quantize", testQuantize},
	{"attention", testAttention},
	{"recurrent", testRecurrent},
	{"selection", testSelection},
	{"filter", testFilter},
	{"grid_sample", testGridSample},
	{"unpool", testUnpool},
	{"fourier", testFourier},
	{"ngrams", testNGrams},
	{"text", testText},
	{"regions", testRegions},
	{"resize", testResize},
	{"conv_transpose", testConvTranspose},
	{"plain", testPlain},
	{"long", testLong},
}

// tiers are those that kernels are written for.
var tiers = []cpu.Tier{cpu.Portable, cpu.AVX2, cpu.AVX512}

// RunAll runs the suite for every variant that there is, and skips those that this machine cannot run. Variants are switched for the whole process, so nothing else may run
// kernels at the same time.
func RunAll(t *testing.T) {
	active := kernel.Variant()
	defer kernel.UseVariant(active)
	for _, tier := range tiers {
		t.Run(tier.String(), func(t *testing.T) {
			if !slices.Contains(kernel.Variants(), tier.String()) {
				if tier <= cpu.Level() {
					t.Fatalf("this machine runs %s, but the variants are %v", cpu.Level(), kernel.Variants())
				}
				t.Skipf("%s is above what this process may use, %s", tier, cpu.Level())
			}
			kernel.UseVariant(tier.String())
			Run(t)
		})
	}
	if n := len(kernel.Variants()); n > len(tiers) {
		t.Errorf("got %d variants, want at most those of %v", n, tiers)
	}
}

// Run runs the suite for the active variant.
func Run(t *testing.T) {
	for _, f := range families {
		t.Run(f.name, f.run)
	}
}
