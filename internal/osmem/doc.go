// Package osmem is the only package that asks the operating system for memory: anonymous and file mappings, memory that
// other processes can map for reading, advice about pages, and how many of them are resident.
//
// # Ownership
//
// [Map] and [MapFile] return a mapping that the caller owns until it passes that very slice (same start, same capacity) to
// [Unmap]. No finalizer and no count stands behind it: after Unmap every slice of it dangles. Package memory builds the
// counting on top.
//
// # Shared memory
//
// [NewShared] makes a [Shared]: a memfd of which every page is there, sealed so that nobody can shrink it or map it for
// writing again. Its owner writes through the one mapping that was made before; others get the descriptor over a socket and
// call [MapShared]. What makes their reads safe is checked by them, not promised by the owner: memory that could shrink would
// end a reader by a signal, and pages that are not there yet would be charged to it.
//
//	owner:  NewShared -> write Bytes -> send Fd -> ... -> (Finish) -> Close
//	reader: receive the descriptor -> MapShared -> close the descriptor -> read -> Unmap
//
// The memory ends with its last mapping and descriptor, whoever has it; closing and dying are the same. A forked child has
// neither the mappings nor, after exec, the descriptor.
//
// A process that goes over the memory limit of a control group is killed and gets no error. So NewShared first asks what is
// left of the machine and of every limit, and leaves room for page tables; it fails with an error that matches [ErrNoMemory] and names the limit. Others
// may take the same room at the same moment: the test is as good as that.
//
// # Platforms
//
// One file per operating system. Every platform has Map, Unmap and MapFile. Advice ([AdviseHuge], [DontNeed]) is exactly
// that: a platform that has no such call returns an error that matches [errors.ErrUnsupported], and the caller may go on.
// [Resident], [NewShared] and [MapShared] exist on Linux only, and are errors that match it elsewhere.
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
