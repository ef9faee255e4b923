// Package memory owns the bytes of tensors: it allocates buffers outside the Go
// heap, counts their holders, bounds their total size and keeps statistics of
// it.
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
// A [Buffer] counts its holders; its bytes are freed when the last one releases
// it. [Alloc] returns the first hold to its caller, [Buffer.Retain] adds one,
// [Buffer.Release] drops one. A [Handle] is a holder with an end that others
// can observe, the base of a tensor: its uses are counted, it can be locked for
// writing, and after its end every call on it returns an error and never
// accesses bytes of another tensor.
//
// Only an exclusive holder may write the bytes: the buffer has one holder and
// no flag (imported, read-only, mapped from a file), and the handle no other
// use. [Handle.Lock] is the only way to obtain this right.
//
// Three functions make buffers of bytes that others allocated: [Import] for
// bytes that another allocator keeps, [MapFile] for the pages of a file, and
// [Own] for memory that the caller obtained from the system and that counts
// like memory of this package. [Buffer.Freeze] makes writable bytes constant.
// An [Arena] is a bounded source of buffers in classes of powers of two, for a
// computation that allocates the same sizes again and again.
//
// # Allocation
//
// Buffers are zeroed, unless the caller will write every byte and requests it
// ([Process]), and aligned to [Alignment]. Buffers of up to 32 KiB are slots of
// shared chunks. Larger ones are mappings of their own. From 2 MiB on these
// have huge pages and are returned to the system as soon as they are free; the
// last few smaller ones, 4 MiB together, are kept for a quarter of a second for
// the next allocation of about their size, and [Trim] returns them at once.
//
// A chunk of small buffers has 64 KiB, or 32 slots if that is more. It exists
// while a buffer is in it. One empty chunk of each of the 32 slot sizes, 7.1
// MiB together, is kept in the same way; any other is returned at once. The
// records of handles are never returned: 64 bytes, in slabs of 64 KiB, for the
// largest number of handles that were alive at once. A stale handle, or foreign
// code that ends a use after its tensor, may read its record at any time and
// must find the generation there. New handles reuse the records of old ones.
// After Trim in a process without buffers, Figures.System is the bytes of these
// slabs.
//
// # Figures
//
// Off-heap bytes are not part of GOMEMLIMIT or of runtime.MemStats. [Stats]
// returns them, current and peak, by [Purpose]; [Var] publishes them through
// expvar; [SetLimit] bounds them; [WriteProfile] lists the places in the
// program that allocated them. They count the requested bytes; Figures.System
// is the memory obtained from the system for them, and Figures.Cached the part
// of it that is kept in mappings.
//
// # Safety net
//
// A buffer that becomes unreachable while it is held was dropped without
// Release. The collector finds it, [OnLeak] and the statistics report it, and
// its bytes are freed unless they may still be read. The safety net is for
// finding mistakes; the time at which it acts is undefined.
//
// # Builds
//
// In race builds all memory comes from the Go heap, because the race detector
// sees no other. With the tag `invariants`, freed bytes are poisoned, writes
// behind a buffer's end are found when it is freed, and every report names the
// place of the allocation.
//
// # Concurrency
//
// Everything in this package may be called from any goroutine. The last release
// must not happen at the same time as an access by a goroutine that holds
// nothing.
package memory
