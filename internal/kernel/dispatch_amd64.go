package kernel

import "github.com/tenure-go/tenure/internal/cpu"

// assembly is what one set of vector instructions offers: the generated functions, which take pointers and counts and check nothing. The
// files vector_*_amd64.go hold a part each, and put it behind the dispatch points.
type assembly struct {
	gemmCode
	expandCode
	convCode
	rowCode
	byteCode
	lanes laneCode
}

var (
	assembly256 = assembly{gemm256, expanding256, conv256, rows256, bytes256, laneCode{all: lanes256}}
	assembly512 = assembly{gemm512, expanding512, conv512, rows512, bytesOfTier(), laneCode{lanes512, lanes256}}
)

// machineVariants are those that this architecture adds to the portable one: what the processor has and TENURE_CPU allows.
func machineVariants() []variant {
	var all []variant
	if cpu.Level() >= cpu.AVX2 {
		all = append(all, variant{cpu.AVX2.String(), assembly256.install})
	}
	if cpu.Level() >= cpu.AVX512 {
		all = append(all, variant{cpu.AVX512.String(), assembly512.install})
	}
	return all
}

func (v *assembly) install() {
	installPortable()
	v.gemmCode.install()
	v.expandCode.install()
	v.convCode.install()
	v.rowCode.install()
	v.byteCode.install()
	v.lanes.install()
}
