package pass

import (
	"math"

	"github.com/tenure-go/tenure/internal/elementwise"
	"github.com/tenure-go/tenure/internal/symbolic"
	"github.com/tenure-go/tenure/op"
)

// A sizeRule returns the dimensions of result i of a call, nil for those that
// it does not know. It states for expressions what the operator's shape rule
// computes from numbers, for calls that the rule accepts; a test compares both.
type sizeRule func(c *formulaCall, i int) []*symbolic.Expr

var sizeRules = map[string]sizeRule{
	"reshape": reshapeSizes, "flatten": flattenSizes, "expand": expandSizes, "tile": tileSizes,
	"concat": concatSizes, "split": splitSizes, "slice": sliceSizes, "pad": padSizes,
	"range": rangeSizes, "constant_of_shape": filledSizes, "random_uniform": filledSizes, "random_normal": filledSizes, "resize": resizeSizes,
	"conv": convSizes, "fused_conv": convSizes, "conv_integer": convSizes, "qlinear_conv": convSizes, "conv_transpose": convTransposeSizes,
	"max_pool": poolSizes, "average_pool": poolSizes,
	"depth_to_space": depthToSpaceSizes, "space_to_depth": spaceToDepthSizes,
	"matmul": productSizes, "fused_matmul": productSizes, "matmul_integer": productSizes,
	"attention": attentionSizes, "fused_attention": fusedAttentionSizes, "where": broadcastSizes, "pow": broadcastSizes, "fused_chain": broadcastSizes,
	"top_k": topKSizes,
}

func init() {
	for _, f := range elementwise.Binaries() {
		if op.Builtin().Lookup(f.Name) != nil && f.Name != "prelu" { // whose result is like its first operand
			sizeRules[f.Name] = broadcastSizes
		}
	}
	sizeRules["mod"], sizeRules["bit_shift"] = broadcastSizes, broadcastSizes
}

// broadcast returns the size that two broadcast to. In a call that is accepted
// they are equal, or one of them is 1.
func (f *Formulas) broadcast(x, y *symbolic.Expr) *symbolic.Expr {
	switch {
	case x == nil || y == nil:
		return nil
	case x.Equal(y) || y.IsConst(1):
		return x
	case x.IsConst(1):
		return y
	case f.atLeast(x, 2):
		return x
	case f.atLeast(y, 2):
		return y
	case f.atLeast(x, 1) && f.atLeast(y, 1):
		return symbolic.Max(x, y)
	}
	return nil
}

func (f *Formulas) broadcastAll(a, b []*symbolic.Expr) []*symbolic.Expr {
	if len(a) < len(b) {
		a, b = b, a
	}
	dims := append([]*symbolic.Expr{}, a...)
	for i, y := range b {
		at := len(a) - len(b) + i
		dims[at] = f.broadcast(dims[at], y)
	}
	return dims
}

func broadcastSizes(c *formulaCall, _ int) []*symbolic.Expr {
	dims := []*symbolic.Expr{}
	for i, id := range c.args {
		if id == 0 {
			continue
		}
		if c.arg(i) == nil {
			return nil
		}
		dims = c.broadcastAll(dims, c.arg(i))
	}
	return dims
}

func productSizes(c *formulaCall, i int) []*symbolic.Expr {
	a, b := c.arg(0), c.arg(1)
	if len(a) < 2 || len(b) < 2 {
		return nil
	}
	dims := c.broadcastAll(a[:len(a)-2], b[:len(b)-2])
	last := b[len(b)-1]
	if c.sig.Def.Name == "fused_matmul" && c.sig.Int("transB") == 1 {
		last = b[len(b)-2]
	}
	return append(dims, a[len(a)-2], last)
}

func reshapeSizes(c *formulaCall, _ int) []*symbolic.Expr {
	x, target := c.arg(0), c.ints(1)
	if x == nil || target == nil {
		return nil
	}
	dims := make([]*symbolic.Expr, len(target))
	hole := -1
	for i, v := range target {
		n, isNumber := v.Value()
		switch {
		case isNumber && n == -1:
			hole = i
		case isNumber && n == 0 && c.sig.Int("allowzero") == 0:
			if i < len(x) {
				dims[i] = x[i]
			}
		case c.atLeast(v, 1), c.sig.Int("allowzero") == 1 && c.atLeast(v, 0), i < len(x) && v.Equal(x[i]) && c.atLeast(v, 0):
			dims[i] = v
		}
	}
	if hole >= 0 {
		others := symbolic.Const(1)
		for i, d := range dims {
			if i != hole {
				others = others.Mul(d)
			}
		}
		dims[hole] = c.quotient(symbolic.Product(x...), others)
	}
	return dims
}

// quotient returns e / d, which has no remainder.
func (f *Formulas) quotient(e, d *symbolic.Expr) *symbolic.Expr {
	if n, ok := d.Value(); ok {
		return e.Floor(n)
	}
	if f.same != nil && !f.atLeast(d, 1) {
		return nil // it may be 0 at sizes at which the structure is not proved to hold
	}
	return e.Over(d)
}

func flattenSizes(c *formulaCall, _ int) []*symbolic.Expr {
	x := c.arg(0)
	axis := c.axis(len(x))
	if x == nil || axis > len(x) {
		return nil
	}
	return []*symbolic.Expr{symbolic.Product(x[:axis]...), symbolic.Product(x[axis:]...)}
}

func expandSizes(c *formulaCall, _ int) []*symbolic.Expr {
	x, target := c.arg(0), c.ints(1)
	if x == nil || target == nil {
		return nil
	}
	return c.broadcastAll(x, target)
}

func tileSizes(c *formulaCall, _ int) []*symbolic.Expr {
	x, times := c.arg(0), c.ints(1)
	if len(x) != len(times) {
		return nil
	}
	dims := make([]*symbolic.Expr, len(x))
	for i := range x {
		dims[i] = x[i].Mul(times[i])
	}
	return dims
}

func concatSizes(c *formulaCall, _ int) []*symbolic.Expr {
	dims := make([]*symbolic.Expr, len(c.arg(0)))
	axis := c.axis(len(dims))
	sum := symbolic.Const(0)
	for i := range c.args {
		x := c.arg(i)
		if len(x) != len(dims) || len(x) == 0 {
			return nil
		}
		sum = sum.Add(x[axis])
		for j, d := range x {
			if dims[j] == nil {
				dims[j] = d // the same for all operands
			}
		}
	}
	dims[axis] = sum
	return dims
}

func splitSizes(c *formulaCall, i int) []*symbolic.Expr {
	x := c.arg(0)
	if x == nil {
		return nil
	}
	dims, axis := append([]*symbolic.Expr{}, x...), c.axis(len(x))
	if len(c.args) > 1 && c.args[1] != 0 {
		dims[axis] = nil
		if parts := c.ints(1); i < len(parts) {
			dims[axis] = parts[i]
		}
		return dims
	}
	count := int64(len(c.results))
	chunk := x[axis].Ceil(count)
	left := x[axis].Sub(chunk.Mul(symbolic.Const(int64(i))))
	dims[axis] = c.larger(symbolic.Const(0), c.smaller(chunk, left))
	return dims
}

// sliceAxis is the slice along an axis: its size and its start.
func (c *formulaCall) sliceAxes() (sizes, starts []*symbolic.Expr, ok bool) {
	x, from, to := c.arg(0), c.ints(1), c.ints(2)
	if x == nil || from == nil || len(from) != len(to) {
		return nil, nil, false
	}
	axes := make([]int64, len(from))
	for i := range axes {
		axes[i] = int64(i)
	}
	steps := make([]int64, len(from))
	for i := range steps {
		steps[i] = 1
	}
	for arg, list := range map[int]*[]int64{3: &axes, 4: &steps} {
		if arg < len(c.args) && c.args[arg] != 0 {
			if *list, ok = c.numbers(arg); !ok || len(*list) != len(from) {
				return nil, nil, false
			}
		}
	}
	sizes, starts = append([]*symbolic.Expr{}, x...), make([]*symbolic.Expr, len(x))
	for i := range starts {
		starts[i] = symbolic.Const(0)
	}
	for i, a := range axes {
		if a < 0 {
			a += int64(len(x))
		}
		if a < 0 || a >= int64(len(x)) {
			return nil, nil, false
		}
		sizes[a], starts[a] = nil, nil
		if steps[i] > 0 {
			first := c.clamp(from[i], x[a])
			starts[a] = first
			sizes[a] = c.larger(symbolic.Const(0), c.clamp(to[i], x[a]).Sub(first)).Ceil(steps[i])
		}
	}
	return sizes, starts, true
}

// clamp returns the position that v names on an axis of the given size: v
// counts from the end where it is negative.
func (c *formulaCall) clamp(v, size *symbolic.Expr) *symbolic.Expr {
	const far = 1 << 57 // beyond all sizes
	lo, hi, ok := v.Bounds(c.box)
	switch {
	case !ok:
		return nil
	case lo >= far:
		return size
	case hi <= -far:
		return symbolic.Const(0)
	case lo >= 0:
		return c.smaller(v, size)
	case hi < 0 && lo > -far:
		return c.larger(symbolic.Const(0), v.Add(size))
	}
	return nil
}

func sliceSizes(c *formulaCall, _ int) []*symbolic.Expr {
	sizes, _, _ := c.sliceAxes()
	return sizes
}

func padSizes(c *formulaCall, _ int) []*symbolic.Expr {
	x, pads := c.arg(0), c.ints(1)
	if x == nil || pads == nil {
		return nil
	}
	axes := make([]int64, len(x))
	for i := range axes {
		axes[i] = int64(i)
	}
	if len(c.args) > 3 && c.args[3] != 0 {
		var ok bool
		if axes, ok = c.numbers(3); !ok {
			return nil
		}
	}
	if len(pads) != 2*len(axes) {
		return nil
	}
	dims := append([]*symbolic.Expr{}, x...)
	for i, a := range axes {
		if a < 0 {
			a += int64(len(x))
		}
		if a < 0 || a >= int64(len(x)) {
			return nil
		}
		dims[a] = x[a].Add(pads[i]).Add(pads[i+len(axes)])
	}
	return dims
}

// rangeSize returns how many numbers there are from a start below a limit.
func (c *formulaCall) rangeSize() *symbolic.Expr {
	var v [3]*symbolic.Expr
	for i := range v {
		list := c.ints(i)
		if len(list) != 1 {
			return nil
		}
		v[i] = list[0]
	}
	step, ok := v[2].Value()
	if !ok || step <= 0 {
		return nil
	}
	return c.larger(symbolic.Const(0), v[1].Sub(v[0])).Ceil(step)
}

func rangeSizes(c *formulaCall, _ int) []*symbolic.Expr { return []*symbolic.Expr{c.rangeSize()} }

func filledSizes(c *formulaCall, _ int) []*symbolic.Expr { return c.ints(0) }

func topKSizes(c *formulaCall, _ int) []*symbolic.Expr {
	x, k := c.arg(0), c.ints(1)
	if x == nil || len(k) != 1 {
		return nil
	}
	dims := append([]*symbolic.Expr{}, x...)
	dims[c.axis(len(x))] = k[0]
	return dims
}

func resizeSizes(c *formulaCall, _ int) []*symbolic.Expr {
	x := c.arg(0)
	if x == nil || c.sig.Str("keep_aspect_ratio_policy") != "stretch" {
		return nil
	}
	axes := c.sig.Ints("axes")
	if !c.sig.Attrs.Has("axes") {
		axes = make([]int64, len(x))
		for i := range axes {
			axes[i] = int64(i)
		}
	}
	dims := append([]*symbolic.Expr{}, x...)
	sizes := c.ints(3)
	scales, known := c.sig.KnownFloats(2)
	for i, a := range axes {
		if a < 0 {
			a += int64(len(x))
		}
		switch {
		case a < 0 || a >= int64(len(x)):
			return nil
		case len(sizes) == len(axes):
			dims[a] = sizes[i]
		case known && len(scales) == len(axes):
			dims[a] = c.scaled(x[a], scales[i])
		default:
			dims[a] = nil
		}
	}
	return dims
}

// scaled returns floor(size · scale) as single precision computes it: exactly,
// where the scale is a fraction over a power of two and the product has at most
// 24 bits.
func (c *formulaCall) scaled(size *symbolic.Expr, scale float64) *symbolic.Expr {
	for den := int64(1); den <= 1<<10; den *= 2 {
		num := scale * float64(den)
		if num != math.Trunc(num) || num >= 1<<24 {
			continue
		}
		product := size.Mul(symbolic.Const(int64(num)))
		if !product.AtMost(symbolic.Const(1<<24), c.box) || !size.AtMost(symbolic.Const(1<<24), c.box) {
			return nil
		}
		return product.Floor(den)
	}
	return nil
}

func depthToSpaceSizes(c *formulaCall, _ int) []*symbolic.Expr {
	x, b := c.arg(0), c.sig.Int("blocksize")
	if len(x) != 4 {
		return nil
	}
	n := symbolic.Const(b)
	return []*symbolic.Expr{x[0], x[1].Floor(b * b), x[2].Mul(n), x[3].Mul(n)}
}

func spaceToDepthSizes(c *formulaCall, _ int) []*symbolic.Expr {
	x, b := c.arg(0), c.sig.Int("blocksize")
	if len(x) != 4 {
		return nil
	}
	return []*symbolic.Expr{x[0], x[1].Mul(symbolic.Const(b * b)), x[2].Floor(b), x[3].Floor(b)}
}

// attentionSizes: the keys of a call are those of now and past ones.
func attentionSizes(c *formulaCall, i int) []*symbolic.Expr {
	q, k, past := c.arg(0), c.arg(1), c.arg(4)
	got := c.sig.Results[i]
	if len(q) == 0 || len(k) != len(q) || got.Shape == nil || got.Shape.Rank() != 4 {
		return nil
	}
	keys := k[len(k)-2]
	if len(k) == 3 {
		keys = k[1]
	}
	if past != nil {
		if len(past) != 4 {
			return nil
		}
		keys = keys.Add(past[2])
	}
	dims := make([]*symbolic.Expr, 4)
	switch i {
	case 1, 2:
		dims[2] = keys
	case 3:
		dims[3] = keys
	}
	return dims
}

// fusedAttentionSizes: the axes before the last two are those of q, k and v,
// which broadcast.
func fusedAttentionSizes(c *formulaCall, _ int) []*symbolic.Expr {
	var of [3][]*symbolic.Expr
	for i, attr := range [3]string{"q_perm", "k_perm", "v_perm"} {
		x := c.arg(i)
		perm, err := c.sig.OrderOf(attr, nil, len(x))
		if len(x) < 2 || err != nil {
			return nil
		}
		for _, axis := range perm {
			of[i] = append(of[i], x[axis])
		}
	}
	q, k, v := of[0], of[1], of[2]
	n := len(q)
	if len(k) != n || len(v) != n {
		return nil
	}
	all := q
	if n > 3 {
		all = append(c.broadcastAll(c.broadcastAll(q[:n-3], k[:n-3]), v[:n-3]), q[n-3:]...)
	}
	all[n-1] = v[n-1]
	perm, err := c.sig.OrderOf("y_perm", nil, n)
	if err != nil {
		return nil
	}
	dims := make([]*symbolic.Expr, n)
	for i, axis := range perm {
		dims[i] = all[axis]
	}
	return dims
}
