package memory

import "fmt"

// Purpose is the kind of use of a buffer. Every allocation states one, and the
// statistics are kept by it.
type Purpose uint8

// The purposes.
const (
	Weights     Purpose = iota // constants of a model, mapped or read
	Activations                // results of operations and the arenas that hold them
	Scratch                    // temporary bytes of kernels
	IO                         // tensors that callers make: inputs and outputs
	Exports                    // copies and descriptors made for other libraries
	Shared                     // arenas that other processes map
	numPurposes = iota

	noPurpose = Purpose(numPurposes) // imported bytes, which are not in the statistics
)

var purposeNames = [...]string{"weights", "activations", "scratch", "io", "exports", "shared", "imported"}

// Purposes lists all purposes in the order in which reports show them.
func Purposes() []Purpose { return []Purpose{Weights, Activations, Scratch, IO, Exports, Shared} }

// String returns the name in lower case.
func (p Purpose) String() string {
	if int(p) < len(purposeNames) {
		return purposeNames[p]
	}
	return fmt.Sprintf("purpose(%d)", uint8(p))
}
