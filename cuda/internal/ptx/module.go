package ptx

import (
	"fmt"
	"slices"
)

// Module is a parsed text.
type Module struct {
	kernels map[string]*Kernel
}

// Kernel is a kernel of a module.
//
// A thread has slots of 64 bits. Registers are slots, and so are literals,
// special registers and the addresses of variables, so that every operand of an
// instruction is the number of a slot. A register holds its value in its lower
// bits; the others are 0.
type Kernel struct {
	name       string
	params     []Param
	paramBytes int
	shared     int    // bytes of static shared memory
	dynamic    int    // where dynamic shared memory starts
	maxThreads int    // of a block
	required   [3]int // the block that .reqntid wants, else zeros
	code       []inst
	places     []place   // of each instruction
	initial    []uint64  // the slots of a thread that starts
	specials   []special // slots that depend on the thread
}

// inst is a decoded instruction. Fields that an instruction does not use are
// zero.
type inst struct {
	run        func(t *thread, in *inst)
	one        func(a uint64) uint64
	two        func(a, b uint64) uint64
	three      func(a, b, c uint64) uint64
	test       func(a, b uint64) bool
	d, a, b, c int32 // slots: result and operands
	d2, e      int32 // a second result, a fourth operand
	vec        [4]int32
	guard      int32 // the slot of the predicate
	guarded    bool
	negated    bool
	flag       bool // differs by instruction
	n          uint8
	elem       typ // of memory
	reg        uint8
	space      space
	x          uint64 // an offset, a target, or the number of the instruction
	at         int32  // its own number
}

// place is where an instruction stands in the text.
type place struct {
	line int
	text string
}

// special is a slot that a thread fills when it starts.
type special struct {
	slot int32
	name string
}

// Kernel returns the kernel of a name.
func (m *Module) Kernel(name string) (*Kernel, error) {
	if k := m.kernels[name]; k != nil {
		return k, nil
	}
	return nil, fmt.Errorf("ptx.Kernel: got %q, want one of %q", name, m.Kernels())
}

// Kernels returns the names of the kernels, sorted.
func (m *Module) Kernels() []string {
	names := make([]string, 0, len(m.kernels))
	for n := range m.kernels {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Name returns the name of the kernel.
func (k *Kernel) Name() string { return k.name }

// Params returns the parameters, in order.
func (k *Kernel) Params() []Param { return slices.Clone(k.params) }

// SharedBytes returns the bytes of static shared memory.
func (k *Kernel) SharedBytes() int { return k.shared }

// MaxThreads returns the most threads that a block may have.
func (k *Kernel) MaxThreads() int { return k.maxThreads }
