// Package wholefile writes files that exist completely or not at all.
//
//	err := wholefile.Write("answer.npy", func(w io.Writer) error {
//		return npy.Write(w, x)
//	})
//
// A previous file of the name stays until the new one is complete, so it
// survives an interrupt or a full disk, and a process that has the old file
// open or mapped keeps it. Nothing is flushed to the disk, so a loss of power
// may lose the new file.
//
// # Memory and concurrency
//
// The package holds no memory between calls. Calls may run side by side, also
// for one name: the last one to finish stays.
package wholefile
