package kernels

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tenure-go/tenure/dtype"
)

// Threads is the number of threads of a block of every kernel. The order of
// sums depends on it.
const Threads = 256

// maxBlocks bounds the grid; threads go on with elements that are as many
// further as there are threads.
const maxBlocks = 1 << 16

// MaxRank is the largest rank of a layout.
const MaxRank = 8

// Family is what a kernel does.
type Family string

// The families.
const (
	FamilyFill    Family = "fill"
	FamilyCopy    Family = "copy"
	FamilyConvert Family = "convert"
	FamilyAdd     Family = "add"
	FamilySum     Family = "sum"
)

// Kernel describes one kernel. Its block has [Threads] threads, its grid
// [Blocks] blocks, and no dynamic shared memory.
type Kernel struct {
	Name   string
	Module string // the module whose text has it
	Family Family
	From   dtype.DType // of the operands that are read; Invalid where only their size counts
	To     dtype.DType // of the operand that is written
	Size   int         // bytes of an element that is written; 16 where the accesses are
	Params []Param
	Vector bool   // takes a contiguous operand at a multiple of 16, in accesses of 16 bytes
	Per    string // what Blocks counts: the parameter with the number of elements or rows
	body   string
}

// Param is a parameter. Addresses are of the first element; those of operands
// that are written have Writes, of those that are read Reads.
type Param struct {
	Name   string
	Size   int
	Align  int
	Reads  bool
	Writes bool
}

// Blocks returns the blocks of a grid for n elements or rows. 0 means that
// there is nothing to launch.
func (k *Kernel) Blocks(n uint64) uint32 {
	if k.Family == FamilySum { // a block for each row
		return uint32(min(n, maxBlocks))
	}
	if k.Vector {
		n = n/16 + n%16 // threads of the rest are more than there are units
	}
	return uint32(min((n+Threads-1)/Threads, maxBlocks))
}

// Table lists all kernels, by module and name.
func Table() []*Kernel { return slices.Clone(table()) }

var table = sync.OnceValue(func() []*Kernel {
	all := slices.Concat(fills(), copies(), conversions(), additions(), sums())
	slices.SortStableFunc(all, func(a, b *Kernel) int { return strings.Compare(a.Module, b.Module) })
	return all
})

// named returns the kernel of a name, nil if there is none.
var named = func(name string) *Kernel { return index()[name] }

var index = sync.OnceValue(func() map[string]*Kernel {
	m := map[string]*Kernel{}
	for _, k := range table() {
		m[k.Name] = k
	}
	return m
})

// Modules returns the names of the modules.
func Modules() []string {
	var names []string
	for _, k := range table() {
		if len(names) == 0 || names[len(names)-1] != k.Module {
			names = append(names, k.Module)
		}
	}
	return names
}

const header = ".version 7.0\n.target sm_70\n.address_size 64\n"

// Source returns the text of a module, or of all kernels for "".
func Source(module string) (string, error) {
	var b strings.Builder
	b.WriteString(header)
	found := module == ""
	for _, k := range table() {
		if module == "" || k.Module == module {
			found = true
			b.WriteString(k.text())
		}
	}
	if !found {
		return "", fmt.Errorf("kernels.Source: got %q, want one of %q", module, Modules())
	}
	return b.String(), nil
}

// text returns the text of the kernel.
func (k *Kernel) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n.visible .entry %s(", k.Name)
	for i, p := range k.Params {
		if i > 0 {
			b.WriteString(",")
		}
		if p.Size == 8 || p.Size == 4 {
			fmt.Fprintf(&b, "\n\t.param .b%d %s", 8*p.Size, p.Name)
		} else {
			fmt.Fprintf(&b, "\n\t.param .align %d .b8 %s[%d]", p.Align, p.Name, p.Size)
		}
	}
	fmt.Fprintf(&b, "\n)\n.reqntid %d, 1, 1\n{\n%s}\n", Threads, k.body)
	return b.String()
}

func address(name string, reads, writes bool) Param { return Param{name, 8, 8, reads, writes} }
func scalar(name string) Param                      { return Param{name, 8, 8, false, false} }

// layoutParam is the layout of some operands: the rank, the sizes, and the
// strides of each operand in bytes.
func layoutParam(operands int) Param {
	return Param{"layout", 8 + 8*MaxRank*(1+operands), 8, false, false}
}
