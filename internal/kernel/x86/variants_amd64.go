package x86

import (
	"github.com/tenure-go/tenure/internal/cpu"
	"github.com/tenure-go/tenure/internal/kernel"
)

// narrow512 is AVX-512 without VNNI: not all that have the wide vectors
// multiply bytes with them.
var narrow512 = func() kernel.Variant {
	v := avx512
	v.Bytes = avx2.Bytes
	return v
}()

// without512 is AVX-512 without VBMI, which is not on the first processors with
// VNNI.
var without512 = func() kernel.Variant {
	v := avx512
	v.Bytes.Lookup, v.Bytes.Taps = nil, nil
	return v
}()

// Variants returns those that this process may run, slowest first: the
// processor has them, and TENURE_CPU allows them.
func Variants() (all []*kernel.Variant) {
	if cpu.Level() >= cpu.AVX2 {
		all = append(all, &avx2)
	}
	if cpu.Level() >= cpu.AVX512 {
		switch {
		case !cpu.HasVNNI():
			return append(all, &narrow512)
		case !cpu.HasVBMI():
			return append(all, &without512)
		}
		return append(all, &avx512)
	}
	return all
}
