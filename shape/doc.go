// Package shape holds tensor shapes: interned, immutable, compared by pointer.
//
//	image := shape.MustOf(1, 3, 224, 224)
//	tokens, err := shape.FromDims(shape.Sym("batch"), shape.Sym("seq"), shape.N(96))
//	sum, err := shape.Broadcast(tokens, shape.MustOf(96))
//	fmt.Println(sum == tokens, image.NumElements()) // true 150528
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
// stored once, and a path ends as soon as few shapes share it. An existing shape
// is found without a lock, without an allocation and without a write to memory
// that others read.
//
// # Memory
//
// Shapes live on the Go heap. A *Shape is valid while it is reachable, and needs
// no release. A shape that nothing reaches any more leaves the trie, with its
// path, some collections later. Of a few shapes all that are dropped leave; of
// more than a few hundred, up to one entry in eight may be dropped and still
// there, which a sample checks. [Clear] removes them all at once, [SetLimit]
// bounds the number of shapes in use, [Stats] counts them.
//
// # Concurrency
//
// Every function and method may be called from any goroutine.
package shape
