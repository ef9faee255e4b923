package randomprogram

import (
	"encoding/binary"
	"fmt"
	"math"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// Open is a drawn program whose parameters have open dimensions. It is made of
// what passes look for: results of one type, broadcasts, parts of values,
// numbers that were computed from sizes, products, convolutions, branches.
type Open struct {
	Program *ir.Program
	Weights ir.WeightMap

	// Rounded are the values that a fused kernel may have computed, or that are
	// computed from one: the final program may round them otherwise. All others
	// are the same to the bit.
	Rounded map[*ir.Value]bool

	scans bool // some loop has as many rounds as a value has slices
}

// DrawOpen draws a program. One of two has control flow and numbers that only
// a run knows: loops, values whose size depends on data, and parameters whose
// values decide sizes.
func DrawOpen(t *rapid.T) *Open {
	d := &opener{Open: &Open{Weights: ir.WeightMap{}, Rounded: map[*ir.Value]bool{}}, t: t, block: &ir.Block{}, rounds: 1}
	d.Program = &ir.Program{Name: "open", Body: d.block}
	d.control = d.one(2)
	for range d.n(1, 3) {
		d.param()
	}
	for range d.n(2, 14) {
		d.call(0)
	}
	for range d.n(1, 3) {
		v := d.recent()
		switch {
		case d.one(8):
			v = d.any() // a parameter, mostly
		case d.one(8) && len(d.block.Results) > 0:
			v = d.block.Results[0] // twice
		}
		d.block.Results = append(d.block.Results, v)
	}
	if err := ir.Infer(d.Program, nil); err != nil { // a program as it is built: no weight's bytes are known
		t.Skip(err)
	}
	return d.Open
}

// opener draws an Open call by call. A call that a shape rule refuses is
// dropped.
type opener struct {
	*Open
	t       *rapid.T
	block   *ir.Block
	visible []*ir.Value // f32, of known rank
	dims    []*ir.Value // i64[1]: numbers that were computed from sizes
	numbers []*ir.Value // i64[1]: numbers that only a run knows
	control bool
	inLoop  bool
	rounds  int // how often the block that is drawn may run, at most
}

// symbols are the open dimensions. A file may give two of them one name.
var symbols = []string{"a", "b", "c"}

// param draws a parameter: numbers of open dimensions, or a few integers that
// decide sizes.
func (d *opener) param() {
	i := len(d.block.Params)
	t := op.Type{DType: dtype.F32}
	if d.control && i > 0 && d.one(2) {
		dims := []shape.Dim{shape.N(d.n(1, 3))}
		if d.one(4) {
			dims[0] = shape.Sym(symbols[d.n(0, 2)])
		}
		t = op.Type{DType: dtype.I64, Shape: d.shapeOf(dims)}
	} else {
		dims := make([]shape.Dim, d.pick(1, 2, 2, 3, 3, 4, 4))
		for axis := range dims {
			dims[axis] = shape.Sym(symbols[d.n(0, 2)])
			if len(dims) == 4 && axis == 1 && !d.one(4) || d.one(4) {
				dims[axis] = shape.N(d.pick(1, 2, 3, 4))
			} else if d.one(5) {
				dims[axis] = shape.Unknown
			}
		}
		t.Shape = d.shapeOf(dims)
	}
	p := d.Program.NewValue(ir.Param, fmt.Sprintf("p%d", i), t)
	p.Index, p.Donated = i, d.one(2)
	d.block.Params = append(d.block.Params, p)
	if t.DType == dtype.F32 {
		d.visible = append(d.visible, p)
	}
}

func (d *opener) shapeOf(dims []shape.Dim) *shape.Shape {
	s, err := shape.FromDims(dims...)
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

func (d *opener) n(lo, hi int) int         { return rapid.IntRange(lo, hi).Draw(d.t, "n") }
func (d *opener) one(of int) bool          { return d.n(1, of) == 1 }
func (d *opener) pick(of ...int) int       { return rapid.SampledFrom(of).Draw(d.t, "pick") }
func (d *opener) name(of ...string) string { return rapid.SampledFrom(of).Draw(d.t, "name") }
func (d *opener) recent() *ir.Value        { return d.visible[max(0, len(d.visible)-1-d.n(0, 3))] }
func (d *opener) any() *ir.Value           { return d.visible[d.n(0, len(d.visible)-1)] }
func (d *opener) axis(v *ir.Value) int64   { return int64(d.n(0, max(0, rank(v)-1))) }

func rank(v *ir.Value) int { return v.Type.Shape.Rank() }

// like returns another value of as many dimensions, if there is one: one of the
// same type in every second case.
func (d *opener) like(x *ir.Value) *ir.Value {
	if d.one(2) {
		for i := len(d.visible) - 1; i >= 0; i-- {
			if y := d.visible[i]; y != x && y.Type == x.Type {
				return y
			}
		}
	}
	for i := len(d.visible) - 1; i >= 0; i-- {
		if y := d.visible[i]; y != x && rank(y) == rank(x) && !d.one(3) {
			return y
		}
	}
	return x
}

func (d *opener) weight(t op.Type, data []byte) *ir.Value {
	w := d.Program.NewValue(ir.Weight, "", t)
	w.Name = fmt.Sprintf("w%d", w.ID)
	d.Program.Weights, d.Weights[w.Name] = append(d.Program.Weights, w), data
	return w
}

func (d *opener) ints(list ...int64) *ir.Value {
	return d.weight(op.Type{DType: dtype.I64, Shape: shape.MustOf(len(list))}, int64s(list...))
}

// scalar is ints for one number, without dimensions.
func (d *opener) scalar(n int64) *ir.Value {
	return d.weight(op.Type{DType: dtype.I64, Shape: shape.Scalar()}, int64s(n))
}

func int64s(list ...int64) (data []byte) {
	for _, v := range list {
		data = binary.LittleEndian.AppendUint64(data, uint64(v))
	}
	return data
}

func (d *opener) number(x float64) *ir.Value {
	return d.weight(op.Type{DType: dtype.F32, Shape: shape.Scalar()}, binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(x))))
}

func (d *opener) floats(dims ...int) *ir.Value {
	t := op.Type{DType: dtype.F32, Shape: shape.MustOf(dims...)}
	return d.weight(t, SmallFloats(t, len(d.Weights)))
}

// SmallFloats returns the bytes of numbers from -3 to 3.
func SmallFloats(t op.Type, seed int) []byte {
	data := make([]byte, 0, 4*t.Shape.NumElements())
	for i := range t.Shape.NumElements() {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32((i*5+seed*3)%7-3)))
	}
	return data
}

func (d *opener) known(v *ir.Value) ([]byte, bool) { return ir.Known(d.Weights)(v) }

// emit adds a call if its shape rule accepts it, and returns its first result.
// It is nil for operands that are nil.
func (d *opener) emit(name string, attrs op.Attrs, args ...*ir.Value) *ir.Value {
	results := d.emitCall(&ir.Call{Op: op.Builtin().Lookup(name), Attrs: attrs, Results: make([]*ir.Value, 1)}, args...)
	if results == nil {
		return nil
	}
	return results[0]
}

// roundedBy are the operators that other kernels compute where they, or parts
// of them, are fused.
var roundedBy = map[string]bool{"conv": true, "matmul": true, "sigmoid": true, "erf": true, "sqrt": true}

func (d *opener) emitCall(c *ir.Call, args ...*ir.Value) []*ir.Value {
	rounded := roundedBy[c.Op.Name]
	for i, v := range args {
		if v == nil && !(c.Op.Loop && i == 1) { // the condition of a loop may be absent
			return nil
		}
		c.Args = append(c.Args, ir.Operand{Value: v})
		rounded = rounded || d.Rounded[v]
	}
	for _, r := range c.Regions {
		for _, v := range r.Results {
			rounded = rounded || d.Rounded[v]
		}
	}
	if d.inLoop && rounded || c.Op.Loop && rounded {
		return nil // the difference would grow with each round
	}
	if c.Op.Loop && ir.InferLoop(c, d.known) != nil {
		return nil
	}
	sig := c.Sig(d.known)
	for i := range sig.Results {
		sig.Results[i] = op.Type{DType: dtype.F32} // wanted
	}
	if err := op.InferTypes(sig); err != nil {
		return nil
	}
	for _, t := range sig.Results {
		if t.Shape == nil {
			return nil
		}
	}
	for i, t := range sig.Results {
		v := d.Program.NewValue(ir.Result, "", t)
		v.Name = fmt.Sprintf("v%d", v.ID)
		v.Def, v.Index, c.Results[i] = c, i, v
		d.Rounded[v] = rounded
		if t.DType == dtype.F32 {
			d.visible = append(d.visible, v)
		}
	}
	d.block.Calls = append(d.block.Calls, c)
	return c.Results
}

func ints(name string, values ...int64) op.Attrs { return op.Attrs(nil).With(name, values) }

func along(axis int64) op.Attrs { return op.Attrs(nil).With("axis", axis) }

// call draws one call or a few that belong together.
func (d *opener) call(depth int) {
	x := d.recent()
	kinds := 11
	if d.control {
		kinds = 15
	}
	switch d.n(0, kinds) {
	case 0:
		d.emit(d.name("relu", "abs", "neg", "sigmoid", "identity", "tanh"), nil, x)
	case 1, 2:
		d.emit(d.name("add", "mul", "sub", "max"), nil, x, d.like(x))
	case 3:
		d.constant(x)
	case 4:
		d.size(x)
	case 5, 6:
		d.bySize(x)
	case 7:
		d.move(x)
	case 8:
		d.product(x)
	case 9:
		d.idiom(x)
	case 10:
		d.network(x)
	case 11:
		if depth < 2 {
			d.branch(x, depth)
		}
	case 12:
		d.numbered(x)
	case 13:
		d.picked(x)
	default:
		if depth < 2 {
			d.loop(x, depth)
		}
	}
}
