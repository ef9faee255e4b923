package compute

import (
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/elementwise"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// The functions of the kernels by their names.
var (
	unaryNamed     = named(kernel.UnaryOps())
	binaryNamed    = named(kernel.BinaryOps())
	predicateNamed = named(kernel.PredicateOps())
)

func named[F fmt.Stringer](list []F) map[string]F {
	functions := make(map[string]F, len(list))
	for _, f := range list {
		functions[f.String()] = f
	}
	return functions
}

var _ = register(functionBinders(elementwise.Functions(), elementwise.Binaries()))

// functionBinders returns the binders of the operators that follow from rows.
func functionBinders(functions []*elementwise.Function, binaries []*elementwise.Binary) map[string]binder {
	binders := map[string]binder{}
	for _, f := range functions {
		if f.ONNX != "" {
			binders[f.Name] = functionBinder(f)
			registerApart(elementwiseApart, f.Name)
			registerWalkers(rowsFollow, f.Name)
		}
	}
	for _, f := range binaries {
		if f.ONNX != "" {
			binders[f.Name] = binaryFunctionBinder(f)
			registerApart(elementwiseApart, f.Name)
			registerWalkers(walkerOf(f), f.Name)
		}
	}
	return binders
}

// functionBinder binds a function of one operand to the kernel of its name. On
// integers that the kernel does not take it is computed in f64.
func functionBinder(f *elementwise.Function) binder {
	wantKernel(unaryNamed, f.Name)
	own, atDefaults := unaryNamed[f.Name], unaryNamed[f.AtDefaults]
	inFloats := f.Types&elementwise.Integers != 0 && !onIntegers(own)
	return func(c *op.Call) (Kernel, error) {
		if inFloats && c.In[0].DType.IsInt() {
			return converted(c, []dtype.DType{dtype.F64}, []dtype.DType{dtype.F64})
		}
		g, params := f.Resolve(c.Float)
		u := unary{f: own, p: params}
		if g != f {
			u.f = atDefaults
		}
		return unaryOn(c, u)
	}
}

// binaryFunctionBinder binds a function of two operands of one type that
// broadcast. A function that has a formula is computed in f64 on integers.
func binaryFunctionBinder(f *elementwise.Binary) binder {
	if f.Predicate {
		wantKernel(predicateNamed, f.Name)
		return predicateOp(predicateNamed[f.Name])
	}
	wantKernel(binaryNamed, f.Name)
	own := binaryNamed[f.Name]
	if f.Formula == nil {
		return binaryOp(own)
	}
	return func(c *op.Call) (Kernel, error) {
		if c.In[0].DType.IsInt() {
			return converted(c, []dtype.DType{dtype.F64, dtype.F64}, []dtype.DType{dtype.F64})
		}
		return binaryOn(c, own)
	}
}

// walkerOf returns which calls of a function of two operands are computed in
// the type of these.
func walkerOf(f *elementwise.Binary) func(s *op.Sig, in, out []*shape.Layout) bool {
	switch {
	case f.Predicate:
		return anyLayout
	case f.Formula == nil:
		return oneType
	}
	return oneFloat
}

func wantKernel[F any](functions map[string]F, name string) {
	if _, ok := functions[name]; !ok {
		panic("BUG: compute: function " + name + " has no kernel: go generate ./internal/kernel/gen")
	}
}
