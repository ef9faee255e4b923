package compute

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/machine"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{"fused_chain": bindChain})

// streamBytes is the size from which on a result that lies in no operand's
// bytes is written past the caches: they could not hold it until it is read,
// and a line that is written whole need not be read first.
const streamBytes = 32 << 20

// Functions of chains by the names that both sides give them.
var (
	chainUnary  = map[string]kernel.UnaryOp{}
	chainBinary = map[string]kernel.BinaryOp{}
)

func init() {
	for _, f := range kernel.UnaryOps() {
		chainUnary[f.String()] = f
	}
	for _, f := range kernel.BinaryOps() {
		chainBinary[f.String()] = f
	}
}

func bindChain(c *op.Call) (*Task, error) {
	steps, err := c.ChainSteps()
	if err != nil {
		return nil, err
	}
	chain := &kernel.Chain{Steps: make([]kernel.ChainStep, len(steps))}
	for i, s := range steps {
		to := &chain.Steps[i]
		to.A = s.Args[0]
		if len(s.Args) == 2 {
			to.IsBinary, to.Binary, to.B = true, chainBinary[s.Func], s.Args[1]
			continue
		}
		to.Unary = chainUnary[s.Func]
		for k, p := range s.Params {
			*[]*float32{&to.P, &to.Q}[k] = float32(p)
		}
	}
	t, ok := chainTask(c, chain)
	if !ok {
		return nil, unsupported(c)
	}
	return t, nil
}

// chainTask is the task of f32 operands that are the whole result's shape, one
// number, or a block of its axes; false where one is none of these.
func chainTask(c *op.Call, chain *kernel.Chain) (*Task, bool) {
	n := elements(&c.Out[0])
	chain.Elements = n
	for i := range c.In {
		inner, count, ok := op.BlockOf(c.In[i].Shape, c.Out[0].Shape)
		if !ok || c.In[i].DType != dtype.F32 {
			return nil, false
		}
		chain.Operands = append(chain.Operands, kernel.ChainOperand{Inner: inner, Count: count})
	}
	if len(c.In) > kernel.MaxChainOperands {
		return nil, false
	}
	chain.Prepare()
	large := 4*n >= streamBytes
	return &Task{Tiles: chain.Tiles(), Scratch: 4 * chain.ScratchFloats(), Tile: func(tile int, scratch []byte) {
		var operands [kernel.MaxChainOperands][]float32
		for i := range c.In {
			operands[i] = in[float32](c, i)
		}
		chain.Tile(machine.Best(), tile, view[float32](scratch[:4*chain.ScratchFloats()]), out[float32](c, 0), operands[:len(c.In)], large && !isInPlace(c))
	}}, true
}

// isInPlace reports whether the result lies in an operand's bytes.
func isInPlace(c *op.Call) bool {
	for i := range c.In {
		if sameBytes(c.In[i].Data, c.Out[0].Data) {
			return true
		}
	}
	return false
}
