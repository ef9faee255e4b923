package ptx

import "fmt"

// Param is a parameter of a kernel. Offset is its place in the bytes of all
// parameters.
type Param struct {
	Name   string
	Size   int
	Align  int
	Offset int
}

// Memory is the global memory of a launch.
type Memory interface {
	// Bytes returns the n bytes at a global address for one access, or an error
	// that says why the address is invalid. write says that they will be
	// written. The interpreter does not keep the slice.
	Bytes(address uint64, n int, write bool) ([]byte, error)
}

// Tracker is a [Memory] that knows which bytes were written. With one, a load
// of bytes that were not is a [Finding].
type Tracker interface {
	Written(address uint64, n int) bool
	MarkWritten(address uint64, n int)
}

// Launch describes a run of a kernel.
type Launch struct {
	Grid, Block [3]uint32
	Shared      uint32   // bytes of dynamic shared memory
	Args        [][]byte // one for each parameter, in order, of its size
	Memory      Memory
	// Seed chooses the order of blocks and threads. With 0, blocks run one
	// after the other and a thread runs until it has to wait, which is the
	// fastest.
	Seed uint64
	// Races makes the run look for accesses that no barrier orders.
	Races bool
	// Steps is the number of instructions, of all threads together, after which
	// the run fails; 0 is 1<<30.
	Steps uint64
}

// Kind is a kind of finding.
type Kind uint8

// The kinds of findings.
const (
	RaceInBlock   Kind = iota + 1 // two threads of a block, without a barrier between
	RaceOfBlocks                  // two blocks
	UnwrittenRead                 // a load of bytes that nobody wrote
)

// String names the kind.
func (k Kind) String() string {
	switch k {
	case RaceInBlock:
		return "race in a block"
	case RaceOfBlocks:
		return "race of blocks"
	case UnwrittenRead:
		return "unwritten read"
	}
	return fmt.Sprintf("ptx.Kind(%d)", uint8(k))
}

// Finding is a mistake after which the run goes on. Each pair of instructions
// is reported once.
type Finding struct {
	Kind Kind
	Fault
}

// Error names the kernel, the instruction and the thread.
func (f *Finding) Error() string { return f.Fault.Error() }

// Report is what a run found.
type Report struct {
	Steps    uint64 // instructions, of all threads together
	Findings []Finding
}

// Err returns the first finding as an error, nil if there is none.
func (r *Report) Err() error {
	if r == nil || len(r.Findings) == 0 {
		return nil
	}
	return &r.Findings[0]
}

// Fault is why a launch ended or was refused. Line is 0 where the fault is not
// that of an instruction.
type Fault struct {
	Kernel      string
	Line        int
	Instruction string
	Block       [3]uint32
	Thread      [3]uint32
	Reason      string
}

// Error names the kernel and, where there is one, the instruction and the
// thread.
func (f *Fault) Error() string {
	if f.Line == 0 {
		return fmt.Sprintf("ptx.Run: kernel %s: %s", f.Kernel, f.Reason)
	}
	return fmt.Sprintf("ptx.Run: kernel %s, line %d, %q: block %v, thread %v: %s", f.Kernel, f.Line, f.Instruction, f.Block, f.Thread, f.Reason)
}
