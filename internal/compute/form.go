package compute

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/machine"
	"github.com/tenure-go/tenure/op"
)

// FormsVersion grows when Pack makes something else under the same name, on any
// processor: what other programs have packed cannot be read by these kernels
// then.
const FormsVersion = 3

// Form is how a task reads a constant operand: in bytes that are made from the
// operand's once and read by every run, instead of the operand's own.
type Form struct {
	// Name says what Pack makes. Equal names over equal bytes are equal
	// results, so that tasks of other shapes share them.
	Name  string
	Bytes int

	// Measure returns Bytes where they depend on the operand's bytes; it is nil
	// where they do not.
	Measure func(src []byte) int

	// Pack fills dst, Bytes long and zeroed, from the operand's bytes. Unpack
	// makes the operand's bytes again; it is nil where nothing can.
	Pack, Unpack func(dst, src []byte)
}

// Constants are the operands of a call that have the same bytes in every run:
// none if Is is nil.
type Constants struct {
	Is         func(arg int) bool
	Compressed bool // the task may want them compressed, without loss
	Direct     bool // convolutions do not transform them

	// Fixed says which axes of operands are not expected to have other sizes.
	// Forms may follow from their sizes; nil for none.
	Fixed Fixed
}

// A packer makes the kernel of a call some of whose operands are constants. The
// first Refill may set Task.Forms for those; they are decided by the types of
// the constants, or the kernel's Refill returns ErrRebind where other sizes
// change them. The task's variant will be v.
type packer func(v *kernel.Variant, c *op.Call, constants Constants) (Kernel, error)

// packers are the binders of operators that read constants in a form of their
// own.
var packers = map[*op.Def]packer{}

func registerPackers(family map[string]packer) bool {
	for name, pack := range family {
		def := builtin(name)
		if packers[def] != nil {
			panic("BUG: compute: operator " + name + " is bound to two packers")
		}
		packers[def] = pack
	}
	return true
}

// BindConstants binds a call as [Bind] does. The task may want operands that
// are constants packed: it says so in Task.Forms.
func BindConstants(c *op.Call, constants Constants) (*Task, error) {
	return bindFor(machine.Best(), c, constants)
}

// setForm makes the task read an operand in a form.
func (t *Task) setForm(arg int, f Form) {
	if t.Forms == nil {
		t.Forms = map[int]Form{}
	}
	t.Forms[arg] = f
}
