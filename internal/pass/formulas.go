package pass

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/symbolic"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// Formulas are the sizes of a structure's values as expressions. Each holds at
// all sizes of a box at which the structure does. They are derived by the steps
// of the structure with expressions in the place of numbers: the operators'
// shape rules run with a symbol for each expression, so that what a rule says
// of a symbol holds for the expression, and sizes that a rule computes come
// from the tables of formularules.go. Nothing is fitted: what cannot be derived
// is unknown.
type Formulas struct {
	structure *Structure
	box       symbolic.Box
	first     []op.Type          // by ID: for the sizes of the first program
	dims      [][]*symbolic.Expr // by ID; nil: not even the rank is known
	contents  [][]*symbolic.Expr // by ID, of integer constants that depend on sizes
	symbols   map[string]*symbolic.Expr

	// same says by ID which constants that depend on sizes have at all sizes of
	// the box the bytes that they have now. It is nil where the structure is
	// not proved to hold over the box.
	same []bool

	// Along has the symbols of the sizes about which a question was not
	// answered that kept the structure from being proved over the box, and
	// Modulus numbers by symbol: the answer may be the same for all that leave
	// the same rest. Both are empty where nothing is known.
	Along   []string
	Modulus map[string]int64

	// Underived says which sizes are unknown, by the first value that has none.
	Underived []string
}

// Formulas derives the sizes of all values. params are the dimensions of the
// parameters, whose symbols have ranges in the box.
func (s *Structure) Formulas(params [][]*symbolic.Expr, box symbolic.Box) *Formulas {
	f := s.newFormulas(params, box)
	for _, st := range s.steps {
		switch st := st.(type) {
		case *visit:
			f.take(st)
		case *loopTypes:
			f.loop(st)
		case *frozen:
			f.first[st.made], f.dims[st.made] = f.first[st.param], f.dims[st.param]
		}
	}
	f.copyTypes()
	return f
}

// newFormulas returns formulas before the first step.
func (s *Structure) newFormulas(params [][]*symbolic.Expr, box symbolic.Box) *Formulas {
	n := len(s.types)
	f := &Formulas{structure: s, box: box, first: slices.Clone(s.initial), dims: make([][]*symbolic.Expr, n), contents: make([][]*symbolic.Expr, n), symbols: map[string]*symbolic.Expr{}}
	for id, w := range s.weights {
		if w != nil && !s.varies[id] {
			f.dims[id] = constants(s.initial[id])
		}
	}
	for i, id := range s.params {
		f.first[id], f.dims[id] = s.firstParams[i], params[i]
	}
	return f
}

// copyTypes gives values the types of others that passes made them like.
func (f *Formulas) copyTypes() {
	for _, cp := range f.structure.copies {
		f.first[cp.id], f.dims[cp.id] = f.first[cp.of], f.dims[cp.of]
	}
}

// Dims returns the dimensions of a value, nil for one of unknown rank. Those
// that are not known are nil.
func (f *Formulas) Dims(id int) []*symbolic.Expr { return f.dims[id] }

// Elements returns the number of elements of a value.
func (f *Formulas) Elements(id int) *symbolic.Expr {
	if f.dims[id] == nil {
		return nil
	}
	return symbolic.Product(f.dims[id]...)
}

// Bytes returns the size of a value in bytes.
func (f *Formulas) Bytes(id int) *symbolic.Expr {
	bits := int64(f.first[id].DType.Bits())
	if bits%8 == 0 {
		return f.Elements(id).Mul(symbolic.Const(bits / 8))
	}
	return f.Elements(id).Mul(symbolic.Const(bits)).Ceil(8)
}

// Check compares the formulas with the types of an instance for the same sizes,
// those that [Structure.Types] returned. The error is the first difference.
func (f *Formulas) Check(sizes map[string]int64, types ir.Types) error {
	for _, id := range f.structure.values {
		for axis, d := range f.dims[id] {
			if d == nil {
				continue
			}
			got, ok := d.Eval(sizes)
			if want := types[id].Shape.Size(axis); !ok || got != int64(want) {
				return fmt.Errorf("BUG: the formula %s of axis %d of value %d is %d for %v, want %d", d, axis, id, got, sizes, want)
			}
		}
	}
	return nil
}

// constants returns the dimensions of a type as expressions.
func constants(t op.Type) []*symbolic.Expr {
	if !t.IsStatic() {
		return nil
	}
	dims := make([]*symbolic.Expr, t.Shape.Rank())
	for i := range dims {
		dims[i] = symbolic.Const(int64(t.Shape.Size(i)))
	}
	return dims
}

// formulaCall is a step with expressions in the place of sizes.
type formulaCall struct {
	*Formulas
	*visit
	sig op.Sig
}

// callOf returns a step with the types that its operands and results have when
// it is taken.
func (f *Formulas) callOf(st *visit) *formulaCall {
	c := &formulaCall{Formulas: f, visit: st}
	c.sig = op.Sig{Def: st.sig.Def, Attrs: st.sig.Attrs, Endless: st.sig.Endless, Known: c.known}
	for _, id := range st.args {
		c.sig.Args = append(c.sig.Args, f.typeOf(id))
	}
	for _, region := range st.regions {
		var types []op.Type
		for _, id := range region {
			types = append(types, f.typeOf(id))
		}
		c.sig.Regions = append(c.sig.Regions, types)
	}
	for _, id := range st.results {
		c.sig.Results = append(c.sig.Results, f.typeOf(id))
	}
	return c
}

// take does with expressions what [visit.take] does with numbers.
func (f *Formulas) take(st *visit) {
	if st.failed {
		return // it finds no types
	}
	c := f.callOf(st)
	for i, id := range st.results {
		if id != 0 {
			f.first[id], f.first[st.made[i]] = st.found[i], st.found[i]
		}
	}
	if !st.fixed {
		err := st.sig.Def.Infer(&c.sig)
		if err != nil || len(c.sig.Results) != len(st.results) {
			c.sig.Results = make([]op.Type, len(st.results))
		}
	}
	for i, id := range st.results {
		if id == 0 {
			continue
		}
		if made := st.made[i]; st.fixed {
			f.dims[id] = constants(st.found[i])
		} else if f.dims[id] = c.result(i); made != 0 {
			f.contents[made] = c.content(i)
		}
		f.dims[st.made[i]] = f.dims[id]
	}
	f.first[0], f.dims[0] = op.Type{}, nil // of what was not made
	c.report()
}

// loop notes that the sizes of values in a loop have no expressions.
func (f *Formulas) loop(r *loopTypes) {
	f.Underived = append(f.Underived, "the state of a loop")
	for i, v := range r.values {
		if v.Def == nil && (v.Kind != ir.Param || slices.Contains(f.structure.params, v.ID)) {
			continue // from outside
		}
		f.first[v.ID], f.dims[v.ID], f.contents[v.ID] = r.found[i], nil, nil
	}
}

// result returns the dimensions of result i.
func (c *formulaCall) result(i int) []*symbolic.Expr {
	want := c.first[c.results[i]]
	if want.Shape == nil {
		return nil
	}
	dims := make([]*symbolic.Expr, want.Shape.Rank())
	ranked := false
	if got := c.sig.Results[i]; got.Shape != nil && got.Shape.Rank() == len(dims) {
		ranked = true
		for axis, d := range got.Shape.Dims() {
			dims[axis] = c.ofDim(d)
		}
	}
	rule := sizeRules[c.sig.Def.Name]
	if len(dims) == 0 && !ranked {
		if rule == nil {
			return nil
		}
		if ruled := rule(c, i); ruled == nil || len(ruled) > 0 {
			return nil
		}
	}
	for axis := range dims {
		if dims[axis] != nil || rule == nil {
			continue
		}
		ruled := rule(c, i)
		if len(ruled) != len(dims) {
			break
		}
		dims[axis] = ruled[axis]
	}
	return dims
}

// report notes what the call has no expression for, unless an operand has none.
func (c *formulaCall) report() {
	unknown := func(id int) bool {
		if id == 0 {
			return false
		}
		for _, d := range c.dims[id] {
			if d == nil {
				return true
			}
		}
		return c.dims[id] == nil
	}
	for _, id := range c.args {
		if unknown(id) {
			return
		}
	}
	for i, id := range c.results {
		if unknown(id) {
			c.Underived = append(c.Underived, fmt.Sprintf("result %d of %s (%s)", i, c.node, c.sig.Def.Name))
		}
	}
}

// typeOf returns the type of a value with a symbol for each expression.
func (f *Formulas) typeOf(id int) op.Type {
	if id == 0 {
		return op.Type{}
	}
	t := f.first[id]
	if f.dims[id] == nil {
		return op.Type{DType: t.DType}
	}
	dims := make([]shape.Dim, len(f.dims[id]))
	for i, e := range f.dims[id] {
		dims[i] = f.dimOf(e)
	}
	sh, err := shape.FromDims(dims...)
	if err != nil {
		return op.Type{DType: t.DType}
	}
	return op.Type{DType: t.DType, Shape: sh}
}

func (f *Formulas) dimOf(e *symbolic.Expr) shape.Dim {
	if n, ok := e.Value(); ok && n >= 0 && n < 1<<58 {
		return shape.N(int(n))
	}
	if e == nil {
		return shape.Unknown
	}
	f.symbols[e.Key()] = e
	return shape.Sym(e.Key())
}

func (f *Formulas) ofDim(d shape.Dim) *symbolic.Expr {
	if n, ok := d.Size(); ok {
		return symbolic.Const(int64(n))
	}
	if name, ok := d.Symbol(); ok {
		return f.symbols[name]
	}
	return nil
}

// known returns the bytes of an operand that is the same constant at all sizes
// of the box.
func (c *formulaCall) known(arg int) ([]byte, bool) {
	if arg >= len(c.args) || c.args[arg] == 0 {
		return nil, false
	}
	id := c.args[arg]
	if !c.structure.varies[id] {
		return c.structure.known(id)
	}
	if c.same != nil && c.same[id] {
		return c.structure.known(id)
	}
	list, dt := c.contents[id], c.first[id].DType
	if list == nil {
		return nil, false
	}
	data := []byte{}
	for _, e := range list {
		n, ok := e.Value()
		if !ok {
			return nil, false
		}
		if data, ok = appendInteger(data, dt, n); !ok {
			return nil, false
		}
	}
	return data, true
}

// mostContents is the largest number of elements of constants whose contents
// are followed.
const mostContents = 64

// ints returns the elements of an integer operand that is a constant, nil where
// they are not known.
func (c *formulaCall) ints(arg int) []*symbolic.Expr {
	if arg >= len(c.args) || c.args[arg] == 0 {
		return nil
	}
	id := c.args[arg]
	if c.structure.varies[id] && (c.same == nil || !c.same[id]) {
		return c.contents[id]
	}
	t := c.first[id]
	if c.structure.weights[id] == nil || !t.IsStatic() || t.Shape.NumElements() > mostContents || t.DType != dtype.I64 && t.DType != dtype.I32 {
		return nil
	}
	data, ok := c.structure.known(id)
	if !ok {
		return nil
	}
	list := []*symbolic.Expr{}
	for ; len(data) >= t.DType.Size(); data = data[t.DType.Size():] {
		if t.DType == dtype.I32 {
			list = append(list, symbolic.Const(int64(int32(binary.LittleEndian.Uint32(data)))))
		} else {
			list = append(list, symbolic.Const(le64(data)))
		}
	}
	return list
}

// numbers is ints for operands that are the same at all sizes.
func (c *formulaCall) numbers(arg int) ([]int64, bool) {
	list := c.ints(arg)
	if list == nil {
		return nil, false
	}
	out := make([]int64, len(list))
	for i, e := range list {
		n, ok := e.Value()
		if !ok {
			return nil, false
		}
		out[i] = n
	}
	return out, true
}

// arg returns the dimensions of an operand, nil for one that is absent or of
// unknown rank.
func (c *formulaCall) arg(i int) []*symbolic.Expr {
	if i >= len(c.args) || c.args[i] == 0 {
		return nil
	}
	return c.dims[c.args[i]]
}

// axis returns the attribute axis counted from the start.
func (c *formulaCall) axis(rank int) int {
	a := int(c.sig.Int("axis"))
	if a < 0 {
		a += rank
	}
	return a
}

// atLeast reports whether an expression is proved to be at least n over the
// box.
func (f *Formulas) atLeast(e *symbolic.Expr, n int64) bool {
	lo, _, ok := e.Bounds(f.box)
	return ok && lo >= n
}

// larger and smaller decide between two expressions over the box where they
// can.
func (f *Formulas) larger(x, y *symbolic.Expr) *symbolic.Expr {
	switch {
	case x.AtMost(y, f.box):
		return y
	case y.AtMost(x, f.box):
		return x
	}
	return symbolic.Max(x, y)
}

func (f *Formulas) smaller(x, y *symbolic.Expr) *symbolic.Expr {
	switch {
	case x.AtMost(y, f.box):
		return x
	case y.AtMost(x, f.box):
		return y
	}
	return symbolic.Min(x, y)
}

// TypeAt returns the type of a value for sizes by name.
func (f *Formulas) TypeAt(id int, sizes map[string]int64) (op.Type, bool) {
	var buf [8]int
	dims := buf[:0]
	for _, d := range f.dims[id] {
		n, ok := d.Eval(sizes)
		if !ok || n < 0 {
			return op.Type{}, false
		}
		dims = append(dims, int(n))
	}
	sh, err := shape.Of(dims...)
	return op.Type{DType: f.first[id].DType, Shape: sh}, err == nil && f.dims[id] != nil
}

// ConstantAt returns the bytes of a constant for sizes by name, of formulas
// that [Structure.Over] returned last.
func (f *Formulas) ConstantAt(id int, sizes map[string]int64) ([]byte, bool) {
	if s := f.structure; !s.varies[id] || f.same[id] {
		return s.known(id)
	}
	if f.contents[id] == nil {
		return nil, false
	}
	var data []byte
	for _, e := range f.contents[id] {
		n, ok := e.Eval(sizes)
		if !ok {
			return nil, false
		}
		if data, ok = appendInteger(data, f.first[id].DType, n); !ok {
			return nil, false
		}
	}
	return data, true
}

// appendInteger appends a number of a type that contents have.
func appendInteger(data []byte, dt dtype.DType, n int64) ([]byte, bool) {
	switch {
	case dt == dtype.Bool:
		return append(data, byte(n)), true
	case dt == dtype.I64:
		return binary.LittleEndian.AppendUint64(data, uint64(n)), true
	case dt == dtype.I32 && n == int64(int32(n)):
		return binary.LittleEndian.AppendUint32(data, uint32(n)), true
	}
	return data, false
}
