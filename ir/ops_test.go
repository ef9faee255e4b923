package ir_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// testOps is a small table with one operator per alias rule, each with a
// kernel, so that the tests of this package stand on nothing but it.
var testOps = func() *op.Registry {
	r, err := (&op.Registry{}).With(slices.Concat(elementwiseOps, movementOps, otherOps)...)
	if err != nil {
		panic(err)
	}
	return r
}()

var elementwiseOps = []*op.Def{
	unary("neg", func(x float32) float32 { return -x }),
	unary("relu", func(x float32) float32 { return max(x, 0) }),
	unary("exp", func(x float32) float32 { return float32(math.Exp(float64(x))) }),
	unary("log", func(x float32) float32 { return float32(math.Log(float64(x))) }),
	unary("add_one", func(x float32) float32 { return x + 1 }),
	binary_("add", op.SameAs(0, 1), func(a, b float32) float32 { return a + b }),
	binary_("sub", op.SameAs(0, 1), func(a, b float32) float32 { return a - b }),
	binary_("accumulate", op.Aliases(op.Rule{Arg: 0, Kind: op.Accumulate}), func(a, b float32) float32 { return a + b }),
}

func unary(name string, f func(float32) float32) *op.Def {
	return &op.Def{Name: name, MinArgs: 1, MaxArgs: 1, Infer: sameAsFirst, Alias: op.SameAs(0), Kernel: func(c *op.Call) error {
		for i := range count(c.Out[0]) {
			setF32(c.Out[0], i, f(getF32(c.In[0], i)))
		}
		return nil
	}}
}

// binary_ broadcasts operands whose elements repeat, which is enough here.
func binary_(name string, alias op.Alias, f func(a, b float32) float32) *op.Def {
	infer := func(s *op.Sig) error {
		if s.Args[0].DType != dtype.F32 || s.Args[1].DType != dtype.F32 {
			return fmt.Errorf("got %s and %s, want f32", s.Args[0], s.Args[1])
		}
		if s.Args[0].Shape == nil || s.Args[1].Shape == nil {
			s.Results[0] = op.Type{DType: dtype.F32}
			return nil
		}
		out, err := shape.Broadcast(s.Args[0].Shape, s.Args[1].Shape)
		s.Results[0] = op.Type{DType: dtype.F32, Shape: out}
		return err
	}
	return &op.Def{Name: name, MinArgs: 2, MaxArgs: 2, Infer: infer, Alias: alias, Kernel: func(c *op.Call) error {
		for i := range count(c.Out[0]) {
			setF32(c.Out[0], i, f(getF32(c.In[0], i%count(c.In[0])), getF32(c.In[1], i%count(c.In[1]))))
		}
		return nil
	}}
}

var movementOps = []*op.Def{
	{Name: "copy", MinArgs: 1, MaxArgs: 1, Infer: sameAsFirst, Alias: op.Fresh(), Kernel: copyFrom(0)},
	{Name: "flat", MinArgs: 1, MaxArgs: 1, Alias: op.ViewOf(0), Kernel: copyFrom(0), Infer: func(s *op.Sig) error {
		dim := shape.Unknown
		if s.Args[0].IsStatic() {
			dim = shape.N(s.Args[0].Shape.NumElements())
		}
		return set(s, 0, s.Args[0].DType, dim)
	}},
	{Name: "rows", MinArgs: 1, MaxArgs: 1, Attrs: fromTo, Infer: inferRows, Kernel: func(c *op.Call) error {
		copy(c.Out[0].Data, c.In[0].Data[rowBytes(c.In[0].Type)*int(c.Int("from")):])
		return nil
	}, Alias: op.Aliases(op.Rule{Kind: op.View, Offset: func(s *op.Sig, _ int) (int, bool) {
		return int(s.Int("from")) * rowBytes(s.Args[0]), true
	}})},
	// dyn_rows is rows with bounds that are operands.
	{Name: "dyn_rows", MinArgs: 2, MaxArgs: 2, Infer: inferDynRows, Kernel: func(c *op.Call) error {
		copy(c.Out[0].Data, c.In[0].Data[rowBytes(c.In[0].Type)*int(int64At(c.In[1].Data, 0)):])
		return nil
	}, Alias: op.Aliases(op.Rule{Kind: op.View, Offset: func(s *op.Sig, _ int) (int, bool) {
		b, ok := s.Known(1)
		if !ok {
			return 0, false
		}
		return int(int64At(b, 0)) * rowBytes(s.Args[0]), true
	}})},
	{Name: "halves", MinArgs: 1, MaxArgs: 1, MinResults: 2, MaxResults: 2, Infer: func(s *op.Sig) error {
		if !s.Args[0].IsStatic() || s.Args[0].Shape.Rank() != 1 || s.Args[0].Shape.Size(0)%2 != 0 {
			return fmt.Errorf("got %s, want one even dimension", s.Args[0])
		}
		half := shape.N(s.Args[0].Shape.Size(0) / 2)
		return firstError(set(s, 0, s.Args[0].DType, half), set(s, 1, s.Args[0].DType, half))
	}, Kernel: func(c *op.Call) error {
		half := len(c.In[0].Data) / 2
		copy(c.Out[0].Data, c.In[0].Data[:half])
		copy(c.Out[1].Data, c.In[0].Data[half:])
		return nil
	}, Alias: op.Aliases(op.Rule{Result: op.EveryResult, Kind: op.View, Offset: func(s *op.Sig, result int) (int, bool) {
		return result * byteLen(s.Args[0]) / 2, true
	}})},
	// every_other is a view with a stride: no contiguous part of its operand.
	{Name: "every_other", MinArgs: 1, MaxArgs: 1, Infer: func(s *op.Sig) error {
		if !s.Args[0].IsStatic() || s.Args[0].Shape.Rank() != 1 {
			return fmt.Errorf("got %s, want one dimension", s.Args[0])
		}
		return set(s, 0, s.Args[0].DType, shape.N((s.Args[0].Shape.Size(0)+1)/2))
	}, Kernel: func(c *op.Call) error {
		for i := range count(c.Out[0]) {
			setF32(c.Out[0], i, getF32(c.In[0], 2*i))
		}
		return nil
	}, Alias: op.Aliases(op.Rule{Kind: op.View, Offset: func(s *op.Sig, _ int) (int, bool) { return 0, false }})},
	{Name: "put", MinArgs: 2, MaxArgs: 2, Attrs: []op.AttrDef{{Name: "offset", Kind: op.Int, Default: int64(0)}}, Infer: inferPut,
		Alias: op.Aliases(op.Rule{Arg: 0, Kind: op.Update}), Kernel: func(c *op.Call) error {
			copy(c.Out[0].Data, c.In[0].Data)
			copy(c.Out[0].Data[rowBytes(c.In[0].Type)*int(c.Int("offset")):], c.In[1].Data)
			return nil
		}},
	{Name: "concat", MinArgs: 1, MaxArgs: op.Variadic, Alias: op.Fresh(), Infer: func(s *op.Sig) error {
		total := 0
		for _, a := range s.Args {
			if !a.IsStatic() || a.Shape.Rank() != 1 {
				return fmt.Errorf("got %s, want one dimension", a)
			}
			total += a.Shape.Size(0)
		}
		return set(s, 0, s.Args[0].DType, shape.N(total))
	}, Kernel: func(c *op.Call) error {
		at := 0
		for _, a := range c.In {
			at += copy(c.Out[0].Data[at:], a.Data)
		}
		return nil
	}},
}

var fromTo = []op.AttrDef{{Name: "from", Kind: op.Int, Needed: true}, {Name: "to", Kind: op.Int, Needed: true}}

var otherOps = []*op.Def{
	{Name: "if", MinArgs: 1, MaxArgs: 1, MinResults: 0, MaxResults: op.Variadic, Regions: 2, Branch: true, Alias: op.Fresh(), Infer: func(s *op.Sig) error {
		copy(s.Results, s.Regions[0])
		return nil
	}},
	op.Builtin().Lookup("loop"),
	// repeat runs its region many times.
	{Name: "repeat", MinArgs: 1, MaxArgs: 1, Regions: 1, Infer: sameAsFirst},
	// mystery declares nothing.
	{Name: "mystery", MinArgs: 1, MaxArgs: op.Variadic, Infer: sameAsFirst, Kernel: copyFrom(0)},
	{Name: "mystery_pair", MinResults: 2, MaxResults: 2, Infer: func(s *op.Sig) error {
		return firstError(set(s, 0, dtype.F32, shape.N(2)), set(s, 1, dtype.F32, shape.N(2)))
	}},
	// view_if is a view when its second operand is not zero, else in place.
	{Name: "view_if", MinArgs: 2, MaxArgs: 2, Infer: sameAsFirst, Alias: op.Aliases(
		op.Rule{Kind: op.View, When: func(s *op.Sig) bool {
			b, ok := s.Known(1)
			return s.Args[1].DType == dtype.I64 && ok && b[0] != 0 // a rule need not expect fewer operands
		}},
		op.Rule{Kind: op.Same, When: func(s *op.Sig) bool { b, ok := s.Known(1); return ok && b[0] == 0 }},
	)},
	{Name: "is_positive", MinArgs: 1, MaxArgs: 1, Alias: op.Fresh(), Infer: func(s *op.Sig) error { return set(s, 0, dtype.Bool) },
		Kernel: func(c *op.Call) error {
			c.Out[0].Data[0] = 0
			if count(c.In[0]) > 0 && getF32(c.In[0], 0) > 0 {
				c.Out[0].Data[0] = 1
			}
			return nil
		}},
	{Name: "empty", Attrs: []op.AttrDef{{Name: "dims", Kind: op.Ints, Needed: true}}, Alias: op.Fresh(), Infer: func(s *op.Sig) error {
		var dims []shape.Dim
		for _, n := range s.Ints("dims") {
			dims = append(dims, shape.N(int(n)))
		}
		return set(s, 0, dtype.F32, dims...)
	}, Kernel: func(c *op.Call) error { clear(c.Out[0].Data); return nil }},
	{Name: "matmul", MinArgs: 2, MaxArgs: 2, Alias: op.Fresh(), Infer: func(s *op.Sig) error {
		if s.Args[0].Shape == nil || s.Args[1].Shape == nil || s.Args[0].Shape.Rank() != 2 || s.Args[1].Shape.Rank() != 2 {
			return fmt.Errorf("got %s and %s, want two matrices", s.Args[0], s.Args[1])
		}
		return set(s, 0, s.Args[0].DType, s.Args[0].Shape.Dim(0), s.Args[1].Shape.Dim(1))
	}, Kernel: matmul},
	// reshape has a shape that is an operand.
	{Name: "reshape", MinArgs: 2, MaxArgs: 2, Alias: op.ViewOf(0), Kernel: copyFrom(0), Infer: func(s *op.Sig) error {
		b, ok := []byte(nil), false
		if s.Known != nil {
			b, ok = s.Known(1)
		}
		if !ok {
			s.Results[0] = op.Type{DType: s.Args[0].DType}
			return nil
		}
		var dims []shape.Dim
		for ; len(b) > 0; b = b[8:] {
			dims = append(dims, shape.N(int(int64At(b, 0))))
		}
		return set(s, 0, s.Args[0].DType, dims...)
	}},
	{Name: "attributes", Alias: op.Fresh(), Infer: func(s *op.Sig) error { return set(s, 0, dtype.Bool) }, Attrs: []op.AttrDef{
		{Name: "i", Kind: op.Int}, {Name: "f", Kind: op.Float}, {Name: "s", Kind: op.String}, {Name: "d", Kind: op.DTypeKind},
		{Name: "is", Kind: op.Ints}, {Name: "fs", Kind: op.Floats}, {Name: "ss", Kind: op.Strings},
	}},
}

func sameAsFirst(s *op.Sig) error {
	s.Results[0] = s.Args[0]
	return nil
}

func set(s *op.Sig, result int, dt dtype.DType, dims ...shape.Dim) error {
	sh, err := shape.FromDims(dims...)
	s.Results[result] = op.Type{DType: dt, Shape: sh}
	return err
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func inferRows(s *op.Sig) error {
	from, to := s.Int("from"), s.Int("to")
	a := s.Args[0]
	if a.Shape == nil || a.Shape.Rank() == 0 {
		return fmt.Errorf("got %s, want one dimension or more", a)
	}
	if n, ok := a.Shape.Dim(0).Size(); from < 0 || to < from || ok && to > int64(n) {
		return fmt.Errorf("got rows %d to %d, want rows of %s", from, to, a)
	}
	dims := a.Shape.Dims()
	dims[0] = shape.N(int(to - from))
	return set(s, 0, a.DType, dims...)
}

func inferDynRows(s *op.Sig) error {
	if s.Args[0].Shape == nil || s.Args[0].Shape.Rank() == 0 {
		return fmt.Errorf("got %s, want one dimension or more", s.Args[0])
	}
	dims := s.Args[0].Shape.Dims()
	dims[0] = shape.Unknown
	if s.Known != nil {
		if b, ok := s.Known(1); ok {
			dims[0] = shape.N(int(int64At(b, 1) - int64At(b, 0)))
		}
	}
	return set(s, 0, s.Args[0].DType, dims...)
}

func inferPut(s *op.Sig) error {
	if s.Args[0].IsStatic() && s.Args[1].IsStatic() {
		row, n := rowBytes(s.Args[0]), byteLen(s.Args[1])
		if off := int(s.Int("offset")); off < 0 || off*row+n > byteLen(s.Args[0]) {
			return fmt.Errorf("got %s at row %d, want rows of %s", s.Args[1], off, s.Args[0])
		}
	}
	return sameAsFirst(s)
}

func rowBytes(t op.Type) int {
	n := t.DType.Size()
	for i := 1; i < t.Shape.Rank(); i++ {
		n *= t.Shape.Size(i)
	}
	return n
}

func byteLen(t op.Type) int {
	n, err := t.Bytes()
	if err != nil {
		panic(err)
	}
	return n
}

func copyFrom(arg int) func(*op.Call) error {
	return func(c *op.Call) error {
		copy(c.Out[0].Data, c.In[arg].Data)
		return nil
	}
}

func matmul(c *op.Call) error {
	m, k, n := c.In[0].Shape.Size(0), c.In[0].Shape.Size(1), c.In[1].Shape.Size(1)
	for i := range m {
		for j := range n {
			sum := float32(0)
			for x := range k {
				sum += getF32(c.In[0], i*k+x) * getF32(c.In[1], x*n+j)
			}
			setF32(c.Out[0], i*n+j, sum)
		}
	}
	return nil
}

func count(a op.Arg) int { return len(a.Data) / 4 }

func getF32(a op.Arg, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(a.Data[4*i:]))
}

func setF32(a op.Arg, i int, x float32) {
	binary.LittleEndian.PutUint32(a.Data[4*i:], math.Float32bits(x))
}

func int64At(b []byte, i int) int64 { return int64(binary.LittleEndian.Uint64(b[8*i:])) }

func f32Bytes(data ...float32) []byte {
	var out []byte
	for _, x := range data {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	return out
}

func i64Bytes(data ...int64) []byte {
	var out []byte
	for _, x := range data {
		out = binary.LittleEndian.AppendUint64(out, uint64(x))
	}
	return out
}

func typ(dt dtype.DType, dims ...int) op.Type {
	return op.Type{DType: dt, Shape: shape.MustOf(dims...)}
}
