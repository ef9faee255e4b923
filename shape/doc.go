// Package shape represents tensor shapes: interned, immutable, compared by
// pointer.
//
//	image := shape.MustOf(1, 3, 224, 224)
//	tokens, err := shape.FromDims(shape.Sym("batch"), shape.Sym("seq"), shape.N(96))
//	sum, err := shape.Broadcast(tokens, shape.MustOf(96))
//	fmt.Println(sum == tokens, image.NumElements()) // true 150528
//
// A dimension ([Dim]) is a size, a symbol ("batch") or unknown. A [Shape] is a
// list of dimensions. Equal shapes are one *Shape in all goroutines, so shapes
// are compared with ==, and properties of the dimensions (element count,
// row-major strides and layout) are computed once. A [Layout] adds strides and
// flags and is interned in the same way: layouts that differ in a stride or a
// flag are different pointers.
//
// # The trie
//
// A trie finds shapes by their rank, then by their dimensions as a path. Common
// prefixes are stored once, and a path ends where few shapes share it. Finding
// an existing shape takes no lock, allocates nothing and writes no memory that
// other goroutines read.
//
// # Memory
//
// Shapes live on the Go heap. A *Shape is valid while it is reachable and needs
// no release. An unreachable shape is removed from the trie, with its path, a
// few collections later. If there are at most a few hundred shapes, all
// unreachable ones are removed. If there are more, up to one entry in eight may
// be unreachable and not yet removed, which is estimated from a sample. [Clear]
// removes all of them at once, [SetLimit] bounds the number of shapes in use,
// and [Stats] counts them.
//
// # Concurrency
//
// Every function and method may be called from any goroutine.
package shape
