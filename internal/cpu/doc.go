// Package cpu says which kernels this machine can run.
//
// [Level] is a [Tier]: a set of instructions that kernels are written for. It
// is found once, at start, from the features of the processor and the operating
// system, and can be lowered, never raised, by the one environment variable
//
//	TENURE_CPU=portable|neon|avx2|avx512
//
// so that one machine can test all kernels it is able to run. A tier above the
// machine's own changes nothing. A value that is not a tier of the architecture
// changes nothing either, and [Err] reports it; programs that choose kernels
// check Err before they start.
//
// [Place] tells which processor the caller is on, for code that shares work
// out, and [Leave] moves it to another one.
//
// In a race build Level is [Portable]: the race detector does not see into
// assembly.
//
// The package holds no state that changes; it may be used from any goroutine.
package cpu
