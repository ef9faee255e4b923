// Package shape holds tensor shapes: interned, immutable, compared by pointer.
//
// A dimension ([Dim]) is a size, a symbol ("batch") or unknown. A [Shape] is a
// list of dimensions; equal shapes are one *Shape from any goroutine, so a
// comparison is ==, and facts that follow from the dimensions (element count,
// row-major strides) are computed once. A [Layout] adds strides and is
// interned the same way.
//
// # Memory
//
// Shapes live on the Go heap. The interner holds them weakly: a *Shape is
// valid while Go reaches it, nobody releases one, and a shape that nothing
// reaches any more leaves the table.
//
// # Concurrency
//
// Every function and method may be called from any goroutine.
package shape
