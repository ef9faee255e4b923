package tenure

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// shapesDrawer draws a program whose values decide shapes: numbers computed
// from sizes become the sizes, bounds, counts and positions of other calls. A
// call that a shape rule or the compiler refuses is dropped.
type shapesDrawer struct {
	*rand.Rand
	program *ir.Program
	block   *ir.Block
	weights ir.WeightMap
	floats  []*ir.Value // of f32
	numbers []*ir.Value // i64[1]: numbers that were computed from sizes
	places  []*ir.Value // lists of integers that name elements
}

// drawShapes draws program n.
func drawShapes(n uint64) (*ir.Program, ir.WeightMap, error) {
	d := &shapesDrawer{Rand: rand.New(rand.NewPCG(n, 77)), weights: ir.WeightMap{}, block: &ir.Block{}}
	d.program = &ir.Program{Name: "drawn", Body: d.block}
	symbols := []string{"a", "b", "c"}[:d.between(1, 3)]
	for i := range d.between(1, 3) {
		if err := d.param(i, symbols); err != nil {
			return nil, nil, err
		}
	}
	d.size(d.any())
	sizes := []int{d.between(2, 11), d.between(2, 7), d.between(2, 6)}
	for range d.between(2, 16) {
		calls, floats, numbers, places := len(d.block.Calls), slices.Clone(d.floats), slices.Clone(d.numbers), slices.Clone(d.places)
		d.call()
		if !d.compiles(sizes) {
			d.block.Calls, d.floats, d.numbers, d.places = d.block.Calls[:calls], floats, numbers, places
		}
	}
	for range d.between(1, 3) {
		d.block.Results = append(d.block.Results, d.recent())
	}
	if err := ir.Infer(d.program, nil); err != nil {
		return nil, nil, err
	}
	return d.program, d.weights, nil
}

func (d *shapesDrawer) between(lo, hi int) int { return lo + d.IntN(hi-lo+1) }
func (d *shapesDrawer) one(of int) bool        { return d.IntN(of) == 0 }
func (d *shapesDrawer) recent() *ir.Value      { return d.floats[max(0, len(d.floats)-1-d.IntN(4))] }
func (d *shapesDrawer) any() *ir.Value         { return d.floats[d.IntN(len(d.floats))] }

func choose[T any](d *shapesDrawer, of ...T) T { return of[d.IntN(len(of))] }

// param draws a parameter whose sizes are symbols, sums of them, or numbers.
func (d *shapesDrawer) param(i int, symbols []string) error {
	dims := make([]shape.Dim, choose(d, 1, 2, 2, 3, 4))
	for axis := range dims {
		switch {
		case d.one(4):
			dims[axis] = shape.N(choose(d, 1, 2, 3, 4))
		case d.one(8) && len(symbols) > 1:
			dims[axis] = shape.Sym("a + b")
		case d.one(12):
			dims[axis] = shape.Sym("a + 1")
		default:
			dims[axis] = shape.Sym(symbols[d.IntN(len(symbols))])
		}
	}
	s, err := shape.FromDims(dims...)
	if err != nil {
		return err
	}
	p := d.program.NewValue(ir.Param, fmt.Sprintf("p%d", i), op.Type{DType: dtype.F32, Shape: s})
	p.Index = i
	d.block.Params, d.floats = append(d.block.Params, p), append(d.floats, p)
	return nil
}

func (d *shapesDrawer) weight(t op.Type, data []byte) *ir.Value {
	v := d.program.NewValue(ir.Weight, "", t)
	v.Name = fmt.Sprintf("w%d", v.ID)
	d.program.Weights, d.weights[v.Name] = append(d.program.Weights, v), data
	return v
}

func (d *shapesDrawer) ints(list ...int64) *ir.Value {
	var data []byte
	for _, v := range list {
		data = binary.LittleEndian.AppendUint64(data, uint64(v))
	}
	return d.weight(op.Type{DType: dtype.I64, Shape: shape.MustOf(len(list))}, data)
}

func (d *shapesDrawer) scalar(n int64) *ir.Value {
	return d.weight(op.Type{DType: dtype.I64, Shape: shape.Scalar()}, binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

// table is a weight of small numbers.
func (d *shapesDrawer) table(dims ...int) *ir.Value {
	t := op.Type{DType: dtype.F32, Shape: shape.MustOf(dims...)}
	var data []byte
	for i := range t.Shape.NumElements() {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(i%7-3)))
	}
	return d.weight(t, data)
}

// emit adds a call of one result, nil where its shape rule refuses it or an
// operand is nil.
func (d *shapesDrawer) emit(name string, attrs op.Attrs, args ...*ir.Value) *ir.Value {
	list := d.emits(name, attrs, 1, args...)
	if list == nil {
		return nil
	}
	return list[0]
}

// sparing are the operators that may have operands that are not given.
var sparing = []string{"resize", "pad", "attention", "clip"}

func (d *shapesDrawer) emits(name string, attrs op.Attrs, results int, args ...*ir.Value) []*ir.Value {
	c := &ir.Call{Op: op.Builtin().Lookup(name), Attrs: attrs, Results: make([]*ir.Value, results)}
	for i, v := range args {
		if v == nil && (i == 0 || !slices.Contains(sparing, name)) {
			return nil
		}
		c.Args = append(c.Args, ir.Operand{Value: v})
	}
	sig := c.Sig(func(v *ir.Value) ([]byte, bool) { return ir.Known(d.weights)(v) })
	for i := range sig.Results {
		sig.Results[i] = op.Type{DType: dtype.F32} // wanted
	}
	if err := op.InferTypes(sig); err != nil {
		return nil
	}
	for i, t := range sig.Results {
		if t.Shape == nil {
			return nil
		}
		v := d.program.NewValue(ir.Result, "", t)
		v.Name = fmt.Sprintf("v%d", v.ID)
		v.Def, v.Index, c.Results[i] = c, i, v
		if t.DType == dtype.F32 {
			d.floats = append(d.floats, v)
		}
	}
	d.block.Calls = append(d.block.Calls, c)
	return c.Results
}

// number draws a number: one that was computed from sizes, mostly.
func (d *shapesDrawer) number() *ir.Value {
	if len(d.numbers) == 0 || d.one(4) {
		return d.ints(choose(d, int64(-1), 0, 1, 1, 2, 3, 4, -2))
	}
	return d.numbers[d.IntN(len(d.numbers))]
}

// list draws k numbers.
func (d *shapesDrawer) list(k int) *ir.Value {
	var parts []*ir.Value
	for range k {
		parts = append(parts, d.number())
	}
	switch k {
	case 0:
		return d.ints()
	case 1:
		return parts[0]
	}
	return d.emit("concat", along(0), parts...)
}

// size computes a number from the sizes of x.
func (d *shapesDrawer) size(x *ir.Value) {
	if x.Type.Shape.Rank() == 0 {
		return
	}
	s := d.emit("shape", nil, x)
	n := d.emit("gather", along(0), s, d.ints(d.axis(x)))
	if d.one(5) {
		n = d.emit("reshape", nil, d.emit("reduce_prod", with("keepdims", int64(0)), s), d.ints(1))
	}
	if n != nil && d.one(6) {
		n = d.emit("cast", with("to", dtype.I64), d.emit("cast", with("to", choose(d, dtype.I32, dtype.I32, dtype.Bool)), n))
	}
	for range d.between(0, 2) {
		o := d.ints(choose(d, int64(1), 2, 3, -1, 4, 7))
		if d.one(2) {
			o = d.number()
		}
		m := d.emit(choose(d, "add", "add", "sub", "mul", "div", "mod", "max", "min"), nil, n, o)
		if m == nil {
			break
		}
		n = m
	}
	if d.one(8) {
		if m := d.emit("where", nil, d.emit("equal", nil, n, d.number()), n, d.number()); m != nil {
			n = m
		}
	}
	if n != nil {
		d.numbers = append(d.numbers, n)
	}
}

func with(name string, v any) op.Attrs { return op.Attrs(nil).With(name, v) }

func along(axis int64) op.Attrs { return with("axis", axis) }

func (d *shapesDrawer) axis(v *ir.Value) int64 {
	return int64(d.IntN(max(1, v.Type.Shape.Rank())))
}
