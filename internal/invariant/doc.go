// Package invariant holds the checks of the runtime that cost nothing when they
// are off.
//
// The build tag `invariants` turns them on: freed bytes are poisoned,
// allocations carry a canary behind their last byte, and every buffer and
// handle remembers the call stack that made it. Without the tag [Enabled] is a
// constant false, so a block
//
//	if invariant.Enabled && cond {
//		invariant.Failf("memory: ...")
//	}
//
// is removed by the compiler. A check must never change the program's
// behaviour, only report a fault: production paths are the tested paths.
//
// [Race] tells whether the race detector is built in; then tensor bytes come
// from the Go heap, because the detector sees no other memory.
//
// The package owns no memory. Its functions may be called from any goroutine.
package invariant
