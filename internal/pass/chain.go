package pass

import (
	"math"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/elementwise"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// Chain joins elementwise calls on f32 into one that computes them piece by
// piece, so that intermediate results never exist as values.
//
// Requires: static types, dce (a dead reader would keep a value alive), fuse
// (an activation belongs to the convolution before it). Guarantees: only
// values whose readers are all in the chain disappear, and a call moves down
// to the chain only if no more values live longer for it than disappear.
// Results are the same to the bit.
//
// Left to other passes: operands that broadcast along axes on both sides of one
// that they have, and whose bytes take the result (donate).
var Chain = Pass{Name: "chain", Doc: "join elementwise calls into one", Run: chain}

const (
	mostChainSteps    = 16
	mostChainOperands = 8
)

func chain(ctx *Context) error {
	f := &chainFinder{ctx: ctx, uses: countUses(ctx.Program)}
	f.block(ctx.Program.Body)
	return nil
}

type chainFinder struct {
	ctx  *Context
	uses map[*ir.Value]int
}

func (f *chainFinder) block(b *ir.Block) {
	index := map[*ir.Call]int{}
	for i, c := range b.Calls {
		index[c] = i
		for _, region := range c.Regions {
			f.block(region)
		}
	}
	gone := map[*ir.Call]bool{}
	for i := len(b.Calls) - 1; i >= 0; i-- {
		if root := b.Calls[i]; !gone[root] {
			for _, c := range f.join(root, index) {
				gone[c] = true
			}
		}
	}
	b.Calls = slices.DeleteFunc(b.Calls, func(c *ir.Call) bool { return gone[c] })
}

// group is a chain in the making: the calls, and the values from outside.
type group struct {
	root     *ir.Call
	calls    []*ir.Call
	reads    map[*ir.Value]int // by calls of the group
	operands []*ir.Value
}

// join makes root the last step of a chain, if there is one, and returns the
// other calls of it.
func (f *chainFinder) join(root *ir.Call, index map[*ir.Call]int) []*ir.Call {
	if _, _, _, ok := f.step(root, root.Results); !ok {
		return nil
	}
	g := &group{root: root, reads: map[*ir.Value]int{}}
	g.add(root)
	for f.grow(g, index) {
	}
	if len(g.calls) < 2 {
		return nil
	}
	slices.SortFunc(g.calls, func(a, b *ir.Call) int { return index[a] - index[b] })
	f.replace(g)
	return slices.DeleteFunc(g.calls, func(c *ir.Call) bool { return c == root })
}

// add takes a call in.
func (g *group) add(c *ir.Call) {
	g.calls = append(g.calls, c)
	g.operands = slices.DeleteFunc(g.operands, func(v *ir.Value) bool { return v == c.Results[0] })
	for _, v := range stepOperands(c) {
		g.reads[v]++
		if !slices.Contains(g.operands, v) {
			g.operands = append(g.operands, v)
		}
	}
}

// grow takes in one call that defines an operand of the group and nothing else.
func (f *chainFinder) grow(g *group, index map[*ir.Call]int) bool {
	if len(g.calls) == mostChainSteps {
		return false
	}
	for _, v := range g.operands {
		c := v.Def
		if c == nil || f.uses[v] != g.reads[v] {
			continue
		}
		if _, local := index[c]; !local || !f.ctx.sameType(v, g.root.Results[0]) {
			continue
		}
		if _, _, _, ok := f.step(c, g.root.Results); !ok || !f.worth(g, c, index) {
			continue
		}
		fresh := 0
		for i, x := range stepOperands(c) {
			if !slices.Contains(g.operands, x) && !slices.Contains(stepOperands(c)[:i], x) {
				fresh++
			}
		}
		if len(g.operands)-1+fresh > mostChainOperands {
			continue
		}
		g.add(c)
		return true
	}
	return false
}

// worth tells whether taking the call in costs no memory: at most one value of
// the result's size lives until the chain in place of the call's result, or
// nothing but the chain lies between them.
func (f *chainFinder) worth(g *group, c *ir.Call, index map[*ir.Call]int) bool {
	longer := 0
	for i, v := range stepOperands(c) {
		if v.Kind != ir.Weight && !slices.Contains(g.operands, v) && !slices.Contains(stepOperands(c)[:i], v) && f.ctx.sameType(v, c.Results[0]) {
			longer++
		}
	}
	between := index[g.root] - index[c] - 1
	for _, other := range g.calls {
		if index[other] > index[c] && other != g.root {
			between--
		}
	}
	return longer <= 1 || between == 0
}

// stepOperands are the operands of a call that its step reads: limits of clip
// are parameters.
func stepOperands(c *ir.Call) []*ir.Value {
	n := len(c.Args)
	if c.Op.Name == "clip" {
		n = 1
	}
	values := make([]*ir.Value, n)
	for i := range values {
		values[i] = c.Args[i].Value
	}
	return values
}

// replace makes the group's root the chain.
func (f *chainFinder) replace(g *group) {
	place := map[*ir.Value]int{} // steps by their result
	for i, c := range g.calls {
		place[c.Results[0]] = i
	}
	steps := make([]string, len(g.calls))
	args := make([]ir.Operand, len(g.operands))
	for i, v := range g.operands {
		args[i] = ir.Operand{Value: v}
	}
	for i, c := range g.calls {
		name, values, params, _ := f.step(c, g.root.Results)
		s := op.ChainStep{Func: name, Params: params}
		for _, v := range values {
			if at, ok := place[v]; ok {
				s.Args = append(s.Args, at-i)
			} else {
				s.Args = append(s.Args, slices.Index(g.operands, v))
			}
		}
		steps[i] = s.String()
	}
	g.root.Op, g.root.Args, g.root.Attrs = op.Builtin().Lookup("fused_chain"), args, op.Attrs(nil).With("steps", steps)
}

// step reads a call as a step of a chain with the given result.
func (f *chainFinder) step(c *ir.Call, result []*ir.Value) (name string, args []*ir.Value, params []float64, ok bool) {
	if len(c.Results) != 1 || c.Results[0] == nil || c.Results[0].Type.DType != dtype.F32 || !isStatic(c.Results[0]) || len(c.Regions) > 0 ||
		!f.ctx.sameType(c.Results[0], result[0]) {
		return "", nil, nil, false
	}
	if name, params, ok = f.function(c); !ok {
		return "", nil, nil, false
	}
	args = stepOperands(c)
	for i, v := range args {
		if v == nil || v.Type.DType != dtype.F32 || c.Args[i].Donate || !isStatic(v) {
			return "", nil, nil, false
		}
		if !f.ctx.is(inBlocks, v, c.Results[0], 0, 0) {
			return "", nil, nil, false
		}
	}
	return name, args, params, len(args) == op.ChainFuncs()[name].Args
}

// function returns the function of a chain that a call computes.
func (f *chainFinder) function(c *ir.Call) (name string, params []float64, ok bool) {
	sig := attrsOf(c)
	switch name = c.Op.Name; name {
	case "gelu":
		if sig.Str("approximate") == "tanh" {
			name = "gelu_tanh"
		}
	case "sum":
		name = "add"
	case "clip":
		params, ok = f.limits(c)
		return name, params, ok
	default:
		if row := elementwise.Lookup(name); row != nil && row.ONNX != "" {
			function, values := row.Resolve(sig.Float)
			name, params = function.Name, values[:len(function.Params)]
		}
	}
	_, ok = op.ChainFuncs()[name]
	return name, params, ok
}

// limits are those of a clip, if they are constants and numbers.
func (f *chainFinder) limits(c *ir.Call) ([]float64, bool) {
	limits := []float64{math.Inf(-1), math.Inf(1)}
	for i := range limits {
		if i+1 >= len(c.Args) || c.Args[i+1].Value == nil {
			continue
		}
		x, ok := f.ctx.floats(c.Args[i+1].Value)
		if !ok || len(x) != 1 || x[0] != x[0] {
			return nil, false
		}
		limits[i] = float64(x[0])
	}
	return limits, true
}
