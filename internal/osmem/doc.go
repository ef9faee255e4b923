// Package osmem is the only package that asks the operating system for memory: anonymous and file mappings, advice about
// their pages, and how many of them are resident.
//
// # Ownership
//
// [Map] and [MapFile] return a mapping that the caller owns until it passes that very slice (same start, same capacity) to
// [Unmap]. No finalizer and no count stands behind it: after Unmap every slice of it dangles. Package memory builds the
// counting on top.
//
// # Platforms
//
// One file per operating system. Every platform has Map, Unmap and MapFile. Advice ([AdviseHuge], [DontNeed]) is exactly
// that: a platform that has no such call returns an error that matches [errors.ErrUnsupported], and the caller may go on.
// [Resident] exists on Linux only.
//
// # Concurrency
//
// All functions may be called from any goroutine; Unmap of a mapping that somebody still reads is the caller's fault and
// ends the process.
//
//	m, err := osmem.Map(1 << 20)
//	if err != nil {
//		return err
//	}
//	defer osmem.Unmap(m)
package osmem
