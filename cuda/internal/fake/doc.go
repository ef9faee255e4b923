// Package fake is a CUDA driver without a device, for tests: a [Machine]
// implements [driver.Driver] and behaves as the documentation of the driver
// allows, but no better than that. What the documentation leaves open, the
// machine decides against the program.
//
// # Time
//
// Work of a stream does not run when it is submitted. A scheduler runs it
// later, in any order that streams, events and the default stream allow; see
// [Mode]. A copy or a kernel reads memory when it runs, so a program that
// forgets to wait reads old bytes. With a seed and calls from one goroutine, a
// run repeats exactly.
//
// # Memory
//
// Device memory has addresses that no host memory has. Each access of a copy or
// kernel is checked for the device that makes it: an invalid one fails as on a
// device, when the work runs, and the context is lost. Bytes that nobody wrote
// have a pattern, and reading them, by a copy to the host or by a kernel, is a
// [Report], as is everything else that a device would not notice.
//
// # Ownership and concurrency
//
// A Machine owns its memory, which Go's collector or [Machine.Exit] frees. Its
// methods may be called from any goroutine; a lock makes them run one after the
// other. Functions that [RegisterHostFunc] registered run on goroutines of
// their own.
//
// # Departures from the driver
//
// There is one stream of [driver.PerThreadStream] for each context, not for
// each thread. Graphs of captured streams cannot allocate memory. Memory that
// was imported counts for the device of the machine that created it only. Two
// operations never run at the same moment: a conflict shows as their order, not
// as a mixture of their bytes.
package fake
