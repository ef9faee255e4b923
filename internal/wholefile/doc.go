// Package wholefile writes files that are there as a whole or not at all.
//
//	err := wholefile.Write("answer.npy", func(w io.Writer) error {
//		return npy.Write(w, x)
//	})
//
// What was under the name stays until the new file is complete, so an interrupt or a full disk costs nothing, and whoever has the
// old file open or mapped keeps it. A loss of power is no part of the promise: nothing is flushed to the disk.
//
// # Memory and concurrency
//
// The package holds no memory between calls. Calls may run side by side, also for one name: the last one to finish stays.
package wholefile
