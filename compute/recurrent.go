package compute

import (
	"fmt"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/machine"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"rnn":  oneFloatType(recurrentOp(kernel.RNNCell)),
	"gru":  oneFloatType(recurrentOp(kernel.GRUCell)),
	"lstm": oneFloatType(recurrentOp(kernel.LSTMCell)),
})

var cellFuncs = map[string]kernel.UnaryOp{
	"relu": kernel.Relu, "tanh": kernel.Tanh, "sigmoid": kernel.Sigmoid, "softsign": kernel.Softsign, "softplus": kernel.Softplus,
	"leaky_relu": kernel.LeakyRelu, "thresholded_relu": kernel.ThresholdedRelu, "elu": kernel.Elu,
	"hard_sigmoid": kernel.HardSigmoid, "affine": kernel.Affine, "scaled_tanh": kernel.Tanh,
}

func recurrentOp(kind kernel.CellKind) binder {
	return func(c *op.Call) (*Task, error) {
		functions, err := c.Activations()
		if err != nil {
			return nil, err
		}
		x, r := c.In[0].Shape.Sizes(), c.In[2].Shape.Sizes()
		spec := &kernel.Recurrent{
			Kind: kind, Steps: x[0], Batch: x[1], Input: x[2], Hidden: r[2], Dirs: r[0],
			Reverse: c.Str("direction") == "reverse", BatchFirst: c.Int("layout") != 0, Clip: c.Float("clip"),
		}
		if spec.BatchFirst {
			spec.Steps, spec.Batch = x[1], x[0]
		}
		switch kind {
		case kernel.GRUCell:
			spec.LinearBeforeReset = c.Int("linear_before_reset") != 0
		case kernel.LSTMCell:
			spec.InputForget = c.Int("input_forget") != 0
		}
		for _, f := range functions {
			spec.Funcs = append(spec.Funcs, kernel.CellFunc{Op: cellFuncs[f.Op], A: f.Alpha, B: f.Beta, Scaled: f.Op == "scaled_tanh"})
		}
		bind, ok := floatOf(c.In[0].DType, recurrentTask[float32], recurrentTask[float64])
		if !ok {
			return nil, unsupported(c)
		}
		return bind(c, spec), nil
	}
}

func recurrentTask[T kernel.Float](c *op.Call, spec *kernel.Recurrent) *Task {
	bytes := spec.ScratchElements() * c.In[0].DType.Size()
	return &Task{
		Tiles: spec.Tiles(), Scratch: bytes,
		Start: func() error {
			for i, n := range in[int32](c, 4) {
				if n < 0 || int(n) > spec.Steps {
					return fmt.Errorf("operand 4: got length %d for sample %d, want 0 to %d", n, i, spec.Steps)
				}
			}
			return nil
		},
		Tile: func(tile int, scratch []byte) {
			args := kernel.RecurrentArgs[T]{
				X: in[T](c, 0), W: in[T](c, 1), R: in[T](c, 2), Bias: in[T](c, 3), Lengths: in[int32](c, 4),
				H0: in[T](c, 5), C0: in[T](c, 6), Peepholes: in[T](c, 7), Y: out[T](c, 0), H: out[T](c, 1), C: out[T](c, 2),
			}
			kernel.RecurrentTile(machine.Best(), spec, tile, &args, view[T](scratch[:bytes]))
		},
	}
}
