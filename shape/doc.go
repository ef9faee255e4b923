// Package shape holds tensor shapes: interned, immutable, compared by pointer.
//
// A dimension ([Dim]) is a size, a symbol ("batch") or unknown. A [Shape] is a
// list of dimensions; equal shapes are one *Shape from any goroutine, so a
// comparison is ==, and facts that follow from the dimensions (element count,
// row-major strides and layout) are computed once. A [Layout] adds strides and
// flags and is interned the same way: a difference in a stride alone is
// another pointer.
//
// # The trie
//
// Shapes are found by rank, then by their dimensions as a path; prefixes are
// stored once, and a path ends as soon as few shapes share it. A shape that is
// there is found without a lock, without an allocation and without a write to
// memory that others read.
//
// # Memory
//
// Shapes live on the Go heap. A *Shape is valid while Go reaches it, nobody
// releases one, and a shape that nothing reaches any more leaves the trie,
// with its path, some collections later. While there are few, all that are
// dropped leave; of more than a few hundred one entry in eight may be such a
// one, which a sample watches over. [Clear] takes them all out at once, [SetLimit] bounds
// the number of shapes in use, [Stats] counts them.
//
// # Concurrency
//
// Every function and method may be called from any goroutine.
package shape
