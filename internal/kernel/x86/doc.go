// Package x86 has the kernels' innermost loops in assembly for amd64: AVX2 with
// FMA, and AVX-512. The generator in gen writes all of it but the list of
// variants that a machine can run. Each loop is declared beside its text, and
// stands in the table of its set of instructions, a kernel.Variant, which never
// changes; package machine picks one. Loops keep nothing and own nothing: see
// kernel.Variant for the duties of callers. Elsewhere the package is empty.
package x86
