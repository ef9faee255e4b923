// Package osmem is the only package that requests memory from the operating
// system: anonymous and file mappings, memory that other processes can map for
// reading, advice about pages, and the number of resident pages.
//
// # Ownership
//
// [Map] and [MapFile] return a mapping that the caller owns until it passes
// exactly that slice (same start, same capacity) to [Unmap]. There is no
// finalizer and no count: after Unmap every slice of it dangles. Package memory
// adds the counting.
//
// # Shared memory
//
// [NewShared] makes a [Shared]: a memfd whose pages all exist, sealed so that
// no process can shrink it or map it for writing again. Its owner writes
// through the one mapping that was made before; other processes receive the
// descriptor over a socket and call [MapShared], which checks everything that
// makes their reads safe: a read of memory that was truncated would kill the
// reader by a signal, and missing pages would be charged to it.
//
//	owner:  NewShared -> write Bytes -> send Fd -> ... -> (Finish) -> Close
//	reader: receive the descriptor -> MapShared -> close the descriptor -> read -> Unmap
//
// The memory is freed with its last mapping and descriptor in any process,
// closed or ended. A forked child has neither the mappings nor, after exec, the
// descriptor.
//
// A process that exceeds the memory limit of a control group is killed without
// an error. So NewShared first reads how much memory the machine and every
// limit leave, and reserves some for page tables; if it is too little, it fails
// with an error that matches [ErrNoMemory] and names the limit. Another process
// may take the same memory at the same time.
//
// # Platforms
//
// There is one file per operating system. Every platform has Map, Unmap and
// MapFile. Advice ([AdviseHuge], [DontNeed]) is optional: a platform without
// the call returns an error that matches [errors.ErrUnsupported], and the
// caller may ignore it. [Resident], [NewShared] and [MapShared] exist only on
// Linux, and return such an error elsewhere.
//
// # Concurrency
//
// All functions may be called from any goroutine. Unmap of a mapping that is
// still being read ends the process.
//
//	m, err := osmem.Map(1 << 20)
//	if err != nil {
//		return err
//	}
//	defer osmem.Unmap(m)
package osmem
