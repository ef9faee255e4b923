package kerneltest

import (
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
)

var families = []struct {
	name string
	run  func(t *testing.T)
}{
	{"unary", testUnary},
	{"binary", testBinary},
	{"predicate", testPredicate},
	{"cast", testCast},
	{"copy", testCopy},
	{"gather", testGather},
	{"scatter", testScatter},
	{"pad", testPad},
	{"generate", testGenerate},
	{"gemm", testGemm},
	{"conv", testConv},
	{"pool", testPool},
	{"reduce", testReduce},
	{"softmax", testSoftmax},
	{"norm", testNorm},
	{"quantize", testQuantize},
	{"resize", testResize},
	{"conv_transpose", testConvTranspose},
	{"plain", testPlain},
}

// RunAll runs the suite for every variant that this machine has. Variants are switched for the whole process, so nothing else may run
// kernels at the same time.
func RunAll(t *testing.T) {
	active := kernel.Variant()
	defer kernel.UseVariant(active)
	for _, v := range kernel.Variants() {
		t.Run(v, func(t *testing.T) {
			kernel.UseVariant(v)
			Run(t)
		})
	}
}

// Run runs the suite for the active variant.
func Run(t *testing.T) {
	for _, f := range families {
		t.Run(f.name, f.run)
	}
}
