package ir

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
)

// The inverses of views: the value of which a view was taken, with the elements
// of the view replaced. A view that keeps all elements in their order is
// reshaped back; one with its axes in another order is transposed back; a box
// is concatenated with what lies around it, so that a plan may leave all of it
// where it is.

// span is a range of indices along an axis. A negative index counts from the
// end, and an end of math.MaxInt64 is the end of the axis.
type span struct {
	axis       int
	start, end int64
}

// cannotPut says why the elements of a view cannot be put into its operand, ""
// if they can.
func (f *functionalizer) cannotPut(x *variable) string {
	for ; x.of != nil; x = x.of {
		switch {
		case x.call.Op.Name == "transpose", x.call.Op.Name == "split", f.isWhole(x):
		case x.call.Op.Name == "slice":
			if _, why := f.spans(x); why != "" {
				return why
			}
		default:
			return fmt.Sprintf("%s is a view by %s, whose elements may be in it twice or in an order that is not known; write %s itself", x.value, x.call.Op.Name, x.of.value)
		}
	}
	return ""
}

// isWhole reports whether a view has all elements of its operand in their
// order.
func (f *functionalizer) isWhole(x *variable) bool {
	from, to := x.of.value.Type, x.value.Type
	if from.DType != to.DType || len(x.call.Results) != 1 {
		return false
	}
	for _, rule := range x.call.Op.Alias.Rules() {
		if rule.Kind == op.View && rule.Arg == x.arg && rule.When == nil && rule.Offset == nil {
			return true
		}
	}
	return false
}

// put returns the value before with the elements of the view x replaced by v.
func (f *functionalizer) put(x *variable, before, v *Value) *Value {
	if v.Type.IsStatic() && v.Type.Shape.NumElements() == 0 {
		return before
	}
	switch x.call.Op.Name {
	case "transpose":
		return f.emit("transpose", op.Attrs{{Name: "perm", Value: inverse(x.call, before.Type)}}, x.of.value.Name, v)
	case "split":
		var parts []*Value
		fresh := f.vars[x.value]
		for i, r := range x.call.Results {
			switch {
			case i == x.value.Index:
				parts = append(parts, v)
			case r != nil && f.vars[r].from == before:
				parts = append(parts, f.vars[r].now)
			default:
				parts = append(parts, f.splitAgain(fresh, before)[i])
			}
		}
		return f.emit("concat", op.Attrs{{Name: "axis", Value: axisAttr(x.call)}}, x.of.value.Name, parts...)
	case "slice":
		return f.join(x.of.value.Name, x.rest, v)
	}
	if v.Type == before.Type {
		return v
	}
	return f.emit("reshape", nil, x.of.value.Name, v, f.shapeOf(before))
}

func axisAttr(c *Call) int64 {
	if n, ok := c.Attrs.Get("axis").(int64); ok {
		return n
	}
	return 0
}

// splitAgain returns all parts of a value that is split.
func (f *functionalizer) splitAgain(x *variable, of *Value) []*Value {
	c := &Call{Op: x.call.Op, Attrs: x.call.Attrs, Args: slices.Clone(x.call.Args), Line: x.call.Line}
	c.Args[x.arg].Value = of
	for i := range x.call.Results {
		r := f.value(Result, x.value.Name, op.Type{DType: of.Type.DType})
		r.Def, r.Index = c, i
		c.Results = append(c.Results, r)
	}
	f.infer(c)
	f.out = append(f.out, c)
	return c.Results
}

// inverse returns the permutation that undoes that of a transpose.
func inverse(c *Call, t op.Type) []int64 {
	perm, _ := c.Attrs.Get("perm").([]int64)
	if perm == nil && t.Shape != nil {
		for axis := range t.Shape.Rank() {
			perm = append(perm, int64(t.Shape.Rank()-1-axis))
		}
	}
	out := make([]int64, len(perm))
	for i, axis := range perm {
		out[axis] = int64(i)
	}
	return out
}

// rest is what lies around a box of a value along an axis, and around the box
// in that range along the axes behind it. nil stands for the whole value.
type rest struct {
	of            *Value
	axis          int
	before, after *Value // nil where nothing is
	inner         *rest
}

// around takes what lies around the box of a value that the spans describe.
func (f *functionalizer) around(name string, of *Value, spans []span) *rest {
	r := &rest{of: of}
	if len(spans) == 0 {
		return r
	}
	s := spans[0]
	r.axis = s.axis
	if s.start != 0 {
		r.before = f.slice(name, of, span{s.axis, 0, s.start})
	}
	if size, sized := of.Type.Shape.Dim(s.axis).Size(); s.end != math.MaxInt64 && !(sized && s.end == int64(size)) {
		r.after = f.slice(name, of, span{s.axis, s.end, math.MaxInt64})
	}
	if len(spans) > 1 {
		r.inner = f.around(name, f.slice(name, of, s), spans[1:])
	}
	return r
}

// join returns the value of which r is the rest, with v in the place of the
// box.
func (f *functionalizer) join(name string, r *rest, v *Value) *Value {
	if r.inner != nil {
		v = f.join(name, r.inner, v)
	}
	parts := slices.DeleteFunc([]*Value{r.before, v, r.after}, func(v *Value) bool { return v == nil })
	if len(parts) == 1 {
		return v
	}
	return f.emit("concat", op.Attrs{{Name: "axis", Value: int64(r.axis)}}, name, parts...)
}

func (f *functionalizer) slice(name string, of *Value, s span) *Value {
	return f.emit("slice", nil, name, of, f.ints(s.start), f.ints(s.end), f.ints(int64(s.axis)))
}

// spans returns the box of a slice without the axes of which it takes all, or
// why it cannot be written.
func (f *functionalizer) spans(x *variable) (list []span, why string) {
	t := x.of.value.Type
	sig := x.call.Sig(f.known)
	var args [5][]int64
	for i := 1; i < len(args); i++ {
		ok := false
		if args[i], ok = sig.AppendKnownInts(nil, i); sig.Has(i) && !ok || t.Shape == nil {
			return nil, fmt.Sprintf("the bounds of %s are not known; take the slice by constants, or write by scatter_nd or tensor_scatter", x.value)
		}
	}
	starts, ends := args[1], args[2]
	for i := range starts {
		s := span{i, starts[i], ends[i]}
		if args[3] != nil {
			if s.axis = int(args[3][i]); s.axis < 0 {
				s.axis += t.Shape.Rank()
			}
		}
		if args[4] != nil && args[4][i] != 1 {
			return nil, fmt.Sprintf("%s is a slice by steps of %d, want steps of 1; write by scatter_nd", x.value, args[4][i])
		}
		if n, sized := t.Shape.Dim(s.axis).Size(); sized {
			s.start = clampIndex(s.start, int64(n))
			s.end = max(s.start, clampIndex(s.end, int64(n)))
			if s.start == 0 && s.end == int64(n) {
				continue
			}
		} else if s.start > 0 && s.end < 0 || s.start < 0 && s.end >= 0 && s.end < math.MaxInt32 || s.end < s.start {
			return nil, fmt.Sprintf("%s is a slice from %d to %d of an axis whose size is not known, want bounds that count from one end", x.value, s.start, s.end)
		} else if s.end >= math.MaxInt32 {
			s.end = math.MaxInt64
			if s.start == 0 {
				continue
			}
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b span) int { return a.axis - b.axis })
	return list, ""
}

func clampIndex(at, n int64) int64 {
	if at < 0 {
		at = max(at, -n) + n
	}
	return min(at, n)
}

// shapeOf returns the sizes of a value, as the operand of a reshape.
func (f *functionalizer) shapeOf(v *Value) *Value {
	if !v.Type.IsStatic() {
		return f.emit("shape", nil, v.Name, v)
	}
	sizes := make([]int64, v.Type.Shape.Rank())
	for axis, n := range v.Type.Shape.Sizes() {
		sizes[axis] = int64(n)
	}
	return f.ints(sizes...)
}

// ints returns a constant, which is defined at the head of the program.
func (f *functionalizer) ints(list ...int64) *Value {
	key := fmt.Sprint(list)
	if v := f.constants[key]; v != nil {
		return v
	}
	outer := f.out
	v := f.emit("constant", op.Attrs{{Name: "dims", Value: []int64{int64(len(list))}}, {Name: "dtype", Value: dtype.I64}, {Name: "ints", Value: list}}, "at")
	f.consts, f.out = append(f.consts, v.Def), outer
	f.constants[key] = v
	return v
}

// emit makes a call of a built-in operator with one result.
func (f *functionalizer) emit(name string, attrs op.Attrs, like string, args ...*Value) *Value {
	c := &Call{Op: op.Builtin().Lookup(name), Attrs: attrs}
	for _, v := range args {
		c.Args = append(c.Args, Operand{Value: v})
	}
	r := f.value(Result, like, op.Type{})
	r.Def, c.Results = c, []*Value{r}
	types, err := inferResults(c, f.known)
	if err != nil {
		f.found = append(f.found, violation(24, "%s: %w", c, err))
		types = []op.Type{{DType: args[0].Type.DType}}
	}
	r.Type = types[0]
	f.out = append(f.out, c)
	return r
}

// constantBytes returns the bytes of integers that a call of constant defines.
func constantBytes(v *Value) ([]byte, bool) {
	ints, ok := v.Def.Attrs.Get("ints").([]int64)
	if !ok || v.Type.DType != dtype.I64 || !v.Type.IsStatic() {
		return nil, false
	}
	n := v.Type.Shape.NumElements()
	if len(ints) == 1 && n <= 64 {
		ints = slices.Repeat(ints, n)
	}
	if len(ints) != n {
		return nil, false
	}
	var data []byte
	for _, x := range ints {
		data = binary.LittleEndian.AppendUint64(data, uint64(x))
	}
	return data, true
}
