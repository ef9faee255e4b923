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
//   - There is one stream of [driver.PerThreadStream] for each context, not for
//     each thread.
//   - Two operations never run at the same moment: a conflict shows as their
//     order, not as a mixture of their bytes.
//   - Graphs cannot allocate memory, contain graphs, or wait for other
//     processes.
//   - Imported memory counts for the device of the machine that created it
//     only, and until that machine has let go of it.
//   - A context, its streams and its modules take no memory of the device.
//   - MemUnmap, MemFreeHost and IpcCloseMemHandle do not wait for work, which
//     then fails. They count as synchronising, because the driver may wait.
//   - A primary context that was released and retained again has a new handle.
//   - Work of a process that has ended stops at once, or with Exit after
//     Config.SlowExit; its records of interprocess events count as reached.
package fake
