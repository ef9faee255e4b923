package cpu

func hasRDTSCP() bool

// readAux returns what the system keeps in the register that is read along
// with the clock.
func readAux() uint32

var placed = hasRDTSCP()

// Place returns the number of the processor that the caller runs on at the
// moment, or -1 where that cannot be told in a few nanoseconds. Linux keeps
// it where programs can read it.
func Place() int {
	if !placed {
		return -1
	}
	return int(readAux() & 0xfff)
}
