package invariant

import "fmt"

// Failf panics with a message that says that the runtime itself is wrong.
func Failf(format string, args ...any) {
	panic("BUG: " + fmt.Sprintf(format, args...))
}

// Poison overwrites freed bytes, so that a read through a stale slice sees a
// pattern no float or index survives (as float32 it is about -1e8) and not the
// old values.
func Poison(b []byte) { fill(b, PoisonByte) }

// PoisonByte is the byte that Poison writes.
const PoisonByte = 0xCC

// canaryByte fills the bytes behind an allocation. It differs from PoisonByte
// so that a report tells the two apart.
const canaryByte = 0xA5

// SetCanary fills the bytes behind an allocation.
func SetCanary(b []byte) { fill(b, canaryByte) }

// CheckCanary returns the index of the first byte that is no longer the canary,
// or -1.
func CheckCanary(b []byte) int {
	for i, c := range b {
		if c != canaryByte {
			return i
		}
	}
	return -1
}

func fill(b []byte, c byte) {
	for i := range b {
		b[i] = c
	}
}
