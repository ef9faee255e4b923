package pass

import (
	"encoding/binary"
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// product makes c the quantised form of a convolution or a product, or says why
// there is none.
func (q *quantiser) product(c, of *ir.Call, y *number) (why string) {
	bias, more := (*ir.Value)(nil), (*ir.Value)(nil)
	if of.Op.Name == "add" { // a bias after a product
		for i := range 2 {
			x := of.Args[i].Value
			if m := def(x, "matmul"); m != nil && q.uses[x] == 1 && q.isInside(m) {
				more, of = of.Args[1-i].Value, m
				break
			}
		}
	}
	if more != nil && rank(more) > max(1, rank(of.Results[0])) {
		return "its bias has more dimensions than the product"
	}
	switch of.Op.Name {
	case "add", "sub", "mul":
		return q.arithmetic(c, of, y)
	case "conv", "matmul", "gemm":
	default:
		return "it has no kernel on quantised numbers"
	}
	x, w := q.numberOf(of.Args[0].Value), q.numberOf(of.Args[1].Value)
	switch {
	case x == nil || w == nil:
		return "an operand is not dequantised by constants"
	case !isByte(x.dt) || !isByte(w.dt):
		return "got operands of " + x.dt.String() + " and " + w.dt.String() + ", want 8 bits"
	case x.axis >= 0:
		return "operand 0 has several scales"
	}
	if len(of.Args) > 2 {
		bias = of.Args[2].Value
	}
	if more != nil {
		bias = more
	}
	p := quantProduct{q: q, c: c, of: of, x: x, w: w, y: y}
	if of.Op.Name == "conv" {
		return p.conv(bias)
	}
	return p.matmul(bias)
}

type quantProduct struct {
	q       *quantiser
	c, of   *ir.Call
	x, w, y *number
}

func (p *quantProduct) conv(bias *ir.Value) (why string) {
	if p.w.axis > 0 {
		return "its weights have scales along another axis than that of the filters"
	}
	depth := 1
	for i := 1; i < rank(p.w.q); i++ {
		n, ok := p.w.q.Type.Shape.Dim(i).Size()
		if !ok {
			depth = 0
			break
		}
		depth *= n
	}
	filters, _ := sizeAt(p.w.q, 0)
	return p.finish("qlinear_conv", p.of.Attrs, bias, depth, filters)
}

func (p *quantProduct) matmul(bias *ir.Value) (why string) {
	r := rank(p.w.q)
	if p.of.Op.Name == "gemm" {
		sig := attrsOf(p.of)
		switch {
		case sig.Int("transA") != 0:
			return "its operand 0 is transposed"
		case sig.Float("alpha") != 1 || bias != nil && sig.Float("beta") != 1:
			return "its factors are not 1"
		case r != 2:
			return "its operand 1 has no known shape"
		}
		if sig.Int("transB") != 0 {
			p.transposeWeights()
		}
	}
	if r < 2 {
		return "its operand 1 is no matrix of known rank"
	}
	if p.w.axis >= 0 && (p.w.axis != r-1 || r != 2) {
		return "its weights have scales along another axis than that of the columns"
	}
	depth, ok := sizeAt(p.w.q, r-2)
	if !ok {
		if depth, ok = sizeAt(p.x.q, rank(p.x.q)-1); !ok {
			depth = 0
		}
	}
	columns, _ := sizeAt(p.w.q, r-1)
	return p.finish("qlinear_matmul", nil, bias, depth, columns)
}

func sizeAt(v *ir.Value, axis int) (int, bool) {
	if axis < 0 || axis >= rank(v) {
		return 0, false
	}
	return v.Type.Shape.Dim(axis).Size()
}

// transposeWeights makes the rows of w its columns: of a constant, when it is
// folded.
func (p *quantProduct) transposeWeights() {
	s := p.w.q.Type.Shape
	swapped, err := shape.FromDims(s.Dim(1), s.Dim(0))
	if err != nil {
		p.q.err = err
		return
	}
	attrs := op.Attrs{}.With("perm", []int64{1, 0})
	p.w.q = p.q.emit(p.of, "transpose", attrs, op.Type{DType: p.w.dt, Shape: swapped}, p.w.q)
	if p.w.axis >= 0 {
		p.w.axis = 1 - p.w.axis
	}
}

// mostSum is the largest sum that fits 32 bits.
const mostSum = math.MaxInt32

// finish makes the call. depth is the number of products of a sum, 0 where it
// is not known, and columns that of the sums that have a bias each.
func (p *quantProduct) finish(name string, attrs op.Attrs, bias *ir.Value, depth, columns int) (why string) {
	most := float64(depth) * p.x.span() * p.w.span()
	if most > mostSum {
		return "its sums may not fit 32 bits"
	}
	x, w, y := p.x, p.w, p.y
	args := []*ir.Value{x.q, x.scale, p.q.zeroOf(x), w.q, w.scale, p.q.zeroOf(w), y.scale, p.q.zeroOf(y)}
	if bias != nil {
		sums, why := p.bias(bias, columns, mostSum-most)
		if why != "" {
			return why
		}
		args = append(args, sums)
	}
	made := &ir.Call{Op: op.Builtin().Lookup(name), Attrs: attrs, Results: p.c.Results}
	setArgs(made, args)
	sig := made.Sig(p.q.ctx.known)
	if sig.Infer() != nil {
		return "its operands do not fit " + name
	}
	p.c.Op, p.c.Attrs, p.c.Args = made.Op, made.Attrs, made.Args
	p.c.Node = p.of.Node
	return ""
}

// span is the largest distance of an integer from its zero.
func (n *number) span() float64 {
	lo, hi := n.limits()
	most := 0
	for _, z := range n.zeros {
		most = max(most, z-lo, hi-z)
	}
	return float64(most)
}

// bias makes a constant bias one of integers, in units of the sums.
func (p *quantProduct) bias(v *ir.Value, columns int, most float64) (sums *ir.Value, why string) {
	list, ok := p.q.floats(v)
	if !ok {
		return nil, "its bias is not constant"
	}
	if columns == 0 || len(list) != columns && len(list) != 1 || rank(v) > 0 && len(list) > 1 && v.Type.Shape.Dim(rank(v)-1) != shape.N(len(list)) {
		return nil, "its bias is none per column"
	}
	whole, dequantised := []int(nil), p.q.numberOf(v)
	if dequantised != nil && dequantised.dt == dtype.I32 {
		whole, _ = p.q.ints(dequantised.q)
	}
	data := make([]byte, 4*columns)
	for i := range columns {
		unit := p.x.scales[0] * p.w.scales[min(i, len(p.w.scales)-1)]
		at := min(i, len(list)-1)
		var sum float64
		switch {
		case whole != nil && dequantised.scales[min(at, len(dequantised.scales)-1)] == unit:
			sum = float64(whole[at] - dequantised.zeros[min(at, len(dequantised.zeros)-1)])
		default:
			sum = math.RoundToEven(float64(list[at]) / float64(unit))
			if unit > p.y.scales[0]/16 && math.Abs(sum*float64(unit)-float64(list[at])) > float64(p.y.scales[0])/64 {
				return nil, "its bias is not a multiple of the scales"
			}
		}
		if !(math.Abs(sum) <= most) {
			return nil, "its sums may not fit 32 bits"
		}
		binary.LittleEndian.PutUint32(data[4*i:], uint32(int32(sum)))
	}
	if dequantised != nil && dequantised.q.Kind == ir.Weight && rank(dequantised.q) == 1 && len(whole) == columns {
		if has, ok := p.q.ctx.constant(dequantised.q); ok && string(has) == string(data) {
			return dequantised.q, ""
		}
	}
	return p.q.constant(v.Name+".sums", op.Type{DType: dtype.I32, Shape: shape.MustOf(columns)}, data), ""
}
