package compute

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{"fused_chain": bindChain})

// streamBytes is the size from which on a result that lies in no operand's
// bytes is written past the caches: they could not hold it until it is read,
// and a line that is written whole need not be read first.
const streamBytes = 32 << 20

func bindChain(c *op.Call) (Kernel, error) {
	steps, err := c.ChainSteps()
	if err != nil {
		return nil, err
	}
	k := &chain{}
	k.Steps = make([]elementwise.ChainStep, len(steps))
	for i, s := range steps {
		to := &k.Steps[i]
		to.A = s.Args[0]
		if len(s.Args) == 2 {
			to.IsBinary, to.Binary, to.B = true, binaryNamed[s.Func], s.Args[1]
			continue
		}
		to.Unary = unaryNamed[s.Func]
		for k, p := range s.Params {
			*[]*float32{&to.P, &to.Q}[k] = float32(p)
		}
	}
	return k, nil
}

// chain computes functions of f32 operands that are the whole result's shape,
// one number, or a block of its axes.
type chain struct {
	elementwise.Chain
	large bool
}

// fill sets the sizes; false where an operand is none of those.
func (k *chain) fill(c *op.Call) bool {
	if len(c.In) > elementwise.MaxChainOperands {
		return false
	}
	k.Elements, k.Operands = elements(&c.Out[0]), k.Operands[:0]
	for i := range c.In {
		inner, count, ok := op.BlockOf(c.In[i].Shape, c.Out[0].Shape)
		if !ok || c.In[i].DType != dtype.F32 {
			return false
		}
		k.Operands = append(k.Operands, elementwise.ChainOperand{Inner: inner, Count: count})
	}
	k.Prepare()
	k.large = 4*k.Elements >= streamBytes
	return true
}

func (k *chain) Refill(t *Task) error {
	if !k.fill(t.Call) {
		return unsupported(t.Call)
	}
	t.Tiles, t.Scratch = k.Tiles(), 4*k.ScratchFloats()
	return nil
}

func (k *chain) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	var operands [elementwise.MaxChainOperands][]float32
	for i := range c.In {
		operands[i] = in[float32](c, i)
	}
	k.Chain.Tile(t.variant, tile, view[float32](scratch[:4*k.ScratchFloats()]), out[float32](c, 0), operands[:len(c.In)], k.large && !isInPlace(c))
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
