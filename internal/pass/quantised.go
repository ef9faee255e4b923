package pass

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// Quantised computes on integers of 8 bits where a model quantises what it
// computes from dequantised numbers:
//
//   - data movement and maxima of dequantised numbers become those of the
//     integers, dequantised afterwards;
//   - quantize_linear of dequantised numbers is the integers themselves, or a
//     lookup of them in a table where scales or zeros differ;
//   - quantize_linear of a convolution or a product of dequantised operands,
//     with a constant bias and a relu or clip, becomes qlinear_conv or
//     qlinear_matmul;
//   - quantize_linear of elementwise functions of one dequantised operand
//     becomes a lookup in a table, which the functions fill.
//
// Requires: nothing; it runs before constants are folded, so that constant
// integers stay integers. Guarantees: tables, movement and clips give the very
// integers that the floats would; the sums of products are exact, so that an
// integer differs by one at most, where the float sum is rounded to the other
// side.
//
// Left to other passes: dequantised values that nothing reads then (dce).
var Quantised = Pass{Name: "quantised", Doc: "compute on integers where results are quantised", Run: quantised}

func quantised(ctx *Context) error {
	q := &quantiser{ctx: ctx, uses: countUses(ctx.Program), readers: map[*ir.Value][]*ir.Call{},
		replaced: replacer{}, taken: map[string]int{}, left: map[string]int{}, zeros: map[dtype.DType]*ir.Value{}, integers: map[*ir.Value][]int{},
		blocks: map[*ir.Call]*ir.Block{}, done: map[*ir.Value]*quantisedValue{}}
	ctx.Program.Walk(func(b *ir.Block, c *ir.Call) {
		q.blocks[c] = b
		for _, a := range c.Args {
			if a.Value != nil {
				q.readers[a.Value] = append(q.readers[a.Value], c)
			}
		}
	})
	q.block(ctx.Program.Body)
	q.replaced.apply(ctx.Program.Body)
	q.report()
	return q.err
}

type quantiser struct {
	ctx         *Context
	uses        map[*ir.Value]int
	readers     map[*ir.Value][]*ir.Call
	replaced    replacer
	blocks      map[*ir.Call]*ir.Block
	now         *ir.Block  // under way
	kept        []*ir.Call // of it
	done        map[*ir.Value]*quantisedValue
	zeros       map[dtype.DType]*ir.Value
	integers    map[*ir.Value][]int // of constants that were read
	taken, left map[string]int      // regions by operator, and by operator and reason
	err         error
}

// report notes which regions compute on integers, and why others do not.
func (q *quantiser) report() {
	for _, name := range sortedKeys(q.taken) {
		q.ctx.Notes = append(q.ctx.Notes, fmt.Sprintf("%s: computed on quantised numbers, %d times", name, q.taken[name]))
	}
	for _, why := range sortedKeys(q.left) {
		q.ctx.Notes = append(q.ctx.Notes, fmt.Sprintf("%s: quantised numbers are computed as floats, %d times", why, q.left[why]))
	}
}

func sortedKeys(m map[string]int) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (q *quantiser) block(b *ir.Block) {
	outer, around := q.kept, q.now
	q.now = b
	q.kept = make([]*ir.Call, 0, len(b.Calls))
	for _, c := range b.Calls {
		for i := range c.Args {
			c.Args[i].Value = q.replaced.of(c.Args[i].Value)
		}
		for _, region := range c.Regions {
			q.block(region)
		}
		if q.err == nil && q.call(c) {
			continue
		}
		q.kept = append(q.kept, c)
	}
	b.Calls, q.kept, q.now = q.kept, outer, around
}

// call rewrites a call. It is true where nothing of it remains.
func (q *quantiser) call(c *ir.Call) (gone bool) {
	if slices.ContainsFunc(c.Args, func(a ir.Operand) bool { return a.Donate || a.View }) || c.Writes != nil {
		return false
	}
	switch c.Op.Name {
	case "quantize_linear":
		return q.quantize(c)
	case "shape", "size":
		if n := q.numberOf(c.Args[0].Value); n != nil {
			c.Args[0].Value = n.q
		}
		return false
	}
	return q.move(c)
}

// number is a value as integers with scales: one, or one per index of an axis.
type number struct {
	q           *ir.Value // nil for those that are still to be computed
	dt          dtype.DType
	scale, zero *ir.Value // zero may be nil
	scales      []float32
	zeros       []int
	axis        int // -1 for one scale
}

// numberOf reads a value as dequantised integers with constant scales, nil
// where it is something else.
func (q *quantiser) numberOf(v *ir.Value) *number {
	c := def(v, "dequantize_linear")
	if c == nil || v.Type.DType != dtype.F32 {
		return nil
	}
	return q.scaled(c, c.Args[0].Value, c.Args[0].Value.Type.DType)
}

// resultOf reads the parameters of a quantize_linear.
func (q *quantiser) resultOf(c *ir.Call) *number {
	sig := c.Sig(nil)
	if p := sig.DType("precision"); p != dtype.Invalid && p != dtype.F32 || c.Args[0].Value.Type.DType != dtype.F32 {
		return nil
	}
	return q.scaled(c, nil, c.Results[0].Type.DType)
}

func (q *quantiser) scaled(c *ir.Call, of *ir.Value, dt dtype.DType) *number {
	sig := attrsOf(c)
	n := &number{q: of, dt: dt, scale: c.Args[1].Value, axis: -1}
	var ok bool
	if n.scales, ok = q.ctx.floats(n.scale); !ok || sig.Int("block_size") != 0 || len(n.scales) == 0 {
		return nil
	}
	for _, s := range n.scales {
		if !(s > 0) || math.IsInf(float64(s), 0) || s < 1e-30 {
			return nil
		}
	}
	if len(c.Args) > 2 && c.Args[2].Value != nil {
		n.zero = c.Args[2].Value
		if n.zeros, ok = q.ints(n.zero); !ok {
			return nil
		}
	} else {
		n.zeros = make([]int, len(n.scales))
	}
	if len(n.zeros) != len(n.scales) {
		return nil
	}
	if len(n.scales) > 1 {
		r := rank(c.Args[0].Value)
		n.axis = int(sig.Int("axis"))
		if n.axis < 0 {
			n.axis += r
		}
		if r <= 0 || n.axis < 0 || n.axis >= r || n.scale.Type.Shape.Rank() != 1 {
			return nil
		}
	}
	return n
}

// ints returns the elements of a constant of integers. Callers share them.
func (q *quantiser) ints(v *ir.Value) (list []int, ok bool) {
	if !q.ctx.isKnown(v) {
		return nil, false
	}
	if list, ok = q.integers[v]; ok {
		return list, true
	}
	data, ok := q.ctx.constant(v)
	if !ok {
		return nil, false
	}
	list = make([]int, 0, len(data)/max(1, v.Type.DType.Size()))
	defer func() {
		if ok {
			q.integers[v] = list
		}
	}()
	switch v.Type.DType {
	case dtype.U8:
		for _, b := range data {
			list = append(list, int(b))
		}
	case dtype.I8:
		for _, b := range data {
			list = append(list, int(int8(b)))
		}
	case dtype.I32:
		for ; len(data) >= 4; data = data[4:] {
			list = append(list, int(int32(binary.LittleEndian.Uint32(data))))
		}
	default:
		return nil, false
	}
	return list, true
}

func isByte(dt dtype.DType) bool { return dt == dtype.I8 || dt == dtype.U8 }

// isPlain reports whether integers are of 8 bits and have one scale.
func (n *number) isPlain() bool { return n != nil && isByte(n.dt) && n.axis < 0 }

func (n *number) sameAs(o *number) bool {
	return n.dt == o.dt && n.axis == o.axis && slices.Equal(n.scales, o.scales) && slices.Equal(n.zeros, o.zeros)
}

// limits are the least and the largest integer.
func (n *number) limits() (lo, hi int) {
	if n.dt == dtype.I8 {
		return -128, 127
	}
	return 0, 255
}

// of quantises a number.
func (n *number) of(x float32) int {
	lo, hi := n.limits()
	v := math.RoundToEven(float64(x/n.scales[0])) + float64(n.zeros[0])
	if v != v {
		return n.zeros[0]
	}
	return int(min(max(v, float64(lo)), float64(hi)))
}

// at is the number that an integer stands for.
func (n *number) at(i int) float32 { return float32(i-n.zeros[0]) * n.scales[0] }

// zeroOf is the zero as an operand of a call.
func (q *quantiser) zeroOf(n *number) *ir.Value {
	if n.zero != nil {
		return n.zero
	}
	if q.zeros[n.dt] == nil {
		q.zeros[n.dt] = q.constant("zero", op.Type{DType: n.dt, Shape: shape.MustOf()}, []byte{0})
	}
	return q.zeros[n.dt]
}

// constant makes a constant of the given bytes.
func (q *quantiser) constant(name string, t op.Type, data []byte) *ir.Value {
	v, dst, err := q.ctx.newWeight(name, t)
	if err != nil {
		q.err = cmp.Or(q.err, err)
		return nil
	}
	copy(dst, data)
	return v
}

// emit puts a call before the one under way, and returns its result.
func (q *quantiser) emit(like *ir.Call, name string, attrs op.Attrs, t op.Type, args ...*ir.Value) *ir.Value {
	v := q.ctx.Program.NewValue(ir.Result, "", t)
	c := &ir.Call{Op: op.Builtin().Lookup(name), Attrs: attrs, Results: []*ir.Value{v}, Node: like.Node}
	setArgs(c, args)
	v.Def = c
	q.kept = append(q.kept, c)
	return v
}

func setArgs(c *ir.Call, args []*ir.Value) {
	c.Args = make([]ir.Operand, len(args))
	for i, v := range args {
		c.Args[i].Value = v
	}
}

// become makes a quantize_linear another call with the same result.
func (q *quantiser) become(c *ir.Call, name string, attrs op.Attrs, args ...*ir.Value) {
	c.Op, c.Attrs = op.Builtin().Lookup(name), attrs
	setArgs(c, args)
}

// quantize rewrites a quantize_linear. It is true where its result is a value
// that exists.
func (q *quantiser) quantize(c *ir.Call) (gone bool) {
	x, y := c.Args[0].Value, q.resultOf(c)
	if x.Def == nil || y == nil || !q.isInside(x.Def) {
		return false
	}
	if n := q.numberOf(x); n != nil {
		switch {
		case n.sameAs(y):
			q.replaced[c.Results[0]] = n.q
			return true
		case n.isPlain() && y.isPlain():
			q.taken["dequantize_linear"]++
			q.become(c, "lookup", nil, n.q, q.table(n, y, y.of))
			return false
		}
		return false
	}
	if d := q.done[x]; d != nil && d.as.sameAs(y) {
		q.replaced[c.Results[0]] = d.v
		return true
	}
	what := x.Def.Op.Name
	why := q.region(c, x, y)
	switch {
	case why == "":
		q.taken[what]++
		q.done[x] = &quantisedValue{c.Results[0], y}
	case why != notQuantised:
		q.left[what+": "+why]++
	}
	return false
}

// quantisedValue is a value that was computed as integers.
type quantisedValue struct {
	v  *ir.Value
	as *number
}

// isFloat reports whether a value is read by other calls than those that
// quantise it alike.
func (q *quantiser) isFloat(x *ir.Value, y *number) bool {
	return !q.isQuantised(x) || slices.ContainsFunc(q.readers[x], func(c *ir.Call) bool {
		o := q.resultOf(c)
		return o == nil || !o.sameAs(y)
	})
}

// notQuantised says that no operand is dequantised: the call is none of a
// quantised region.
const notQuantised = "no operand is dequantised"

// isInside reports whether the call is in the block under way, before the call
// that is looked at.
func (q *quantiser) isInside(c *ir.Call) bool { return q.blocks[c] == q.now }

// region makes c compute on integers what quantised is x, or says why not.
func (q *quantiser) region(c *ir.Call, x *ir.Value, y *number) (why string) {
	if !slices.ContainsFunc(x.Def.Args, func(a ir.Operand) bool { return a.Value != nil && def(a.Value, "dequantize_linear") != nil }) &&
		x.Def.Op.Name != "relu" && x.Def.Op.Name != "clip" && !functions[x.Def.Op.Name] {
		return notQuantised
	}
	if !isByte(y.dt) {
		return "got results of " + y.dt.String() + ", want 8 bits"
	}
	if y.axis >= 0 {
		return "its results have several scales"
	}
	if q.isFloat(x, y) {
		return "its results are read as floats, too"
	}
	if why = q.function(c, x, y); why == "" || why != notQuantised {
		return why
	}
	lo, hi := y.limits()
	from, to := lo, hi
	for x.Def != nil && (x.Def.Op.Name == "relu" || x.Def.Op.Name == "clip") {
		low, high, ok := q.bounds(x.Def)
		if !ok {
			return "its bounds are not constant"
		}
		from, to = max(from, y.of(low)), min(to, y.of(high))
		if x = x.Def.Args[0].Value; q.uses[x] != 1 || x.Def == nil || !q.isInside(x.Def) {
			return "its operand is read as floats, too"
		}
	}
	if from > to {
		return "its bounds leave no number"
	}
	if from == lo && to == hi {
		return q.product(c, x.Def, y)
	}
	clamped := q.table(y, y, func(v float32) int { return min(max(y.of(v), from), to) })
	sum := q.ctx.Program.NewValue(ir.Result, "", c.Results[0].Type)
	made := &ir.Call{Op: c.Op, Attrs: c.Attrs, Args: c.Args, Results: []*ir.Value{sum}, Node: c.Node}
	sum.Def = made
	if why := q.product(made, x.Def, y); why != "" {
		return why
	}
	q.kept = append(q.kept, made)
	q.become(c, "lookup", nil, sum, clamped)
	return ""
}

// bounds are those of a relu or a clip.
func (q *quantiser) bounds(c *ir.Call) (low, high float32, ok bool) {
	low, high = float32(math.Inf(-1)), float32(math.Inf(1))
	if c.Op.Name == "relu" {
		return 0, high, true
	}
	for i, at := range []*float32{&low, &high} {
		if i+1 >= len(c.Args) || c.Args[i+1].Value == nil {
			continue
		}
		v, ok := q.floats(c.Args[i+1].Value)
		if !ok || len(v) != 1 || v[0] != v[0] {
			return 0, 0, false
		}
		*at = v[0]
	}
	return low, high, low <= high
}

// floats returns a constant, which may be dequantised, as floats.
func (q *quantiser) floats(v *ir.Value) ([]float32, bool) {
	if x, ok := q.ctx.floats(v); ok {
		return x, true
	}
	n := q.numberOf(v)
	if n == nil {
		return nil, false
	}
	list, ok := q.ints(n.q)
	if !ok || n.axis > 0 || n.axis == 0 && len(list) != len(n.scales) {
		return nil, false
	}
	x := make([]float32, len(list))
	for i, v := range list {
		at := 0
		if n.axis == 0 {
			at = i
		}
		x[i] = float32(v-n.zeros[at]) * n.scales[at]
	}
	return x, true
}

// table makes the table of a function of the numbers that integers of x stand
// for; those of one table are one constant.
func (q *quantiser) table(x, y *number, f func(float32) int) *ir.Value {
	data := make([]byte, 256)
	lo, hi := x.limits()
	for i := lo; i <= hi; i++ {
		data[byte(i)] = byte(f(x.at(i)))
	}
	return q.tableOf(y.dt, data)
}

func (q *quantiser) tableOf(dt dtype.DType, data []byte) *ir.Value {
	for _, w := range q.ctx.Program.Weights {
		if w.Type.DType != dt || rank(w) != 1 || w.Type.Shape.Dim(0) != shape.N(256) {
			continue
		}
		if has, ok := q.ctx.constant(w); ok && bytes.Equal(has, data) {
			return w
		}
	}
	return q.constant("table", op.Type{DType: dt, Shape: shape.MustOf(256)}, data)
}
