// Package rival contains alternatives to the trie of package shape: a sharded
// hash map with lock-free reads, unique.Make on a packed key, a map under a
// lock and a sync.Map. Only the benchmarks of package shape import it.
//
// Except for [Unique] they never free a shape, which makes them simpler and
// faster than a replacement of the trie could be. Every method may be called
// from any goroutine.
package rival
