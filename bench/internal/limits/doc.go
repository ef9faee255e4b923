// Package limits measures the limits of a processor: the multiply-adds per
// second, and the floats per second that it moves through memory. The
// benchmarks measure them in the same minutes as the engines, since clocks and
// neighbours change.
//
// The loops are assembly on amd64, as simple as a loop can be: [FMA] keeps
// independent sums in registers; [Read], [Copy], [Scale] and [Triad] walk over
// slices, with ordinary stores or with stores that pass the caches. Elsewhere
// they are Go, and no limit of the machine. Everything here runs on the given
// number of goroutines, holds no memory of its own, and may be used from any
// goroutine.
package limits
