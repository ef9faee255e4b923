//go:build !invariants || !unix

package share

// crashAt does nothing outside of the invariant build.
func crashAt(int) {}

// mutated reports whether a test has broken the protocol on purpose: never, outside of the invariant build.
func mutated(string) bool { return false }
