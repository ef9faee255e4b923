package compute

import (
	"fmt"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/sequence"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"rnn":  oneFloatType(recurrentOp(sequence.RNNCell)),
	"gru":  oneFloatType(recurrentOp(sequence.GRUCell)),
	"lstm": oneFloatType(recurrentOp(sequence.LSTMCell)),
})

// cellFunc returns the function of a cell. The cell itself scales a tanh.
func cellFunc(f op.Activation) sequence.CellFunc {
	if f.Op == "scaled_tanh" {
		return sequence.CellFunc{Op: kernel.Tanh, A: f.Alpha, B: f.Beta, Scaled: true}
	}
	return sequence.CellFunc{Op: unaryNamed[f.Op], A: f.Alpha, B: f.Beta}
}

func recurrentOp(kind sequence.CellKind) binder {
	return func(c *op.Call) (Kernel, error) {
		functions, err := c.Activations()
		if err != nil {
			return nil, err
		}
		spec := sequence.Recurrent{
			Kind: kind, Reverse: c.Str("direction") == "reverse", BatchFirst: c.Int("layout") != 0, Clip: c.Float("clip"),
		}
		switch kind {
		case sequence.GRUCell:
			spec.LinearBeforeReset = c.Int("linear_before_reset") != 0
		case sequence.LSTMCell:
			spec.InputForget = c.Int("input_forget") != 0
		}
		for _, f := range functions {
			spec.Funcs = append(spec.Funcs, cellFunc(f))
		}
		bind, ok := floatOf(c.In[0].DType, newRecurrent[float32], newRecurrent[float64])
		if !ok {
			return nil, unsupported(c)
		}
		return bind(spec), nil
	}
}

type recurrent[T kernel.Float] struct{ sequence.Recurrent }

func newRecurrent[T kernel.Float](spec sequence.Recurrent) Kernel { return &recurrent[T]{spec} }

func (k *recurrent[T]) Refill(t *Task) error {
	c := t.Call
	x, r := c.In[0].Shape.Sizes(), c.In[2].Shape.Sizes()
	k.Steps, k.Batch, k.Input, k.Hidden, k.Dirs = x[0], x[1], x[2], r[2], r[0]
	if k.BatchFirst {
		k.Steps, k.Batch = x[1], x[0]
	}
	t.Tiles, t.Scratch = k.Tiles(), k.ScratchElements()*c.In[0].DType.Size()
	return nil
}

func (k *recurrent[T]) Start(t *Task) error {
	for i, n := range in[int32](t.Call, 4) {
		if n < 0 || int(n) > k.Steps {
			return fmt.Errorf("operand 4: got length %d for sample %d, want 0 to %d", n, i, k.Steps)
		}
	}
	return nil
}

func (k *recurrent[T]) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	args := sequence.RecurrentArgs[T]{
		X: in[T](c, 0), W: in[T](c, 1), R: in[T](c, 2), Bias: in[T](c, 3), Lengths: in[int32](c, 4),
		H0: in[T](c, 5), C0: in[T](c, 6), Peepholes: in[T](c, 7), Y: out[T](c, 0), H: out[T](c, 1), C: out[T](c, 2),
	}
	sequence.RecurrentTile(t.variant, &k.Recurrent, tile, &args, view[T](scratch[:k.ScratchElements()*c.In[0].DType.Size()]))
}
