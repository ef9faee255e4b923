package cpu

import "golang.org/x/sys/cpu"

var archTiers = []Tier{Portable, AVX2, AVX512}

// detect trusts x/sys/cpu to have asked the operating system, too, whether it
// saves the wide registers.
func detect() Tier {
	x := &cpu.X86
	switch {
	case !x.HasAVX2 || !x.HasFMA || !x.HasF16C:
		return Portable
	case !x.HasAVX512F || !x.HasAVX512BW || !x.HasAVX512DQ || !x.HasAVX512VL:
		return AVX2
	}
	return AVX512
}

// HasVNNI reports whether kernels of the tier [AVX512] may use the instructions
// that add up products of bytes.
func HasVNNI() bool { return Level() >= AVX512 && cpu.X86.HasAVX512VNNI }

// HasVBMI reports whether they may use those that take bytes from any place of
// a vector.
func HasVBMI() bool { return Level() >= AVX512 && cpu.X86.HasAVX512VBMI }
