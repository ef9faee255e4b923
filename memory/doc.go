// Package memory owns the bytes of tensors: it allocates buffers outside the Go heap, counts their holders, bounds them, and
// keeps figures of what they take.
//
//	b, err := memory.Alloc(1<<20, memory.Scratch)
//	if err != nil {
//		return err
//	}
//	defer b.Release()
//	clear(b.Bytes())
//
// # Ownership
//
// A [Buffer] counts its holders; its bytes are freed when the last one releases it. [Alloc] returns the first hold to its
// caller, [Buffer.Retain] adds one, [Buffer.Release] drops one. A [Handle] is a holder with a life of its own, the base of a
// tensor: uses of it are counted, it can be locked for writing, and after its end every call on it is an error, never access to
// somebody else's bytes.
//
// Bytes may be written only by a holder that is exclusive: the buffer has one holder and no flag (imported, read-only,
// mapped from a file), and the handle no other use. [Handle.Lock] is the only way to that right.
//
// Bytes that others allocated enter by three functions: [Import] for those that stay theirs, [MapFile] for the pages of a file,
// and [Own] for memory that the caller took from the system and that counts like ours. [Buffer.Freeze] makes bytes constant that
// were writable so far. An [Arena] is a bounded source of buffers in classes of powers of two, for a computation that allocates
// the same sizes again and again.
//
// # Allocation
//
// Buffers are zeroed, unless every byte is written anyway and the caller says so ([Process]), and aligned to [Alignment]. Buffers of
// up to 32 KiB are slots of shared chunks. Larger ones are mappings of their own. From 2 MiB on these have huge pages and are returned
// to the system as soon as they are free; the last few smaller ones, 4 MiB together, are kept for a quarter of a second for the next
// allocation of about their size, and [Trim] returns them at once.
//
// A chunk of small buffers has 64 KiB, or 32 slots if that is more. It exists while a buffer is in it. One empty chunk of each of the
// 32 slot sizes, 7.1 MiB together, is kept in the same way; any other is returned at once. What is never returned are the records of
// handles: 64 bytes for each handle, in slabs of 64 KiB, of the most that were ever alive at once. A stale handle, or foreign code that
// ends a use after its tensor, may read its record at any time and must find the generation there. New handles use the records of old
// ones. After Trim in a process without buffers, Figures.System is the bytes of those slabs.
//
// # Figures
//
// Off-heap bytes are not part of GOMEMLIMIT or of runtime.MemStats. [Stats] returns them, current and peak, by [Purpose]; [Var]
// publishes them through expvar; [SetLimit] bounds them; [WriteProfile] says which places of the program hold them. They count
// the bytes that were asked for; Figures.System says what was taken from the system for them, and Figures.Cached how much of that
// is kept as mappings.
//
// # Safety net
//
// A buffer that becomes unreachable while it is held was dropped without Release. The collector finds it, [OnLeak] and the
// figures report it, and its bytes are freed unless somebody may still read them. The net is for finding mistakes: when it
// acts is not defined.
//
// # Builds
//
// In race builds all memory comes from the Go heap, because the race detector sees no other. With the tag `invariants` freed
// bytes are poisoned, bytes written behind a buffer's end are found when it is freed, and every report names the place that
// allocated.
//
// # Concurrency
//
// Everything in this package may be called from any goroutine. A release by the last holder must not happen at the same time as
// an access by somebody who holds nothing.
package memory
