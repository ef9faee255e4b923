package compute

import (
	"slices"

	"github.com/tenure-go/tenure/op"
)

// Sizes and known values are read by the kernel's Refill.
type binder func(c *op.Call) (Kernel, error)

// binders has the binder of each operator that has a kernel here.
var binders = map[*op.Def]binder{}

// Register makes calls of the operator run the kernels that bind makes. It is
// called while packages are initialised, before any call is bound, and panics
// for an operator that has a binder.
func Register(def *op.Def, bind func(c *op.Call) (Kernel, error)) {
	if binders[def] != nil {
		panic("BUG: compute: operator " + def.Name + " is bound twice")
	}
	binders[def] = bind
}

// register registers the binders of built-in operators, by name; each family's
// file registers its own.
func register(family map[string]binder) bool {
	for name, bind := range family {
		Register(builtin(name), bind)
	}
	return true
}

// builtin returns the built-in operator of that name, which must exist.
func builtin(name string) *op.Def {
	def := op.Builtin().Lookup(name)
	if def == nil {
		panic("BUG: compute: operator " + name + " is not in the table")
	}
	return def
}

// Supported reports whether calls of the operator can be bound: it has a binder
// here, or it brings its own kernel.
func Supported(def *op.Def) bool { return binderOf(def) != nil }

func binderOf(def *op.Def) binder {
	if def.Kernel != nil {
		return bindUser
	}
	return binders[def] // nil for another operator under one of our names
}

// Bind binds a call to the kernel for its operand and result types. Types are
var valuesNeeded = map[string][]int{}

// needValues registers operands that decide how calls are bound, by operator.
func needValues(family map[string][]int) bool {
	for name, args := range family {
		valuesNeeded[builtin(name).Name] = args
	}
	return true
}

// NeedsValue reports whether calls of an operator are bound by the value of an
// operand, even if all types are static: they fail without it.
func NeedsValue(name string, arg int) bool { return slices.Contains(valuesNeeded[name], arg) }

// unknown is the error for an operand that decides geometry and whose value
// Bind cannot see.
