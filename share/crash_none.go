//go:build !invariants || !unix

package share

// crashAt does nothing without the build tag invariants.
func crashAt(int) {}

// mutated reports whether a test has broken the protocol on purpose; without
// the build tag invariants it returns false.
func mutated(string) bool { return false }
