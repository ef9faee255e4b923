// Package rival holds what one would use instead of the trie of package
// shape: a sharded hash map with lock-free reads, unique.Make on a packed key,
// and the plain answers, a map under a lock and sync.Map. Benchmarks of package
// shape hold the trie against them; nothing else imports this package.
//
// None of them gives a shape back but [Unique]: the others hold theirs for
// ever, which makes them simpler and quicker than anything that could take
// their place. Every method may be called from any goroutine.
package rival
