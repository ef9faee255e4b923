//go:build !race

package invariant

// Race tells whether the race detector is built in.
const Race = false
